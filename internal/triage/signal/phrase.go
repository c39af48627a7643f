package signal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

const (
	// maxSentence limits the words that are matched together.
	maxSentence = 128
	maxWord     = 40
	defaultGap  = 3
)

// phrases is an index over the phrases of several lists. A text is split into
// words once; a word that begins no phrase costs one look-up.
type phrases struct {
	words map[string]uint32 // numbered from 1; 0 is every other word
	// starts holds the phrases by their first word.
	starts [][]phrase
	lists  int
}

// phrase is a sequence of sets of words.
type phrase struct {
	list     list
	number   int // unique among all phrases
	elements []element
}

type element struct {
	words []uint32
	// gap is the number of other words allowed before it.
	gap int
}

// hit is the result of matching one list.
type hit struct {
	// first and second are the numbers of two different matched phrases, or 0.
	first, second int
	// at is the offset of the first of them.
	at       int
	evidence string
}

// hits has one entry per list.
type hits [listCount]hit

func (h *hits) has(l list) bool { return h[l].first != 0 }

// begins reports whether a phrase occurs in the first characters of a text.
func (h *hits) begins(l list, characters int) bool { return h.has(l) && h[l].at < characters }

// addPhrases parses the lines of a list.
func (p *phrases) addPhrases(l list, lines []string) error {
	for _, line := range lines {
		elements, err := p.parse(line)
		if err != nil {
			return fmt.Errorf("list %d: phrase %q: %w", l, line, err)
		}
		p.lists++
		for _, first := range elements[0].words {
			for len(p.starts) <= int(first) {
				p.starts = append(p.starts, nil)
			}
			p.starts[first] = append(p.starts[first], phrase{l, p.lists, elements[1:]})
		}
	}
	return nil
}

func (p *phrases) parse(line string) ([]element, error) {
	var elements []element
	gap := 0
	for part := range strings.FieldsSeq(line) {
		if after, found := strings.CutPrefix(part, "*"); found {
			gap = defaultGap
			if after != "" {
				n, err := strconv.Atoi(after)
				if err != nil {
					return nil, fmt.Errorf("invalid number of words %q", after)
				}
				gap = n
			}
			continue
		}
		e := element{gap: gap}
		for word := range strings.SplitSeq(part, "|") {
			e.words = append(e.words, p.number(word))
		}
		elements, gap = append(elements, e), 0
	}
	if len(elements) == 0 || elements[0].gap > 0 {
		return nil, fmt.Errorf("it begins with no word")
	}
	return elements, nil
}

func (p *phrases) number(word string) uint32 {
	if n, ok := p.words[word]; ok {
		return n
	}
	n := uint32(len(p.words) + 1)
	p.words[word] = n
	return n
}

// word is a word of a sentence: its number and its offset.
type word struct {
	number     uint32
	start, end int32
}

// find matches all phrases in a text and adds the results to found.
func (p *phrases) find(text string, found *hits) {
	text = composed(text)
	p.sentences(text, func(sentence []word) { p.match(text, sentence, found) })
}

// each calls yield with every place of a text, in the form of composed, at
// which a phrase of a list occurs.
func (p *phrases) each(text string, l list, yield func(start, end int)) {
	p.sentences(text, func(sentence []word) {
		for i, w := range sentence {
			if w.number == 0 || int(w.number) >= len(p.starts) {
				continue
			}
			for _, ph := range p.starts[w.number] {
				if ph.list != l {
					continue
				}
				if end, ok := follow(sentence, i+1, ph.elements); ok {
					yield(int(w.start), int(sentence[end-1].end))
				}
			}
		}
	})
}

// sentences splits a text into sentences of at most maxSentence words. It
// reuses the slice that it passes on.
func (p *phrases) sentences(text string, each func([]word)) {
	var sentence [maxSentence]word
	n := 0
	var letters [maxWord]byte
	for i := 0; i < len(text); {
		start := i
		size := 0
		i, size = scanWord(text, i, &letters)
		if size > 0 {
			if n == maxSentence {
				each(sentence[:n])
				n = 0
			}
			sentence[n] = word{p.words[string(letters[:size])], int32(start), int32(i)}
			n++
			continue
		}
		if i > start { // a word too long for any list
			continue
		}
		var ends bool
		i, ends = skipSeparator(text, i)
		if ends && n > 0 {
			each(sentence[:n])
			n = 0
		}
	}
	each(sentence[:n])
}

