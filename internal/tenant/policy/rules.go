package policy

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/fault"
)

// wildcard matches every source or every action in a rule's key.
const wildcard = "*"

// Key identifies a tool by its source and its action, written as
// sourceId:actionId. A source id has no colon, so the first colon separates the
// two, and an action may contain more of them.
type Key struct {
	Source string
	Action string
}

// ParseKey parses sourceId:actionId. A key without a colon, or with an empty or
// wildcard part, is fault.Invalid.
func ParseKey(text string) (Key, error) {
	key, ok := cutKey(text)
	if !ok || key.Source == wildcard || key.Action == wildcard {
		return Key{}, fault.New(fault.Invalid, "the tool must be source:name")
	}
	return key, nil
}

// ParsePattern parses the key of a rule. It is one of
//
//	sourceId:actionId   one action
//	sourceId:*          every action of a source
//	*:actionId          an action of that name, of any source
//	*                   everything, also written *:*
//
// A star within a longer name is rejected, since it would seem to match more
// than it does. An invalid pattern is fault.Invalid.
func ParsePattern(text string) (Key, error) {
	if text == wildcard {
		return Key{Source: wildcard, Action: wildcard}, nil
	}
	key, ok := cutKey(text)
	if !ok || partlyWild(key.Source) || partlyWild(key.Action) {
		return Key{}, fault.New(fault.Invalid, "the pattern of tools must be source:name, source:*, *:name or *")
	}
	return key, nil
}

// String returns the key as source:name.
func (k Key) String() string { return k.Source + ":" + k.Action }

// MarshalText returns the same as String and never an error.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses a key like ParseKey.
func (k *Key) UnmarshalText(text []byte) error {
	parsed, err := ParseKey(string(text))
	*k = parsed
	return err
}

// valid reports whether the key identifies one tool.
func (k Key) valid() bool {
	return k.Source != "" && k.Action != "" && k.Source != wildcard && k.Action != wildcard
}

func cutKey(text string) (Key, bool) {
	source, action, found := strings.Cut(text, ":")
	return Key{Source: source, Action: action}, found && source != "" && action != ""
}

func partlyWild(part string) bool {
	return part != wildcard && strings.Contains(part, wildcard)
}

// Rule is a stored row: the mode of an automation or an organisation for the
// tools that a key covers. Its fields are stored texts, which another version
// may have written.
type Rule struct {
	// Key is a pattern in the syntax of ParsePattern.
	Key string
	// Mode is one of the three modes.
	Mode string
	// Version identifies the version of the row in traces. It may be empty.
	Version string
}

// Rules is a compiled set of rules. The zero value is empty. It is immutable and
// safe for concurrent use.
type Rules struct {
	byKey map[Key]Rule
	// malformed is a rule with an invalid key, or nil.
	malformed *Rule
}

// Compile prepares stored rules for lookup.
//
// The most specific rule wins: sourceId:actionId before sourceId:* before
// *:actionId before *. Of two rules for the same key (* and *:* are the same)
// the stricter one wins, and an invalid mode is the strictest. A rule with an
// invalid key makes the whole set deny everything, since it may have been meant
// to; ParsePattern keeps such rows from being stored.
func Compile(rows []Rule) Rules {
	rules := Rules{byKey: make(map[Key]Rule, len(rows))}
	for _, row := range rows {
		key, err := ParsePattern(row.Key)
		if err != nil {
			rules.malformed = &row
			continue
		}
		if old, ok := rules.byKey[key]; !ok || strictness(row.Mode) > strictness(old.Mode) {
			rules.byKey[key] = row
		}
	}
	return rules
}

// find returns the rule of the set for a tool.
func (r Rules) find(key Key) (Rule, bool) {
	if r.malformed != nil {
		return *r.malformed, true
	}
	if len(r.byKey) == 0 {
		return Rule{}, false
	}
	for _, pattern := range Patterns(key) {
		if rule, ok := r.byKey[pattern]; ok {
			return rule, true
		}
	}
	return Rule{}, false
}

// Within reports whether every tool of the pattern k is covered by one of the
// patterns. An invalid pattern covers nothing.
func (k Key) Within(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(text string) bool {
		p, err := ParsePattern(text)
		return err == nil && (p.Source == wildcard || p.Source == k.Source) && (p.Action == wildcard || p.Action == k.Action)
	})
}

// Patterns returns the patterns that cover a tool, the most specific first.
func Patterns(key Key) [4]Key {
	return [...]Key{
		key,
		{Source: key.Source, Action: wildcard},
		{Source: wildcard, Action: key.Action},
		{Source: wildcard, Action: wildcard},
	}
}
