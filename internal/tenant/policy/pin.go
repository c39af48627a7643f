package policy

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
)

// Bounds of a grant's pins.
const (
	MaxPins     = 32
	MaxPinBytes = 64 << 10
)

// Pins are paths in arguments with required values, and the loose members that
// are ignored in the comparison. The zero value matches all arguments.
type Pins struct {
	all   []pin
	loose []jsonref.Pointer
}

type pin struct {
	path  jsonref.Pointer
	value any
}

// ParsePins parses JSON Pointers (RFC 6901) into the arguments, each with its
// value, and the loose pointers, as Exactly and Only return them. Invalid
// pointers or values, too many of them, and pins that leave arguments open
// without a loose pointer are fault.Invalid.
func ParsePins(values map[string]json.RawMessage, loose []string) (Pins, error) {
	if len(values) > MaxPins {
		return Pins{}, fault.New(fault.Invalid, "at most %d arguments can be pinned; pin the whole of them with the empty pointer", MaxPins)
	}
	paths, err := parseLoose(loose)
	if err != nil {
		return Pins{}, err
	}
	if _, whole := values[Everything]; !whole && !slices.Equal(loose, []string{Everything}) {
		return Pins{}, fault.New(fault.Invalid, "a grant holds the arguments as a whole, unless its loose arguments are all others (the empty pointer)")
	}
	pins, size := Pins{all: make([]pin, 0, len(values)), loose: paths}, 0
	for pointer, raw := range values {
		path, err := parsePin(pointer)
		if err != nil {
			return Pins{}, err
		}
		value, canonical, err := jsonref.DecodeCanonical(raw)
		if err != nil {
			return Pins{}, fault.New(fault.Invalid, "the value of a pin cannot be read")
		}
		if size += len(pointer) + len(canonical); size > MaxPinBytes {
			return Pins{}, fault.New(fault.Invalid, "held arguments must have at most %d bytes; loosen the longest", MaxPinBytes)
		}
		pins.all = append(pins.all, pin{path, value})
	}
	return pins, nil
}

// Empty reports whether no value is pinned: all arguments are loose.
func (p Pins) Empty() bool {
	return !slices.ContainsFunc(p.all, func(pin pin) bool { return len(p.loose) == 0 || !leafless(pin.value) })
}

// Hold reports whether arguments have every pinned value at its path, ignoring
// the loose members. Values are compared by meaning: 1 equals 1.0, but not "1".
func (p Pins) Hold(args json.RawMessage) bool {
	if len(p.all) == 0 {
		return true
	}
	// A duplicate key has no unique value and is an error.
	doc, _, err := jsonref.DecodeCanonical(orEmpty(args))
	if err != nil {
		return false
	}
	strip(doc, p.loose)
	return !slices.ContainsFunc(p.all, func(pin pin) bool {
		value, ok := pin.path.Find(doc)
		return !ok || !reflect.DeepEqual(value, pin.value)
	})
}

// Fix reports whether the pins set the values at all of the pointers.
func (p Pins) Fix(pointers ...string) bool {
	return !slices.ContainsFunc(pointers, func(pointer string) bool {
		path, ok := jsonref.ParsePointer(pointer)
		return !ok || !slices.ContainsFunc(p.all, func(one pin) bool {
			if len(one.path) > len(path) || !slices.Equal(one.path, path[:len(one.path)]) {
				return false
			}
			_, found := path[len(one.path):].Find(one.value)
			return found && !slices.ContainsFunc(p.loose, func(loose jsonref.Pointer) bool {
				return len(loose) > 0 && len(loose) <= len(path) && slices.Equal(loose, path[:len(loose)])
			})
		})
	})
}

