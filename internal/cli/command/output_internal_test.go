package command

import (
	"strings"
	"testing"
)

func TestLineIsFitForATerminal(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"plain – ünï": "plain – ünï", "two\nlines\tand": "two lines and", "\x1b[31mred": `\u{001B}[31mred`, "a\u202eb\u009bc": `a\u{202E}b\u{009B}c`,
		"a\u200bb\U000e0041\u3164\xff": `a\u{200B}b\u{E0041}\u{3164}\x{FF}`,
		strings.Repeat("x", 101):       strings.Repeat("x", 99) + "…",
	} {
		if got := Line(in); got != want {
			t.Errorf("line(%q) = %q, want %q", in, got, want)
		}
	}
}
