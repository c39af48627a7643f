package classify

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a word of a text, in lower case.
type word struct {
	hash uint64
	// upper reports whether the word has at least two letters, all of them
	// capitals.
	upper bool
	// capital reports whether the word begins with a capital.
	capital bool
}

// Classes of tokens that are replaced: numbers, amounts of money, addresses,
// links and marks.
const (
	tokenNumber uint64 = iota + 101
	tokenMoney
	tokenPercent
	tokenTime
	tokenMail
	tokenLink
	tokenQuestion
	tokenExclamation
	tokenCode
)

// words splits a text into at most limit words. Numbers, amounts, addresses and
// links are replaced by their class, since their values do not generalise.
func (v vocabulary) words(text string, limit int) []word {
	out := make([]word, 0, min(limit, len(text)/5+4))
	for i := 0; i < len(text) && len(out) < limit; {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '時' && len(out) > 0 && out[len(out)-1].hash == tokenNumber:
			out[len(out)-1].hash = tokenTime
		case unspaced(r):
			next, width := utf8.DecodeRuneInString(text[i+size:])
			if unspaced(next) {
				out = append(out, word{hash: runePair(r, next)})
				if after, _ := utf8.DecodeRuneInString(text[i+size+width:]); !unspaced(after) {
					size += width
				}
			} else {
				out = append(out, word{hash: runePair(r, 0)})
			}
		case inWord(r):
			w, end := scan(text, i)
			switch n := len(out); {
			case n > 0 && out[n-1].hash == tokenNumber && clock(text[i:end]):
				out[n-1].hash = tokenTime
			case text[i] <= '9' && isDigit(text[i]) && clock(strings.TrimLeft(text[i:end], "0123456789:.")):
				out = append(out, word{hash: tokenTime})
			default:
				out = append(out, w)
			}
			i = end
			continue
		case r == '?' || r == '？':
			out = append(out, word{hash: tokenQuestion})
		case r == '!' || r == '！':
			out = append(out, word{hash: tokenExclamation})
		case (r == '$' || r == '€' || r == '£' || r == '¥') && i+size < len(text) && isDigit(text[i+size]):
			_, end := scan(text, i+size)
			out = append(out, word{hash: tokenMoney})
			i = end
			continue
		case r == '%' && len(out) > 0 && out[len(out)-1].hash == tokenNumber:
			out[len(out)-1].hash = tokenPercent
		}
		i += size
	}
	return out
}

// unspaced reports whether a letter is of a script without spaces between
// words. Pairs of such letters stand for words.
func unspaced(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー'
}

func runePair(first, second rune) uint64 { return mix(uint64(first)<<32 | uint64(second)) }

// clock reports whether a word after a number makes it a time of day.
func clock(word string) bool {
	if len(word) > 6 {
		return false
	}
	switch strings.ToLower(word) {
	case "am", "pm", "a.m", "p.m", "h", "hrs", "uhr", "heures", "horas", "ore", "o'clock":
		return true
	}
	return false
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// inner reports whether a mark may occur within a word: don't, 10:30, a@b.c,
// https://a/b.
func inner(b byte) bool {
	return b == '\'' || b == '@' || b == '.' || b == ':' || b == '/' || b == '_' || b == ','
}

// shape counts the characters of a word during the scan.
type shape struct {
	letters, digits, capitals, marks int
	at, colon, slash, dot            bool
	first                            bool // begins with a capital
}

// scan reads the word at i and returns the index after it.
func scan(text string, i int) (word, int) {
	var s shape
	h := uint64(fnvOffset)
	start := i
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !inWord(r) || unspaced(r) {
			next := i + size
			if size != 1 || !inner(text[i]) || !continues(text, next, s) {
				break
			}
			s.mark(text[i])
			if text[i] != '\'' {
				h = (h ^ uint64(text[i])) * fnvPrime
			}
			i = next
			continue
		}
		h = s.letter(h, r, i == start)
		i += size
	}
	return s.word(h), i
}

// continues reports whether a word continues after a mark.
func continues(text string, next int, s shape) bool {
	if next >= len(text) {
		return false
	}
	if text[next-1] == ',' && (s.letters > 0 || !isDigit(text[next])) {
		return false
	}
	if text[next] == '/' {
		return text[next-1] == ':' || text[next-1] == '/'
	}
	r, _ := utf8.DecodeRuneInString(text[next:])
	return inWord(r)
}

func (s *shape) mark(b byte) {
	s.marks++
	switch b {
	case '@':
		s.at = true
	case ':':
		s.colon = true
	case '/':
		s.slash = true
	case '.':
		s.dot = true
	}
}

// letter counts a letter or digit and adds it to the hash in lower case.
func (s *shape) letter(h uint64, r rune, first bool) uint64 {
	if r < utf8.RuneSelf {
		switch {
		case r >= 'A' && r <= 'Z':
			s.capitals++
			s.letters++
			s.first = s.first || first
			r += 'a' - 'A'
		case r >= 'a':
			s.letters++
		default:
			s.digits++
		}
		return (h ^ uint64(r)) * fnvPrime
	}
	if unicode.IsUpper(r) {
		s.capitals++
		s.first = s.first || first
	}
	s.letters++
	return (h ^ uint64(unicode.ToLower(r))) * fnvPrime
}

func (s *shape) word(h uint64) word {
	switch {
	case s.at && s.dot:
		return word{hash: tokenMail}
	case s.slash && (s.colon || s.dot) && s.letters > 3:
		return word{hash: tokenLink}
	case s.letters == 0 && s.colon:
		return word{hash: tokenTime}
	case s.letters == 0:
		return word{hash: tokenNumber}
	case s.digits > 2:
		return word{hash: tokenCode}
	}
	return word{hash: h, upper: s.letters > 1 && s.capitals == s.letters, capital: s.first}
}

// characters adds the runs of three to five letters of every word, with its
// ends.
func characters(c *collector, space uint64, text string, limit int) {
	var run [24]uint64
	n, count := 0, 0
	run[0] = '<'
	n = 1
	for i := 0; i <= len(text); {
		r, size := utf8.RuneError, 1
		if i < len(text) {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		if inWord(r) {
			if n < len(run)-1 {
				run[n] = uint64(unicode.ToLower(r))
				n++
			}
			continue
		}
		if n > 1 {
			run[n] = '>'
			runs(c, space, run[:n+1])
			if count++; count >= limit {
				return
			}
		}
		n = 1
	}
}

func runs(c *collector, space uint64, letters []uint64) {
	for i := range letters {
		h := uint64(fnvOffset)
		for j := i; j < min(len(letters), i+5); j++ {
			h = (h ^ letters[j]) * fnvPrime
			if j-i >= 2 {
				c.add(space, h)
			}
		}
	}
}