func orEmpty(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

func parsePin(pointer string) (jsonref.Pointer, error) {
	path, ok := jsonref.ParsePointer(pointer)
	if !ok {
		return nil, fault.New(fault.Invalid, "a pin must be a JSON Pointer into the arguments, such as /to/0")
	}
	return path, nil
}

// ArgumentRule is a stored rule about arguments: if its expression is true for a
// proposal, its mode narrows the other layers' result. Its fields are stored
// texts, which another version may have written.
type ArgumentRule struct {
	ID string
	// Automation is empty for a rule of the organisation, which applies to every
	// proposal.
	Automation string
	// Key is a pattern in the syntax of ParsePattern.
	Key        string
	Expression string
	// Mode is require_approval or deny.
	Mode string
	// Reason is shown if the rule applies. It may be empty.
	Reason string
	// Version identifies the version of the row in traces. It may be empty.
	Version string
}

// maxReason is the maximum length of the reason of a rule, in characters.
const maxReason = 200

// ParseNarrowing parses the mode of a narrowing rule: require_approval or deny.
// The error for allow describes the alternative.
func ParseNarrowing(text string) (envelope.Mode, error) {
	mode, err := ParseMode(text)
	if err != nil {
		return "", fault.New(fault.Invalid, "mode must be require_approval or deny")
	}
	if mode == envelope.ModeAllow {
		return "", fault.New(fault.Invalid, "a rule about arguments narrows and cannot allow: set the mode allow for the tool, "+
			"and write the rule for the arguments that need approval or are denied")
	}
	return mode, nil
}

// Check reports whether a rule may be stored, for a tool of a shape; use the
// zero Shape for a pattern of several tools. The error is fault.Invalid, or an
// *envelope.InvalidError for the expression.
func (r ArgumentRule) Check(language *Language, shape Shape) error {
	if _, err := ParsePattern(r.Key); err != nil {
		return err
	}
	if _, err := ParseNarrowing(r.Mode); err != nil {
		return err
	}
	if len([]rune(r.Reason)) > maxReason {
		return fault.New(fault.Invalid, "a reason must have at most %d characters", maxReason)
	}
	_, err := language.Compile(r.Expression, shape)
	return err
}

// Arguments is a set of rules about arguments, whose expressions are compiled
// when first needed. The zero value is empty. It is safe for concurrent use.
type Arguments struct {
	byKey map[Key][]*argumentRule
	// unreadable are the rules with an invalid key: they may apply to any tool.
	unreadable []*argumentRule
}

type argumentRule struct {
	ArgumentRule
	once    sync.Once
	compile func() (*Language, error)
	program *Expression
}

// expression returns the compiled expression, or nil.
func (r *argumentRule) expression() *Expression {
	r.once.Do(func() {
		if language, err := r.compile(); err == nil {
			r.program, _ = language.Compile(r.Expression, Shape{})
		}
	})
	return r.program
}

// CompileArguments prepares stored rules. It calls language when a rule first
// covers a proposal.
func CompileArguments(language func() (*Language, error), rows []ArgumentRule) Arguments {
	a := Arguments{byKey: make(map[Key][]*argumentRule, len(rows))}
	for _, row := range rows {
		r := &argumentRule{ArgumentRule: row, compile: language}
		key, err := ParsePattern(row.Key)
		if err != nil {
			a.unreadable = append(a.unreadable, r)
			continue
		}
		a.byKey[key] = append(a.byKey[key], r)
	}
	return a
}

// Empty reports whether there are no rules.
func (a Arguments) Empty() bool { return len(a.byKey) == 0 && len(a.unreadable) == 0 }

// Count returns the number of rules for a tool, without those of another
// automation than the given one; an empty one is any.
func (a Arguments) Count(automation string, key Key) int {
	count := len(a.unreadable)
	for _, pattern := range Patterns(key) {
		for _, r := range a.byKey[pattern] {
			if automation == "" || r.Automation == "" || r.Automation == automation {
				count++
			}
		}
	}
	return count
}

// covering returns the rules for a tool and an automation, ordered by id.
func (a Arguments) covering(automation string, key Key) []*argumentRule {
	var found []*argumentRule
	add := func(rules []*argumentRule) {
		for _, r := range rules {
			if r.Automation == "" || r.Automation == automation {
				found = append(found, r)
			}
		}
	}
	for _, pattern := range Patterns(key) {
		add(a.byKey[pattern])
	}
	add(a.unreadable)
	slices.SortFunc(found, func(x, y *argumentRule) int { return strings.Compare(x.ID, y.ID) })
	return found
}

// Match is a rule about arguments that applies to a proposal.
type Match struct {
	Rule, Key, Mode, Reason, Version string
	// Failure is set if the expression failed, which counts as true.
	Failure Failure
	// Broken is set if the expression does not compile in this version.
	Broken bool
}

// Match returns the rules that apply to a proposal, ordered by id. It calls
// subject once, and only if there are rules for the tool.
func (a Arguments) Match(automation string, key Key, subject func() *Subject) []Match {
	rules := a.covering(automation, key)
	if len(rules) == 0 {
		return nil
	}
	var matches []Match
	s := subject()
	for _, r := range rules {
		m := Match{Rule: r.ID, Key: r.Key, Mode: r.Mode, Reason: r.Reason, Version: r.Version}
		expression := r.expression()
		if m.Broken = expression == nil; m.Broken {
			matches = append(matches, m)
			continue
		}
		applies, failure := expression.Eval(s)
		if m.Failure = failure; applies || failure != "" {
			matches = append(matches, m)
		}
	}
	return matches
}

// answer returns the answer of a rule that applies. Invalid values are denied.
func (m Match) answer() answer {
	a := answer{
		Step{Layer: LayerArguments, Said: envelope.ModeDeny, Rule: m.Rule, Tool: shown(m.Key), Version: m.Version, Detail: m.detail()},
		LayerArguments + ":" + shown(m.Rule),
	}
	mode, err := ParseNarrowing(m.Mode)
	_, unreadable := ParsePattern(m.Key)
	switch {
	case m.Broken:
		a.Detail, a.source = "this version cannot read the expression", SourceRuleError+shown(m.Rule)
	case unreadable != nil:
		a.Detail, a.source = "rule key cannot be read", SourceUnknownKey+shown(m.Key)
	case err != nil:
		a.Detail = SourceUnknownMode + shown(m.Mode)
		a.source = a.Detail
	default:
		a.Said = mode
	}
	return a
}

// detail returns the rule's reason and, if it failed, the failure.
func (m Match) detail() string {
	switch {
	case m.Failure == "":
		return m.Reason
	case m.Reason == "":
		return "counts as true: " + string(m.Failure)
	}
	return m.Reason + " (counts as true: " + string(m.Failure) + ")"
}
