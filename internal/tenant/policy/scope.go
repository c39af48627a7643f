package policy

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/fault"
)

// ScopeQuietOverride is the scope that lets an employee send an urgent
// envelope during quiet hours.
const ScopeQuietOverride Scope = "quiet_hours:override"

// maxScopeLength is the maximum length of a scope, in bytes.
const maxScopeLength = 200

// Scope is a permission, or a pattern for several: words separated by colons, of
// which the last may be a star.
//
//	contacts:write   this permission
//	contacts:*       every permission that begins with contacts:
//	*                every permission
type Scope string

// ParseScope parses a scope or a pattern. The error is fault.Invalid.
func ParseScope(text string) (Scope, error) {
	if text == "" {
		return "", fault.New(fault.Invalid, "scope is empty; use one such as contacts:write, contacts:* or *")
	}
	if len(text) > maxScopeLength {
		return "", fault.New(fault.Invalid, "scope must be at most 200 bytes long")
	}
	segments := strings.Split(text, ":")
	for i, segment := range segments {
		last := i == len(segments)-1
		switch {
		case segment == "":
			return "", fault.New(fault.Invalid, "scope has an empty part; write words divided by single colons, such as contacts:write")
		case segment == "*" && last:
		case strings.Contains(segment, "*"):
			return "", fault.New(fault.Invalid, "scope may have a star only as its whole last part, such as contacts:*")
		case strings.ContainsFunc(segment, notScope):
			return "", fault.New(fault.Invalid, "scope may have only lower-case letters a-z, digits, dots, hyphens and underscores between its colons")
		}
	}
	return Scope(text), nil
}

func notScope(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
}

// Covers reports whether the scope s includes need. A pattern is covered only by
// itself and by a wider one.
func (s Scope) Covers(need Scope) bool {
	if s == need || s == "*" {
		return true
	}
	prefix, wild := strings.CutSuffix(string(s), "*")
	return wild && strings.HasPrefix(string(need), prefix)
}

// MissingScopes returns the needed scopes that the employee's scopes do not
// cover, without duplicates and in the order of need, or nil. Both are stored
// texts: an invalid one grants nothing, and is missing if it is needed.
func MissingScopes(have, need []string) (missing []string) {
	for _, text := range need {
		if !granted(have, text) && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	return missing
}

func granted(have []string, text string) bool {
	need, err := ParseScope(text)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(have, func(text string) bool {
		s, err := ParseScope(text)
		return err == nil && s.Covers(need)
	})
}
