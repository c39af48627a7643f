// Package visible shows people all of a text that somebody else wrote:
// characters of no width, blank letters, marks that turn the direction of
// reading, tags and control characters are escaped.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text writes a text as Reveal does.
func Text(text string) string {
	shown, _ := Reveal(text)
	return shown
}

// Reveal writes a text so that all of it shows: what is invisible, reorders
// what is read or controls a terminal stands there as \u{200B}. It reports
// whether there was any such character. Letters of other scripts that look
// like Latin ones stay as they are.
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

// Plain returns a text for a model to read, without the characters that Reveal
// would escape: a model reads them, and people who looked at the text did not.
// Spaces of another kind become spaces, and separators of lines become ends of
// lines.
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

// hiddenRune reports whether a rune does not show as what it is, behind another one.
func hiddenRune(r, before rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == ' ':
		return false
	case r == 0xfe0f && (unicode.Is(unicode.So, before) || before < unicode.MaxASCII && (unicode.IsDigit(before) || before == '#' || before == '*')):
		// It asks for the emoji's picture, as in ⚠️; a second one hides.
		return false
	case 0xfe00 <= r && r <= 0xfe0f, 0xe0100 <= r && r <= 0xe01ef, 0x180b <= r && r <= 0x180f:
		return true // variation selectors, which can carry bytes
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0, r == 0x2800, r == 0x1d159:
		return true // letters and symbols without a shape
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zs, unicode.Zl, unicode.Zp) || !assigned(r)
}

// assigned reports whether Unicode has given a code point to a character.
func assigned(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z)
}
