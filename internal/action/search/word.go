// Package search has the index of actions by their words: how texts are cut into
// words, and how a worker fills the index from the events. The arguments are indexed
// as viewers see them, so that nobody finds an action by a text that they may not read.
//
// It does not decide who may search, and does not show actions.
package search

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/countersign-dev/countersign/internal/redact"
)

const (
	// maxWord is the number of characters of a word that count.
	maxWord = 64
	// maxWords bounds the distinct words of an action; the later ones are not found.
	maxWords = 10_000
)

// Words is a parsed search: words that an action has to have. The last one may be
// the beginning of a word, and then ends with *.
type Words []string

// Parse returns the words of a text that a person typed; none if it has no letter and
// no digit.
func Parse(text string) Words {
	var all Words
	prefix := false
	split(fold(text), func(run string, spaced bool) {
		if spaced {
			all, prefix = append(all, cut(run)), true
			return
		}
		pairs := pairsOf(run)
		if len(pairs) > 1 {
			pairs = pairs[:len(pairs)-1] // a single character, which ends a text alone
		}
		all, prefix = append(all, pairs...), len(pairs[len(pairs)-1]) == len(run)
	})
	if n := len(all); prefix {
		all[n-1] += "*"
	}
	return all
}

// index is the set of words of an action, in the order of their first place.
type index struct {
	seen map[string]bool
	all  []string
}

func newIndex(texts ...string) *index {
	x := &index{seen: make(map[string]bool), all: []string{}}
	for _, text := range texts {
		x.text(text)
	}
	return x
}

// json returns the words as a JSON array.
func (x *index) json() []byte {
	text, _ := json.Marshal(x.all) // strings in UTF-8 always can
	return text
}

func (x *index) add(word string) {
	if !x.seen[word] && len(x.all) < maxWords {
		x.seen[word] = true
		x.all = append(x.all, word)
	}
}

func (x *index) text(text string) {
	split(fold(text), func(run string, spaced bool) {
		if spaced {
			x.add(cut(run))
			return
		}
		for _, pair := range pairsOf(run) {
			x.add(pair)
		}
	})
}

// args adds the texts and numbers of arguments as a viewer sees them.
func (x *index) args(externalID string, args json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(redact.JSON(redact.Mail(externalID, args))))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) == nil {
		x.value(value)
	}
}

func (x *index) value(value any) {
	switch v := value.(type) {
	case string:
		x.text(strings.ReplaceAll(v, redact.Redacted, " "))
	case json.Number:
		x.text(v.String())
	case []any:
		for _, item := range v {
			x.value(item)
		}
	case map[string]any:
		for name, member := range v {
			// The name of an argument is in every call of its tool; a name that is none,
			// such as an address, is data.
			if strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != '-' && !letter(r) }) {
				x.text(name)
			}
			x.value(member)
		}
	}
}

// fold returns a text in which the case of letters, accents, the width of characters and
// characters that do not show make no difference.
func fold(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0 {
		return strings.ToLower(text)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cf) {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
	return norm.NFC.String(cases.Fold().String(text))
}

// split calls each for the runs of letters and digits of a folded text. spaced reports
// whether the run is a word: of scripts without spaces it may be several.
func split(text string, each func(run string, spaced bool)) {
	begin, spaced := -1, false
	for i, r := range text {
		in, of := letter(r), !unspaced(r)
		if begin >= 0 && (!in || of != spaced) {
			each(text[begin:i], spaced)
			begin = -1
		}
		if in && begin < 0 {
			begin, spaced = i, of
		}
	}
	if begin >= 0 {
		each(text[begin:], spaced)
	}
}

func letter(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.Mc) }

// unspaced reports whether a character is of a script that is written without spaces.
func unspaced(r rune) bool {
	return r >= 0x0e00 && (r == 'ー' ||
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// cut returns the part of a word that counts.
func cut(word string) string {
	n := 0
	for i := range word {
		if n++; n > maxWord {
			return word[:i]
		}
	}
	return word
}

// pairsOf returns each two characters in a row, and then the last character alone.
func pairsOf(run string) []string {
	var pairs []string
	before := -1
	for i, r := range run {
		if before >= 0 {
			pairs = append(pairs, run[before:i+len(string(r))])
		}
		before = i
	}
	return append(pairs, run[before:])
}
