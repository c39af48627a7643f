package catalog

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"

	"github.com/countersign-dev/countersign/internal/fault"
)

// stems returns the words of a text as index terms without duplicates: in lower
// case, split before capitals, and stemmed by Porter2.
func stems(text string) []string {
	var found []string
	seen := make(map[string]bool)
	for _, word := range splitWords(text) {
		stem := stemOf(word)
		if !seen[stem] {
			seen[stem] = true
			found = append(found, stem)
		}
	}
	return found
}

// queryTerms returns the terms of a query, without function words. A phrase with
// synonyms is one term. A yes-no question is about a state.
func queryTerms(text string) []string {
	words := splitWords(text)
	words = words[:min(len(words), maxQueryWords)]
	phrases := takePhrases(words)
	if len(words) > 0 && isAsking(words[0]) {
		phrases = append(phrases, "state")
	}
	terms := append(phrases, stems(strings.Join(slices.DeleteFunc(words, isFunctionWord), " "))...)
	return terms[:min(len(terms), maxQueryTerms)]
}

// maxApart is the maximum number of words between the words of a phrase.
const maxApart = 4

// takePhrases returns the phrases in some words, and replaces their words by
// empty ones. If several begin with the same word it takes the longest.
func takePhrases(words []string) (found []string) {
	for i, word := range words {
		var best []int
		for _, p := range synonyms().phrases[stemOf(word)] {
			if at := p.find(words, i); len(at) > len(best) {
				best = at
			}
		}
		if best == nil {
			continue
		}
		parts := make([]string, len(best))
		for n, at := range best {
			parts[n], words[at] = stemOf(words[at]), ""
		}
		found = append(found, strings.Join(parts, "_"))
	}
	return found
}

// find returns the positions of the words of the phrase that begins at a word;
// nil if it does not begin there.
func (p phrase) find(words []string, from int) []int {
	at := []int{from}
	for _, part := range p.parts[1:] {
		next := at[len(at)-1] + 1
		end := next + 1
		if p.apart {
			end += maxApart
		}
		n := slices.IndexFunc(words[min(next, len(words)):min(end, len(words))], func(word string) bool { return stemOf(word) == part })
		if n < 0 {
			return nil
		}
		at = append(at, next+n)
	}
	return at
}

// maxStemBytes is the maximum length of a stemmed word; no English word is
// longer.
const maxStemBytes = 40

func stemOf(word string) string {
	if len(word) > maxStemBytes {
		return word
	}
	if base, irregular := baseForm[word]; irregular {
		word = base
	}
	return english.Stem(word, true)
}

// splitWords splits a text at characters other than letters, digits and marks,
// and before capitals, as in createIssue and HTTPServer, and returns the words
// in lower case. Format characters, which are invisible, do not split.
func splitWords(text string) []string {
	var found []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			found = append(found, string(word))
			word = word[:0]
		}
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case unicode.Is(unicode.Cf, r):
			continue
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end()
		}
		word = append(word, unicode.ToLower(r))
	}
	end()
	return found
}

// corrections returns the words nearest to a misspelt one: within one edit, or
// two for words of at least eight characters. Words of fewer than five
// characters have none.
func corrections(word string, vocabularies ...[]string) []string {
	const minLength, longLength = 5, 8
	length := len([]rune(word))
	if length < minLength || length > maxStemBytes {
		return nil
	}
	allowed := 1
	if length >= longLength {
		allowed = 2
	}
	var nearest []string
	for _, vocabulary := range vocabularies {
		for _, candidate := range vocabulary {
			if len(candidate) < minLength || len(candidate)-len(word) > allowed || len(word)-len(candidate) > allowed {
				continue
			}
			switch d := fault.EditDistance([]rune(word), []rune(candidate), allowed); {
			case d > allowed:
			case d < allowed:
				nearest, allowed = []string{candidate}, d
			default:
				nearest = append(nearest, candidate)
			}
		}
	}
	return nearest
}
