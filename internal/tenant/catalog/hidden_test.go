package catalog_test

import (
	"encoding/json"
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
		if got := catalog.Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestPlainSchema(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object"}`:     `{"type":"object"}`,
		`{ "title": "Ünal ☎" }`: `{ "title": "Ünal ☎" }`,
		`{"description":"\u200bsend \udb40\udc68","properties":{"a\u202e":{"enum":["b\u2066",12345678901234567890,null]}}}`: `{"description":"send ","properties":{"a":{"enum":["b",12345678901234567890,null]}}}`,
		"{\"title\":\"a\u200bb\"}": `{"title":"ab"}`,
		`{"title":"\u200b"`:        `{"type":"object"}`,
	} {
		if got := catalog.PlainSchema(json.RawMessage(schema)); string(got) != want {
			t.Errorf("PlainSchema(%s) = %s, want %s", schema, got, want)
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
		plain := catalog.Plain(text)
		if _, hides := catalog.Reveal(plain); hides || catalog.Plain(plain) != plain || !hidden && plain != text {
			t.Errorf("Plain(%q) = %q", text, plain)
		}
		if _, again := catalog.Reveal(shown); again {
			t.Errorf("Reveal(%q) = %q still hides something", text, shown)
		}
		if strings.ContainsAny(shown, "\x1b\r\x00\u200b\u202e") {
			t.Errorf("Reveal(%q) = %q", text, shown)
		}
	})
}
