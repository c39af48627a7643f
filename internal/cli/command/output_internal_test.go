package command

import (
	"strings"
	"testing"
)

func TestLineIsFitForATerminal(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"plain – ünï": "plain – ünï", "two\nlines\tand": "two lines and", "\x1b[31mred": "·[31mred", "a\u202eb\u009bc": "a·b·c",
		strings.Repeat("x", 101): strings.Repeat("x", 99) + "…",
	} {
		if got := Line(in); got != want {
			t.Errorf("line(%q) = %q, want %q", in, got, want)
		}
	}
}
