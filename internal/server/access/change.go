package access

import (
	"bytes"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Change is a difference between two configurations.
type Change struct {
	// What names the changed setting in messages.
	What string
	// Tools is the pattern of the tools that it concerns.
	Tools policy.Key
	// Loosens means that an action may run, or run earlier, more often or with
	// the agreement of fewer people, that would not have before.
	Loosens bool
	// SetBy is the person who made the loosened setting and may undo it; zero if
	// that does not matter.
	SetBy uuid.UUID
}

// everyTool is the pattern of all tools.
var everyTool = policy.Key{Source: "*", Action: "*"}

// ChangesFreely reports whether a caller may make every change of
// configuration that the caller's routes make.
func ChangesFreely(by identity.Principal) bool { return by.Tools == nil && by.MayLoosen() }

// AdmitChanges returns nil if a caller may make changes of configuration: all
// of them are about tools of the caller's token, and none loosens anything,
// except settings of the same person, unless the caller may loosen. The error
// is fault.Denied.
func AdmitChanges(by identity.Principal, changes []Change) error {
	for _, c := range changes {
		if by.Tools != nil && !c.Tools.Within(by.Tools) {
			return fault.Coded(wire.CodeTools, fault.Denied, "%s concerns tools that the token does not cover; use a token for %s", c.What, toolsText(c.Tools))
		}
	}
	if by.MayLoosen() {
		return nil
	}
	for _, c := range changes {
		if c.Loosens && (c.SetBy == uuid.Nil || c.SetBy != by.Person()) {
			return fault.Coded(wire.CodeLoosens, fault.Denied,
				"this loosens %s, which needs an administrator's token with the scope %s; without it, settings can only be made stricter", c.What, identity.PolicyWrite)
		}
	}
	return nil
}

// toolsText names the tools of a pattern.
func toolsText(pattern policy.Key) string {
	if pattern == everyTool {
		return "all tools"
	}
	return pattern.String()
}

// Compare returns the differences between the configuration before a change and
// after it, and which of them loosen. It is the only definition of loosening.
// If two settings cannot be compared, the change counts as loosening.
func Compare(before, after Configuration) []Change {
	c := comparison{before: before, after: after}
	c.comparePolicy()
	c.compareLimits()
	c.compareCatalog()
	return c.changes
}

// comparison collects the changes between two configurations.
type comparison struct {
	before, after Configuration
	changes       []Change
}

func (c *comparison) add(tools policy.Key, loosens bool, what string) {
	c.changes = append(c.changes, Change{What: what, Tools: tools, Loosens: loosens})
}

// compare calls changed for every key of two collections whose values differ,
// in the order of before and then of after; nil is an absent value.
func compare[K comparable, T any](before, after []T, key func(T) K, changed func(was, is *T)) {
	now := make(map[K]*T, len(after))
	for i := range after {
		now[key(after[i])] = &after[i]
	}
	for i := range before {
		was, k := &before[i], key(before[i])
		is := now[k]
		delete(now, k)
		if is == nil || !same(*was, *is) {
			changed(was, is)
		}
	}
	for i := range after {
		if is, ok := now[key(after[i])]; ok {
			delete(now, key(after[i]))
			changed(nil, is)
		}
	}
}

// same reports whether two values are written in the same way.
func same(a, b any) bool {
	one, errOne := json.Marshal(a)
	two, errTwo := json.Marshal(b)
	return errOne == nil && errTwo == nil && bytes.Equal(one, two)
}

// either returns the value that is not nil.
func either[T any](was, is *T) T {
	if was != nil {
		return *was
	}
	return *is
}

// patternOf returns the pattern of a setting. An invalid pattern counts as one
// for any tool.
func patternOf(text string) policy.Key {
	pattern, err := policy.ParsePattern(text)
	if err != nil {
		return everyTool
	}
	return pattern
}
