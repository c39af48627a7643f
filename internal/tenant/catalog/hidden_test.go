package catalog_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

func TestReveal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "",
		"Sends mail.\n\tTo: Ünal ☎": "Sends mail.\n\tTo: Ünal ☎",
		"日本語 العربية हिन्दी": "日本語 العربية हिन्दी",
		"zero\u200bwidth":        `zero\u{200B}width`,
		"a\u202eb\u2066c":        `a\u{202E}b\u{2066}c`,
		"\ufefftext":             `\u{FEFF}text`,
		"soft\u00adhyphen":       `soft\u{00AD}hyphen`,
		"no\u00a0break":          `no\u{00A0}break`,
		"\x1b[31mred":            `\u{001B}[31mred`,
		"a\rb":                   `a\u{000D}b`,
		"hi\U000e0068\U000e0069": `hi\u{E0068}\u{E0069}`,
		"a\ufe01\U000e0101":      `a\u{FE01}\u{E0101}`,
		"⚠️ 1️⃣":                 "⚠️ 1️⃣",
		"⚠\ufe0f\ufe0f":          "⚠\ufe0f" + `\u{FE0F}`,
		"x\ufe0f":                `x\u{FE0F}`,
		"a\u3164\u2800\u115f":    `a\u{3164}\u{2800}\u{115F}`,
		"a\u2028b\u2029":         `a\u{2028}b\u{2029}`,
		"\ue000\U0010ffff\u0378": `\u{E000}\u{10FFFF}\u{0378}`,
		"a\xffb\xc3":             `a\x{FF}b\x{C3}`,
		"\x00":                   `\u{0000}`,
	} {
		got, hidden := catalog.Reveal(text)
		if got != want || hidden != (want != text) {
			t.Errorf("Reveal(%q) = %q, %t, want %q", text, got, hidden, want)
		}
	}
}

func FuzzReveal(f *testing.F) {
	f.Add("a\u200b\xff")
	f.Add("⚠️\ufe0f")
	f.Fuzz(func(t *testing.T, text string) {
		shown, hidden := catalog.Reveal(text)
		if !utf8.ValidString(shown) || hidden != (shown != text) {
			t.Errorf("Reveal(%q) = %q, %t", text, shown, hidden)
		}
		if _, again := catalog.Reveal(shown); again {
			t.Errorf("Reveal(%q) = %q still hides something", text, shown)
		}
		if strings.ContainsAny(shown, "\x1b\r\x00\u200b\u202e") {
			t.Errorf("Reveal(%q) = %q", text, shown)
		}
	})
}
