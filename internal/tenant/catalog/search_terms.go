package catalog

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"

	"github.com/countersign-dev/countersign/internal/fault"
)

// stems returns the words of a text as terms of the index, each once: in lower
// case, split before capitals, and reduced to their stem by Porter2.
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

// queryTerms returns the terms of a query, without function words.
func queryTerms(text string) []string {
	terms := stems(strings.Join(slices.DeleteFunc(splitWords(text), isFunctionWord), " "))
	return terms[:min(len(terms), maxQueryTerms)]
}

// maxStemBytes bounds what is stemmed; no English word is longer.
const maxStemBytes = 40

func stemOf(word string) string {
	if len(word) > maxStemBytes {
		return word
	}
	return english.Stem(word, true)
}

// splitWords splits a text at everything that is no letter, digit or mark, and
// before capitals, as in createIssue and HTTPServer, and returns the words in
// lower case. Format characters, which do not show, split nothing.
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

// corrections returns the words nearest to a misspelt one: those that differ by
// one edit, or by two from eight characters on. Words of fewer than four
// characters have none.
func corrections(word string, vocabularies ...[]string) []string {
	const minLength, longLength = 4, 8
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