// match matches the phrases in one sentence.
func (p *phrases) match(text string, sentence []word, found *hits) {
	for i, w := range sentence {
		if w.number == 0 || int(w.number) >= len(p.starts) {
			continue
		}
		for _, ph := range p.starts[w.number] {
			h := &found[ph.list]
			if h.first == ph.number || h.second != 0 {
				continue
			}
			end, ok := follow(sentence, i+1, ph.elements)
			switch {
			case !ok:
			case h.first == 0:
				h.first, h.at = ph.number, int(w.start)
				h.evidence = text[w.start:sentence[end-1].end]
			default:
				h.second = ph.number
			}
		}
	}
}

// follow reports whether the elements match from a place of the sentence, and
// returns the place after the last.
func follow(sentence []word, at int, elements []element) (int, bool) {
	if len(elements) == 0 {
		return at, true
	}
	for skip := 0; skip <= elements[0].gap && at+skip < len(sentence); skip++ {
		if !slices.Contains(elements[0].words, sentence[at+skip].number) {
			continue
		}
		if end, ok := follow(sentence, at+skip+1, elements[1:]); ok {
			return end, true
		}
	}
	return 0, false
}

// composed returns a text in the compatibility form, in which full-width and
// mathematical letters are plain letters.
func composed(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return norm.NFKC.String(text)
		}
	}
	return text
}

// scanWord reads a word into letters, in lower case and without accents, and
// returns the place after it and its length. The length is 0 without a word, or
// if the word is too long.
func scanWord(text string, at int, letters *[maxWord]byte) (end, size int) {
	latin, other := false, false
	i := at
	for i < len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			latin = true
		case c >= 'A' && c <= 'Z':
			latin = true
			c += 'a' - 'A'
		case c == '&' && size > 0 && i+1 < len(text) && isASCIILetter(text[i+1]):
		case c < utf8.RuneSelf:
			return finish(text, at, i, size, latin && other, letters)
		default:
			r, width := utf8.DecodeRuneInString(text[i:])
			if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Cf, r) {
				return finish(text, at, i, size, latin && other, letters)
			}
			if r > 0x24f {
				other = true
			}
			size = appendRune(letters, size, plainRune(r))
			i += width
			continue
		}
		if size < maxWord {
			letters[size] = c
		}
		size++
		i++
	}
	return finish(text, at, i, size, latin && other, letters)
}

// finish ends a word. A word of mixed scripts is read by its appearance.
func finish(text string, at, end, size int, mixed bool, letters *[maxWord]byte) (int, int) {
	if size > maxWord {
		return end, 0
	}
	if mixed {
		size = copy(letters[:], lookalike.Skeleton(strings.ToLower(text[at:end])))
	}
	return end, size
}

func appendRune(letters *[maxWord]byte, size int, r rune) int {
	switch {
	case r == 0:
		return size
	case r == 'ß':
		return appendRune(letters, appendRune(letters, size, 's'), 's')
	case size+utf8.UTFMax > maxWord:
		return maxWord + 1
	}
	return size + utf8.EncodeRune(letters[size:], r)
}

// plainRune returns a lower-case letter without its accent, or 0 for an
// invisible or combining character.
func plainRune(r rune) rune {
	if unicode.IsMark(r) || unicode.Is(unicode.Cf, r) {
		return 0
	}
	r = unicode.ToLower(r)
	switch r {
	case 'ø':
		return 'o'
	case 'ł':
		return 'l'
	case 'ı':
		return 'i'
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	if parts := norm.NFD.Properties(buf[:n]).Decomposition(); len(parts) > 0 {
		base, _ := utf8.DecodeRune(parts)
		return base
	}
	return r
}

func isASCIILetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// skipSeparator skips the text between words, including web addresses, and
// reports whether a sentence ends there.
func skipSeparator(text string, at int) (end int, ends bool) {
	c := text[at]
	switch c {
	case '.', '!', '?':
		return at + 1, at+1 == len(text) || text[at+1] <= ' '
	case '\n':
		end = at + 1
		for end < len(text) && (text[end] == ' ' || text[end] == '\r' || text[end] == '\t' || text[end] == '>') {
			end++
		}
		return end, end < len(text) && text[end] == '\n'
	case ':':
		if strings.HasPrefix(text[at:], "://") {
			end = at
			for end < len(text) && text[end] > ' ' {
				end++
			}
			return end, false
		}
	}
	if c < utf8.RuneSelf {
		return at + 1, false
	}
	_, width := utf8.DecodeRuneInString(text[at:])
	return at + width, false
}
