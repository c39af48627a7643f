package fault

import (
	"slices"
	"strconv"
	"strings"
)

const (
	// maxSuggested is the maximum number of names in a suggestion.
	maxSuggested = 3
	// maxMisspelt is the maximum length of a name that is compared, in bytes.
	maxMisspelt = 200
	// minBeginning is the minimum length of a name that is matched as a prefix.
	minBeginning = 3
)

// Nearest returns up to three of the known names that are similar to a misspelt
// name, best first. A name is similar within one edit per three characters, and
// at most three edits. If there are none, it returns the names that begin with
// name. Case is ignored. The known names must be visible to the caller.
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

// Suggestion returns the end of an error message about an unknown name: a
// question with the nearest names, or "".
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

// Unknown returns a NotFound error for a name, with a suggestion.
func Unknown(noun, name string, known []string) error {
	return New(NotFound, "no such %s %s%s", noun, strconv.Quote(name), Suggestion(Nearest(name, known)))
}

// Misspelt returns the error of Unknown if name is unknown but similar to a
// known name, else nil.
func Misspelt(noun, name string, known []string) error {
	if len(Nearest(name, known)) == 0 || slices.Contains(known, name) {
		return nil
	}
	return Unknown(noun, name, known)
}

// EditDistance returns the number of insertions, deletions, substitutions and
// transpositions that turn a into b (optimal string alignment), or a larger
// number than limit if it exceeds limit.
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
