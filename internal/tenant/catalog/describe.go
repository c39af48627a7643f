package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/headline"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// FullName is a tool's name by its function: module.entity.action, as in
// mail.message.send. It is inferred from the source and the tool's name unless
// an operator set it. Several tools may have the same one.
type FullName struct {
	Module, Entity, Action string
}

// String returns the parts of the name joined by dots.
func (n FullName) String() string { return n.Module + "." + n.Entity + "." + n.Action }

// Description is the description of a tool by operators. Empty parts are
// inferred.
type Description struct {
	Name FullName
	// SideEffects are the changes made by a call, a few words each. An empty
	// list means none; nil means the inferred ones.
	SideEffects *[]string
	// Reversal reverts a call; nil means the reversal declared by the adapter.
	Reversal *Reversal
	// Headline is the template of one line about a call; empty infers it from the
	// arguments. It holds for the definition that it was written for.
	Headline string
}

// Bounds of a description.
const (
	maxSideEffects     = 20
	maxSideEffectRunes = 200
)

// wordPattern matches a part of a full name.
var wordPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,99}$`)

// Validate checks the description. The error is an *envelope.InvalidError.
func (d Description) Validate() error {
	var p check.Problems
	for _, part := range []struct{ at, word string }{{"/action", d.Name.Action}, {"/entity", d.Name.Entity}, {"/module", d.Name.Module}} {
		if part.word != "" && !wordPattern.MatchString(part.word) {
			p.Add(part.at, envelope.RulePattern, "must be 1 to 100 of a-z, 0-9, - and _, and start with a letter or a digit")
		}
	}
	if d.Reversal != nil {
		d.Reversal.check(&p, "/reversal/args")
	}
	if d.Headline != "" {
		if _, err := headline.ParseTemplate(d.Headline); err != nil {
			p.Add("/headline", envelope.RuleFormat, "%v", err)
		}
	}
	if d.SideEffects != nil {
		if len(*d.SideEffects) > maxSideEffects {
			p.Add("/side_effects", envelope.RuleMaxItems, "must have at most %d items", maxSideEffects)
		}
		for i, text := range *d.SideEffects {
			if text == "" || utf8.RuneCountInString(text) > maxSideEffectRunes || hides(text) {
				p.Add(fmt.Sprintf("/side_effects/%d", i), envelope.RuleFormat, "must be text of at most %d visible characters", maxSideEffectRunes)
			}
		}
	}
	return p.Err()
}

// describe sets the description by operators, and the inferred parts. Risk,
// effect, recipients and the adapter's reversal must be set before.
func (t *Tool) describe(d Description) {
	t.Described = d
	inferred := inferName(t.Key)
	t.FullName = FullName{cmp.Or(d.Name.Module, inferred.Module), cmp.Or(d.Name.Entity, inferred.Entity), cmp.Or(d.Name.Action, inferred.Action)}
	if d.SideEffects != nil {
		t.SideEffects = *d.SideEffects
	} else {
		t.SideEffects = t.inferSideEffects()
	}
	t.Reversal = cmp.Or(d.Reversal, t.Reversal)
	t.order = headline.NewOrder(t.InputSchema)
	t.headline, _ = headline.ParseTemplate(d.Headline) // an older rule may have accepted a template that is invalid now
}

// Headline returns one line about a call with the arguments: by the template of people,
// or else inferred. The arguments stand in the order of the schema.
func (t *Tool) Headline(args json.RawMessage) string {
	if t.headline != nil {
		return t.headline.Of(args, t.order, t.Recipients)
	}
	return headline.Of(args, t.order, t.Recipients)
}

// Headline returns one line about a call of a tool, which may be gone.
func (c *Catalog) Headline(key policy.Key, args json.RawMessage) string {
	if t, ok := c.Tool(key); ok {
		return t.Headline(args)
	}
	return headline.Of(args, nil, nil)
}

// SuggestedHeadline returns a template for the headline, from the tool's schema.
func (t *Tool) SuggestedHeadline() string { return headline.Suggest(t.InputSchema, t.Recipients) }

// Reversible reports whether calls only read or can be reverted.
func (t *Tool) Reversible() bool { return t.Effect == envelope.EffectRead || t.Reversal != nil }

// Inferred side effects.
const (
	effectWrites   = "changes data at its source"
	effectDestroys = "may delete or overwrite"
	effectReaches  = "reaches the people its arguments name"
)

func (t *Tool) inferSideEffects() []string {
	found := []string{}
	if t.Risk == policy.RiskRead {
		return found
	}
	found = append(found, effectWrites)
	if t.Risk == policy.RiskDanger {
		found = append(found, effectDestroys)
	}
	if len(t.Recipients) > 0 {
		found = append(found, effectReaches)
	}
	return found
}

// inferName returns a full name for a key. The module is always the source, so
// that a source cannot give its tools the names of another's.
func inferName(key policy.Key) FullName {
	source := words(key.Source)
	module := strings.Join(source, "_")
	parts := words(key.Action)
	if len(parts) > len(source) && slices.Equal(parts[:len(source)], source) {
		parts = parts[len(source):]
	}
	entity, action := split(parts)
	entity = cmp.Or(entity, module)
	return FullName{clip(module), clip(entity), clip(action)}
}

// split separates the action from the entity. A verb at the beginning takes
// precedence over one at the end, and that over any other; without a verb the
// action is "call".
func split(parts []string) (entity, action string) {
	n := len(parts)
	at := slices.IndexFunc(parts, isVerb)
	if at < 0 {
		return strings.Join(parts, "_"), "call"
	}
	if at > 0 && isVerb(parts[n-1]) {
		at = n - 1
	}
	return strings.Join(slices.Delete(slices.Clone(parts), at, at+1), "_"), parts[at]
}

// clip truncates a part of a name to its bound.
func clip(part string) string {
	const most = 100
	return part[:min(len(part), most)]
}

// words splits a name like splitWords, and also at non-ASCII characters.
func words(name string) []string {
	return splitWords(strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return ' '
		}
		return r
	}, name))
}
