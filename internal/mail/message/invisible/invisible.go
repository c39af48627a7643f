// Package invisible removes invisible characters from a text: zero-width
// characters, bidirectional controls, tags, variation selectors, soft hyphens.
// It keeps the joiners and selectors that scripts and emoji need. It is
// independent of mail.
package invisible

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Counts holds the number of removed characters by kind.
type Counts struct {
	ZeroWidth, Bidi, Tags, Selectors, SoftHyphens, Other int
}

// A base has at most maxMarks combining marks; more would cover other lines and
// compose slowly. firstMark is the first combining mark of Unicode.
const (
	maxMarks  = 10
	firstMark = 0x300
)

// Total returns how many characters were removed.
func (c Counts) Total() int {
	return c.ZeroWidth + c.Bidi + c.Tags + c.Selectors + c.SoftHyphens + c.Other
}

// Clean returns the visible text in Unicode's form NFC, and the counts of
// removed characters. Every kind of space becomes a space. The number of lines
// stays the same.
func Clean(text string) (string, Counts) {
	var counts Counts
	clean := counts.remove(text)
	// Composing changes the character before a selector, at most once more.
	for range 2 {
		if norm.NFC.IsNormalString(clean) {
			break
		}
		clean = counts.remove(norm.NFC.String(clean))
	}
	return clean, counts
}

// remove removes invisible characters and counts them.
func (c *Counts) remove(text string) string {
	i := firstSpecial(text)
	if i == len(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	b.WriteString(text[:i])
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	marks := 0
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r < 0x80 && r >= ' ' && r != 0x7f || r == '\n' || r == '\t' {
			b.WriteByte(byte(r))
			before, marks = r, 0
			i += size
			continue
		}
		after, _ := utf8.DecodeRuneInString(text[i+size:])
		i += size
		if r == utf8.RuneError && size == 1 {
			b.WriteRune(utf8.RuneError)
			before, marks = r, 0
			continue
		}
		if counter := c.of(r, before, after); counter != nil {
			*counter++
			continue
		}
		if r >= firstMark && unicode.Is(unicode.M, r) {
			if marks++; marks > maxMarks {
				c.Other++
				continue
			}
		} else {
			marks = 0
		}
		if space(r) {
			r = ' '
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// firstSpecial returns the index of the first byte that is not printable ASCII.
func firstSpecial(text string) int {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return i
		}
	}
	return len(text)
}

func space(r rune) bool {
	return r == 0xa0 || r == 0x1680 || r >= 0x2000 && r <= 0x200a || r == 0x2028 || r == 0x2029 || r == 0x202f ||
		r == 0x205f || r == 0x3000
}

// of returns the counter of an invisible character between two others, or nil
// if it is visible or needed.
func (c *Counts) of(r, before, after rune) *int {
	if r >= 0x100 && r < 0x2000 {
		switch r {
		case 0x180e:
			return &c.ZeroWidth
		case 0x034f, 0x061c, 0x115f, 0x1160, 0x17b4, 0x17b5:
			return &c.Other
		}
		if r >= 0x180b && r <= 0x180f && !unicode.Is(unicode.Mongolian, before) {
			return &c.Selectors
		}
		return nil
	}
	switch {
	case r == 0xad:
		return &c.SoftHyphens
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return &c.Other
	case r == 0x200c || r == 0x200d:
		if joins(r, before, after) {
			return nil
		}
		return &c.ZeroWidth
	case r == 0x200b || r >= 0x2060 && r <= 0x2064 || r == 0xfeff:
		return &c.ZeroWidth
	case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
		return &c.Bidi
	case r == 0x200e || r == 0x200f || r == 0x2065 || r >= 0x206a && r <= 0x206f || r == 0x2800 || r == 0x3164 ||
		r == 0xffa0 || r >= 0xfff0 && r <= 0xfffb || r >= 0x1d173 && r <= 0x1d17a || r == 0x1d159:
		return &c.Other
	case r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef:
		if selects(r, before) {
			return nil
		}
		return &c.Selectors
	case r >= 0xe0000 && r <= 0xe0fff:
		return &c.Tags
	}
	return nil
}

// joins reports whether a joiner changes the look of its neighbours: between
// letters of scripts with such forms, and between emoji.
func joins(r, before, after rune) bool {
	if before < 0x80 {
		return false
	}
	if r == 0x200d && emoji(after) && (emoji(before) || before == 0xfe0f) {
		return true
	}
	return unicode.In(before, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali,
		unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
		unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar)
}

func emoji(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff
}

// selects reports whether a selector chooses a form of the character before it.
func selects(r, before rune) bool {
	switch {
	case r == 0xfe0f || r == 0xfe0e:
		return emoji(before) || before >= '0' && before <= '9' || before == '#' || before == '*' || before == 0xa9 ||
			before == 0xae || before == 0x203c || before == 0x2049 || before == 0x2122 || before == 0x2139 ||
			before == 0x3030 || before == 0x303d || before == 0x3297 || before == 0x3299
	case r >= 0xe0100:
		return unicode.Is(unicode.Han, before)
	}
	return unicode.In(before, unicode.Han, unicode.Sm)
}

// Fold normalises a text for matching: only visible characters, in Unicode's
// form NFKC, lower case, runs of white space as one space.
func Fold(text string) string {
	text, _ = Clean(text)
	if !norm.NFKC.IsNormalString(text) {
		text, _ = Clean(norm.NFKC.String(text))
	}
	return strings.Join(strings.Fields(strings.ToLower(text)), " ")
}
