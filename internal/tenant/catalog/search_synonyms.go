package catalog

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// synonymGroups are groups of synonyms, one per line. They are general
// vocabulary of tools, independent of any source; a word may be in several
// groups. functionWords do not describe a tool's function, and verbs are the
// actions in tool names; actingVerbs are also actions but not parts of full
// names. Qualifiers weigh less than other words. irregularForms are words with
// their irregular forms, one word per line. A group with ">" has synonyms in one
// direction. A phrase is written with "_", or with "+" if its words may be
// separated. associations are words, each with associated words of tools.
var (
	//go:embed synonyms.txt
	synonymGroups string
	//go:embed associations.txt
	associations string
	//go:embed function_words.txt
	functionWords string
	//go:embed verbs.txt
	verbs string
	//go:embed acting_verbs.txt
	actingVerbs string
	//go:embed qualifiers.txt
	qualifiers string
	//go:embed irregular_forms.txt
	irregularForms string
)

var (
	isFunctionWord, isQualifier = wordSet(functionWords), wordSet(stemmed(qualifiers))
	isVerb, isActing            = wordSet(verbs), wordSet(verbs + " " + actingVerbs)
)

// stemmed returns the stems of a text's words.
func stemmed(text string) string { return strings.Join(stems(text), " ") }

// baseForm maps irregular forms to base forms.
var baseForm = newBaseForms(irregularForms)

func newBaseForms(text string) map[string]string {
	forms := make(map[string]string)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for _, form := range words[1:] {
			forms[form] = words[0]
		}
	}
	return forms
}

// wordSet returns a function that reports whether a text contains a word.
func wordSet(text string) func(word string) bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return func(word string) bool { return set[word] }
}

// synonymTable maps the stem of a word, or the stems of a phrase, to the stems
// of its synonyms.
type synonymTable struct {
	of map[string][]string
	// associated maps it to the stems of associated words.
	associated map[string][]string
	// words are the sorted stems with synonyms, and phrases the phrases with
	// synonyms, by first word.
	words   []string
	phrases map[string][]phrase
}

// phrase is a sequence of stems, adjacent or apart: "take+off" as in "take the
// song off".
type phrase struct {
	parts []string
	apart bool
}

// synonyms returns the table of synonymGroups. It is made for the first search, since
// it takes most of the time that a program needs to start.
var synonyms = sync.OnceValue(func() synonymTable { return newSynonyms(synonymGroups, associations) })

func newSynonyms(groups, associations string) synonymTable {
	table, known := synonymTable{of: make(map[string][]string), associated: make(map[string][]string), phrases: make(map[string][]phrase)}, make(map[string]bool)
	for line := range strings.Lines(groups) {
		from, to, directed := strings.Cut(line, ">")
		if !directed {
			to = from
		}
		targets := table.members(to, known)
		for _, word := range table.members(from, known) {
			for _, other := range targets {
				if other != word && !slices.Contains(table.of[word], other) {
					table.of[word] = append(table.of[word], other)
				}
			}
		}
	}
	for line := range strings.Lines(associations) {
		members := table.members(line, known)
		for _, other := range members[1:] {
			if other != members[0] && !slices.Contains(table.of[members[0]], other) {
				table.associated[members[0]] = append(table.associated[members[0]], other)
			}
		}
	}
	slices.Sort(table.words)
	return table
}

// members returns the words and phrases of a group, and adds new ones to the
// vocabulary.
func (t *synonymTable) members(group string, known map[string]bool) (members []string) {
	for text := range strings.FieldsSeq(group) {
		parts := stems(text)
		member := strings.Join(parts, "_")
		members = append(members, member)
		switch {
		case known[member]:
		case len(parts) > 1:
			t.phrases[parts[0]] = append(t.phrases[parts[0]], phrase{parts, strings.Contains(text, "+")})
		default:
			t.words = append(t.words, member)
		}
		known[member] = true
	}
	return members
}
