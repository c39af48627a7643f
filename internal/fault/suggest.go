package fault

import (
	"slices"
	"strconv"
	"strings"
)

const (
	// maxSuggested is how many names a suggestion has.
	maxSuggested = 3
	// maxMisspelt is the length up to which names are compared, in bytes.
	maxMisspelt = 200
	// minBeginning is the length from which a name may be the beginning of another.
	minBeginning = 3
)

// Nearest returns the known names that a misspelt name may stand for, at most
// three and in order: those with the fewest edits, of which every third
// character may have one, up to three; else those that begin with the name.
// Upper and lower case are the same. The known names must be names that the
// caller may see.
func Nearest(name string, known []string) []string {
	if name == "" || len(name) > maxMisspelt {
		return nil
	}
	lower := strings.ToLower(name)
	wanted := []rune(lower)
	allowed := max(1, min(len(wanted)/3, 3))
	var near, longer []string
	for _, candidate := range known {
		if len(candidate) > maxMisspelt {
			continue
		}
		folded := strings.ToLower(candidate)
		if len(wanted) >= minBeginning && strings.HasPrefix(folded, lower) {
			longer = append(longer, candidate)
		}
		switch d := EditDistance(wanted, []rune(folded), allowed); {
		case d > allowed:
		case d < allowed:
			near, allowed = []string{candidate}, d
		default:
			near = append(near, candidate)
		}
	}
	if len(near) == 0 {
		near = longer
	}
	slices.Sort(near)
	near = slices.Compact(near)
	return near[:min(len(near), maxSuggested)]
}

// Suggestion returns the end of a message about an unknown name: a question for
// the nearest names, or "" without any.
func Suggestion(nearest []string) string {
	if len(nearest) == 0 {
		return ""
	}
	quoted := make([]string, len(nearest))
	for i, name := range nearest {
		quoted[i] = strconv.Quote(name)
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}

// Unknown returns a NotFound error for a name of a thing, with the nearest of
// the known names.
func Unknown(noun, name string, known []string) error {
	return New(NotFound, "no such %s %s%s", noun, strconv.Quote(name), Suggestion(Nearest(name, known)))
}

// Misspelt returns the error of Unknown for a name with nearest names; nil for a
// name without any, and for one that is known.
func Misspelt(noun, name string, known []string) error {
	if len(Nearest(name, known)) == 0 || slices.Contains(known, name) {
		return nil
	}
	return Unknown(noun, name, known)
}

// EditDistance returns the number of insertions, deletions, substitutions and
// swaps of neighbours that make b of a (optimal string alignment), or more than
// limit where it is larger.
func EditDistance(a, b []rune, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	previous, current, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range current {
		current[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(current[j]+1, next[j-1]+1, current[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], previous[j-2]+1)
			}
			least = min(least, next[j])
		}
		if least > limit {
			return limit + 1
		}
		previous, current, next = current, next, previous
	}
	return current[len(b)]
}
