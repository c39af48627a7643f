package catalog

import (
	_ "embed"
	"slices"
	"strings"
)

// synonymGroups are words that people and tools use for one another, a group a
// line. They are the general vocabulary of tools, in no source's own terms; a
// word may be in several groups. functionWords say nothing about what a tool
// does, and verbs say what a tool does in its name; actingVerbs say that too, and
// are no part of full names. Qualifiers weigh less than other words.
// irregularForms are words with their irregular forms, a word a line. A group
// with ">" has synonyms in one direction; a phrase of several words is written
// with "_", and with "+" if its words may stand apart. associations are words,
// each with words of tools that come with it.
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

// stemmed returns a text of the stems of the words of another.
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

// wordSet returns a function that reports whether a word is one of a text's.
func wordSet(text string) func(word string) bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return func(word string) bool { return set[word] }
}

// synonymTable maps the stem of a word, or of the words of a phrase, to the stems
// of its synonyms.
type synonymTable struct {
	of map[string][]string
	// far maps it to the stems of words that come with it.
	far map[string][]string
	// words are the stems that have synonyms, in order, and phrases those of several
	// words, by their first word.
	words   []string
	phrases map[string][]phrase
}

// phrase is the stems of words that stand together, or apart: as "take+off" in
// "take the song off".
type phrase struct {
	parts []string
	apart bool
}

// synonyms is the table of synonymGroups.
var synonyms = newSynonyms(synonymGroups, associations)

func newSynonyms(groups, associations string) synonymTable {
	table, known := synonymTable{of: make(map[string][]string), far: make(map[string][]string), phrases: make(map[string][]phrase)}, make(map[string]bool)
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
				table.far[members[0]] = append(table.far[members[0]], other)
			}
		}
	}
	slices.Sort(table.words)
	return table
}

// members returns the words and phrases of a group, and adds those that are not
// known yet to the vocabulary.
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
