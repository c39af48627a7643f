// Package lookalike compares domains and addresses by their appearance: letters of
// other alphabets, punycode, digits for letters, and names of one changed letter. It
// has the well-known domains that others imitate. It reads no mail and no database.
package lookalike

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalike returns the Latin letter that a lower-case letter of another
// alphabet resembles in most fonts, or the letter itself. Full-width,
// mathematical and circled letters are decomposed before.
func lookalike(r rune) rune {
	switch r {
	case 'а', 'α', 'ɑ', 'ⱥ', 'ạ':
		return 'a'
	case 'ь', 'β', 'ƅ', 'Ь', 'ḃ', 'ɓ':
		return 'b'
	case 'с', 'ϲ', 'ᴄ', 'ƈ':
		return 'c'
	case 'ԁ', 'ɗ', 'đ', 'ժ':
		return 'd'
	case 'е', 'ҽ', 'є', 'ε', 'ɛ', '℮':
		return 'e'
	case 'ғ', 'ƒ', 'ք':
		return 'f'
	case 'ɡ', 'ց', 'ɠ', 'ǥ':
		return 'g'
	case 'һ', 'հ', 'ħ', 'ɦ':
		return 'h'
	case 'і', 'ι', 'ı', 'ɩ', 'ӏ', 'l', '1', '|', 'ⅼ', 'ǀ', 'ו', 'ן', 'ł', 'i':
		// i, l and 1 are mapped to one letter, since many fonts do not
		// distinguish them.
		return 'l'
	case 'ј', 'ϳ', 'ʝ':
		return 'j'
	case 'к', 'κ', 'ķ', 'ƙ', 'қ':
		return 'k'
	case 'м':
		return 'm'
	case 'ո', 'η', 'п', 'ռ', 'ŋ', 'ɴ':
		return 'n'
	case 'о', 'ο', 'σ', 'օ', 'ס', 'ө', '0', 'ø', 'ᴏ':
		return 'o'
	case 'р', 'ρ', 'ƿ', 'ϱ':
		return 'p'
	case 'ԛ', 'գ', 'զ':
		return 'q'
	case 'г', 'ᴦ', 'ɼ', 'ɽ':
		return 'r'
	case 'ѕ', 'ꜱ', 'ʂ', '5', '$':
		return 's'
	case 'т', 'τ', 'ƭ', 'ţ':
		return 't'
	case 'υ', 'ս', 'ʋ', 'ц', 'ᴜ':
		return 'u'
	case 'ν', 'ѵ', 'ᴠ', 'ט':
		return 'v'
	case 'ԝ', 'ω', 'ѡ', 'ա', 'ɯ', 'ᴡ', 'ш':
		return 'w'
	case 'х', 'χ', 'ҳ', 'ⅹ':
		return 'x'
	case 'у', 'γ', 'ү', 'ʏ', 'ყ', 'ỿ':
		return 'y'
	case 'ᴢ', 'ʐ', 'ƶ':
		return 'z'
	case '3':
		return 'e'
	case '4':
		return 'a'
	case '7':
		return 't'
	case '8':
		return 'b'
	}
	return r
}

// Skeleton returns a word by its appearance: letters of other alphabets become
// the Latin letters they resemble, accents and invisible characters are
// removed. Unlike in Canonical, digits stay.
func Skeleton(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == 'l' || r == 'i' || r == '|' || r == '$' {
			return r
		}
		if r < utf8.RuneSelf {
			return r
		}
		if r == 'і' || r == 'ι' || r == 'ı' || r == 'ɩ' {
			return 'i'
		}
		return lookalike(r)
	}, unaccented(word))
}

// Canonical returns a form of a domain label that is equal for labels that look
// alike: the skeleton, with digits as the letters they resemble, and rn and vv
// as m and w.
func Canonical(label string) string {
	plain := strings.Map(lookalike, unaccented(label))
	if strings.Contains(plain, "rn") || strings.Contains(plain, "vv") {
		plain = strings.ReplaceAll(strings.ReplaceAll(plain, "rn", "m"), "vv", "w")
	}
	return plain
}

// unaccented returns a word in lower case of the compatibility form, without
// marks and invisible characters.
func unaccented(word string) string {
	ascii := true
	for i := range len(word) {
		ascii = ascii && word[i] < utf8.RuneSelf
	}
	if ascii {
		return word
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsMark(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(word))
}

// MixesScripts reports whether a label mixes Latin letters with Cyrillic, Greek
// or Armenian ones. Mixing with Chinese, Japanese and Korean is usual.
func MixesScripts(label string) bool {
	latin, foreign := false, false
	for _, r := range label {
		switch {
		case r < utf8.RuneSelf:
			latin = latin || ('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
		case unicode.In(r, unicode.Latin):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee):
			foreign = true
		}
	}
	return latin && foreign
}

// Near reports whether the distance of two different words is one insertion,
// deletion, substitution or transposition.
func Near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
