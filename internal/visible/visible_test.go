package visible_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/visible"
)

func TestReveal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "",
		"Sends mail.\n\tTo: Ünal ☎": "Sends mail.\n\tTo: Ünal ☎",
		"日本語 العربية हिन्दी": "日本語 العربية हिन्दी",
		"zero\u200bwidth":         `zero\u{200B}width`,
		"a\u202eb\u2066c":         `a\u{202E}b\u{2066}c`,
		"\ufefftext":              `\u{FEFF}text`,
		"soft\u00adhyphen":        `soft\u{00AD}hyphen`,
		"no\u00a0break":           `no\u{00A0}break`,
		"\x1b[31mred":             `\u{001B}[31mred`,
		"a\rb":                    `a\u{000D}b`,
		"hi\U000e0068\U000e0069":  `hi\u{E0068}\u{E0069}`,
		"a\ufe01\U000e0101":       `a\u{FE01}\u{E0101}`,
		"⚠️ 1️⃣":                  "⚠️ 1️⃣",
		"⚠\ufe0f\ufe0f":           "⚠\ufe0f" + `\u{FE0F}`,
		"x\ufe0f":                 `x\u{FE0F}`,
		"a\u3164\u2800\u115f":     `a\u{3164}\u{2800}\u{115F}`,
		"a\u2028b\u2029":          `a\u{2028}b\u{2029}`,
		"\ue000\U0010ffff\u0378":  `\u{E000}\u{10FFFF}\u{0378}`,
		"a\xffb\xc3":              `a\x{FF}b\x{C3}`,
		"\x00":                    `\u{0000}`,
		"a\u200cb\u200d\u2060":    `a\u{200C}b\u{200D}\u{2060}`,
		"a\u1160\uffa0\U0001d159": `a\u{1160}\u{FFA0}\u{1D159}`,
		"\U000e0041\u061c\u180e":  `\u{E0041}\u{061C}\u{180E}`,
		`\u{200B}`:                `\u{200B}`,
	} {
		got, hidden := visible.Reveal(text)
		if got != want || hidden != (want != text) {
			t.Errorf("Reveal(%q) = %q, %t, want %q", text, got, hidden, want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"Sends mail.\n\tTo: Ünal ☎ ⚠️": "Sends mail.\n\tTo: Ünal ☎ ⚠️",
		"zero\u200bwidth":              "zerowidth",
		"a\u202eb\u2066c":              "abc",
		"no\u00a0break\u2028line":      "no break\nline",
		"hi\U000e0068\U000e0069":       "hi",
		"x\ufe0f\u200b\ufe0f":          "x",
		"a\xffb\x1b[31m":               "ab[31m",
	} {
		if got := visible.Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzReveal(f *testing.F) {
	f.Add("a\u200b\xff")
	f.Add("⚠️\ufe0f")
	f.Fuzz(func(t *testing.T, text string) {
		shown, hidden := visible.Reveal(text)
		if !utf8.ValidString(shown) || hidden != (shown != text) {
			t.Errorf("Reveal(%q) = %q, %t", text, shown, hidden)
		}
		plain := visible.Plain(text)
		if _, hides := visible.Reveal(plain); hides || visible.Plain(plain) != plain || !hidden && plain != text {
			t.Errorf("Plain(%q) = %q", text, plain)
		}
		if _, again := visible.Reveal(shown); again {
			t.Errorf("Reveal(%q) = %q still hides something", text, shown)
		}
		if strings.ContainsAny(shown, "\x1b\r\x00\u200b\u202e") {
			t.Errorf("Reveal(%q) = %q", text, shown)
		}
	})
}
