package catalog

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
)

// synonymGroups are words that people and tools use for one another, a group a
// line. They are the general vocabulary of tools, in no source's own terms; a
// word may be in several groups. functionWords say nothing about what a tool
// does, and verbs say what a tool does in its name.
var (
	//go:embed synonyms.txt
	synonymGroups string
	//go:embed function_words.txt
	functionWords string
	//go:embed verbs.txt
	verbs string
)

var isFunctionWord, isVerb = wordSet(functionWords), wordSet(verbs)

// wordSet returns a function that reports whether a word is one of a text's.
func wordSet(text string) func(word string) bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return func(word string) bool { return set[word] }
}

// synonymTable maps the stem of a word to the stems of its synonyms.
type synonymTable struct {
	of map[string][]string
	// words are the stems that have synonyms, in order.
	words []string
}

// synonyms is the table of synonymGroups.
var synonyms = newSynonyms(synonymGroups)

func newSynonyms(groups string) synonymTable {
	table := synonymTable{of: make(map[string][]string)}
	for group := range strings.Lines(groups) {
		members := stems(group)
		for _, word := range members {
			for _, other := range members {
				if other != word && !slices.Contains(table.of[word], other) {
					table.of[word] = append(table.of[word], other)
				}
			}
		}
	}
	table.words = slices.Sorted(maps.Keys(table.of))
	return table
}
