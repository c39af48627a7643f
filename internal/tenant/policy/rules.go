package policy

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/fault"
)

// wildcard stands for every source or every action in a rule's key.
const wildcard = "*"

// Key names a tool: the source and its action. Written as sourceId:actionId
// everywhere. A source id has no colon, so the first colon divides the two and
// an action may hold more of them.
type Key struct {
	Source string
	Action string
}

// ParseKey reads sourceId:actionId. A key without a colon, or with an empty or
// wildcard part, is fault.Invalid.
func ParseKey(text string) (Key, error) {
	key, ok := cutKey(text)
	if !ok || key.Source == wildcard || key.Action == wildcard {
		return Key{}, fault.New(fault.Invalid, "the tool must be source:name")
	}
	return key, nil
}

// ParsePattern checks and reads the key of a rule. It is one of
//
//	sourceId:actionId   one action
//	sourceId:*          every action of a source
//	*:actionId          an action of that name, of any source
//	*                   everything, also written *:*
//
// and a star within a longer name is refused: it would look like more than it
// does. A pattern that is none of these is fault.Invalid.
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

// UnmarshalText parses a key as ParseKey does.
func (k *Key) UnmarshalText(text []byte) error {
	parsed, err := ParseKey(string(text))
	*k = parsed
	return err
}

// valid reports whether the key names one tool.
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

// Rule is a stored row: the mode that an automation or an organisation set
// for the tools that a key covers. All three are text as stored: rows may
// have been written by another version.
type Rule struct {
	// Key is a pattern that ParsePattern reads.
	Key string
	// Mode is one of the three modes.
	Mode string
	// Version names this version of the row in traces. It may be empty.
	Version string
}

// Rules is a compiled set of rules. The zero value has none. It is safe for
// concurrent use, since it does not change.
type Rules struct {
	byKey map[Key]Rule
	// malformed is a rule whose key cannot be read; nil if there is none.
	malformed *Rule
}

// Compile prepares stored rules for lookup.
//
// The most particular rule wins: sourceId:actionId before sourceId:* before
// *:actionId before *. Of two rules for the same key (* and *:* are the same)
// the stricter wins, and a mode that cannot be read is the strictest. One rule
// whose key cannot be read makes the whole set deny everything, since it may
// have been meant to; ParsePattern, asked before a rule is stored, keeps such
// rows out.
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

// Within reports whether every tool of the pattern k is covered by one of some
// other patterns. One that cannot be read covers nothing.
func (k Key) Within(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(text string) bool {
		p, err := ParsePattern(text)
		return err == nil && (p.Source == wildcard || p.Source == k.Source) && (p.Action == wildcard || p.Action == k.Action)
	})
}

// Patterns returns the patterns that cover a tool, the most particular first.
func Patterns(key Key) [4]Key {
	return [...]Key{
		key,
		{Source: key.Source, Action: wildcard},
		{Source: wildcard, Action: key.Action},
		{Source: wildcard, Action: wildcard},
	}
}
