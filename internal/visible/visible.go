// Package visible makes hidden characters in untrusted text visible: characters
// without width, blank letters, bidirectional controls, tags and control
// characters are escaped.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text as Reveal does.
func Text(text string) string {
	shown, _ := Reveal(text)
	return shown
}

// Reveal escapes characters that are invisible, reorder the text or control a
// terminal, as in \u{200B}. It reports whether there were any. Letters of other
// scripts that resemble Latin ones stay.
func Reveal(text string) (shown string, hidden bool) {
	var b strings.Builder
	before := rune(0)
	for i, r := range text {
		escape := ""
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			escape = fmt.Sprintf(`\x{%02X}`, text[i])
		} else if hiddenRune(r, before) {
			escape = fmt.Sprintf(`\u{%04X}`, r)
		}
		if escape != "" {
			b.WriteString(escape)
			before, hidden = '}', true
			continue
		}
		b.WriteRune(r)
		before = r
	}
	return b.String(), hidden
}

// Plain returns a text for a model, without the characters that Reveal would
// escape: a model reads them, but a person who checks the text does not see
// them. Unusual spaces become spaces, and line separators become line ends.
func Plain(text string) string {
	if _, hidden := Reveal(text); !hidden {
		return text
	}
	var b strings.Builder
	before := rune(0)
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			continue
		}
		if hiddenRune(r, before) {
			switch {
			case unicode.Is(unicode.Zs, r):
				r = ' '
			case unicode.In(r, unicode.Zl, unicode.Zp):
				r = '\n'
			default:
				continue
			}
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// hiddenRune reports whether a rune is invisible or misleading after the rune
// before.
func hiddenRune(r, before rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == ' ':
		return false
	case r == 0xfe0f && (unicode.Is(unicode.So, before) || before < unicode.MaxASCII && (unicode.IsDigit(before) || before == '#' || before == '*')):
		// A variation selector requests the emoji form, as in ⚠️; a second one
		// hides.
		return false
	case 0xfe00 <= r && r <= 0xfe0f, 0xe0100 <= r && r <= 0xe01ef, 0x180b <= r && r <= 0x180f:
		return true // variation selectors, which can carry bytes
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0, r == 0x2800, r == 0x1d159:
		return true // letters and symbols without a shape
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zs, unicode.Zl, unicode.Zp) || !assigned(r)
}

// assigned reports whether Unicode assigns a code point to a character.
func assigned(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z)
}
