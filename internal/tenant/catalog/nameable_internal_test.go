package catalog

import (
	"strings"
	"testing"
)

func TestNameable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"mail.send": true, "Löschen Sie 2 Ÿ": true, "送信": true, "e\u0301": true, "\xff": true, strings.Repeat("ä", 200): true,
		strings.Repeat("ä", 201): false, "two\nlines": false, "a\u00a0b": false, "a\u200bb": false, "a\x00": false, "\ue000": false,
	} {
		if got := nameable(name); got != want {
			t.Errorf("nameable(%q) = %t, want %t", name, got, want)
		}
	}
}
