package catalog

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// class is the kind of effect of a tool or of a question.
type class int

const (
	classUnknown class = iota
	classRead
	classWrite
	classDestroy
)

// destructive are words for irreversible effects.
const destructive = "delete remove erase drop forget clear discard purge destroy wipe trash rid uninstall"

var (
	isDestructive, isDestructiveStem = wordSet(destructive), wordSet(stemmed(destructive))

	isReading = wordSet(`get read list search find show view look fetch retrieve query browse describe display
		print see check compare lookup download summarize count what which who whose where how`)
	// isAsking reports whether a word is a verb that begins a yes-no question.
	isAsking = wordSet("is are was were am does did has have")
	// isAmbiguous reports whether a verb is also a noun or has several classes.
	isAmbiguous = wordSet("open file report test draft filter approve close access export generate import")
)

// The factors of the scores of tools of another class than the question's.
const (
	factorOtherClass  = 0.7
	factorDestructive = 0.6
)

// classOfQuestion returns the class of a question: destructive if any word or
// phrase is, else that of its first verb or interrogative, if that precedes
// every other content word.
func classOfQuestion(text string) class {
	words := splitWords(text)
	words = words[:min(len(words), maxQueryWords)]
	if slices.ContainsFunc(words, isDestructive) {
		return classDestroy
	}
	for _, phrase := range takePhrases(slices.Clone(words)) {
		if slices.ContainsFunc(synonyms().of[phrase], isDestructiveStem) {
			return classDestroy
		}
	}
	if len(words) > 0 && isAsking(words[0]) {
		return classRead
	}
	for _, word := range words {
		switch {
		case isReading(word):
			return classRead
		case isAmbiguous(word):
			return classUnknown
		case isActing(word):
			return classWrite
		case !isFunctionWord(word):
			return classUnknown
		}
	}
	return classUnknown
}

// class returns the class of a tool by the first verb of its name, or else by
// its risk.
func (t *Tool) class() class {
	for _, word := range splitWords(t.Key.Action) {
		switch {
		case isDestructive(word):
			return classDestroy
		case isReading(word):
			return classRead
		case isActing(word) && !isAmbiguous(word):
			return classWrite
		}
	}
	switch t.Risk {
	case policy.RiskDanger:
		return classDestroy
	case policy.RiskRead:
		return classRead
	case policy.RiskWrite:
	}
	return classUnknown
}

// classFactor returns the factor of a tool's score for a question of a class.
func classFactor(question, tool class) float64 {
	switch {
	case tool == classDestroy && question != classDestroy:
		return factorDestructive
	case question == classUnknown || tool == classUnknown || question == tool:
		return 1
	}
	return factorOtherClass
}

// destructiveLater moves the first non-destructive tool before the destructive
// ones at the beginning, unless one of those has the name in the text.
func destructiveLater(found []*Tool, text string) {
	if len(found) == 0 || found[0].named(text) {
		return
	}
	at := slices.IndexFunc(found, func(t *Tool) bool { return t.class() != classDestroy })
	if at > 0 {
		first := found[at]
		copy(found[1:at+1], found[:at])
		found[0] = first
	}
}

// named reports whether a text is a name of the tool.
func (t *Tool) named(text string) bool {
	return text == strings.ToLower(t.Key.String()) || text == strings.ToLower(t.Key.Action) || text == t.FullName.String()
}
