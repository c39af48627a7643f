package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// layerKind is the effect of a layer's answer.
type layerKind string

const (
	// base: the first of these layers with an answer sets the mode.
	base layerKind = "base"
	// narrowing: it can make the mode stricter.
	narrowing layerKind = "narrows"
	// loosening: it can turn require_approval into allow.
	loosening layerKind = "loosens"
)

// layer is a layer of the cascade. docs/policy.md has all fields but the last.
type layer struct {
	name string
	kind layerKind
	// text names the layer in messages to people.
	text string
	// looksAt is the input of the layer, and setBy the author of its settings.
	setBy, looksAt string
	// ask appends the answers of the layer, if any. Only the rules about
	// arguments have more than one.
	ask func(answers []answer, in *Input) []answer
}

// layers are the layers in the order of evaluation. The loosening one is last,
// since its answer depends on the others.
var layers = [...]layer{
	{LayerAutomation, base, "the automation's mode", "modes", "the mode of the automation for the tool",
		func(all []answer, in *Input) []answer { return stored(all, LayerAutomation, in.Automation, in.Key) }},
	{LayerOrganisation, base, "the organisation's mode", "modes", "the mode of the organisation for the tool",
		func(all []answer, in *Input) []answer { return stored(all, LayerOrganisation, in.Organisation, in.Key) }},
	{LayerInferred, base, "the default for the tool's risk", "the source, `danger`", "the tool's risk: read is allowed, write requires approval, danger is denied or, if the tenant says so, requires approval",
		inferred},
	{LayerAsked, narrowing, "the agent asked for a person", "the proposal", "the agent's wish for a person: requires approval",
		func(all []answer, in *Input) []answer {
			return when(all, in.AskedApproval, LayerAsked, envelope.ModeRequireApproval, "the agent asked")
		}},
	{LayerDrift, narrowing, "the tool's definition, or the address of its source, changed", "the source", "a definition, or an address of the source, that is not the accepted one: requires approval",
		func(all []answer, in *Input) []answer {
			return when(all, in.Drifted, LayerDrift, envelope.ModeRequireApproval, "definition is not the accepted one")
		}},
	{LayerTrust, narrowing, "the employee's trust", "employees", "a risk above the employee's trust: requires approval",
		trust},
	{LayerScopes, narrowing, "the employee's scopes", "employees, tools", "scopes that the tool needs and the employee lacks: denied",
		func(all []answer, in *Input) []answer {
			missing := in.MissingScopes
			return when(all, len(missing) > 0, LayerScopes, envelope.ModeDeny, "missing "+strings.Join(missing, ", "))
		}},
	{LayerDoNotContact, narrowing, "the do-not-contact list", "the do-not-contact list", "a recipient who is on the list: denied",
		func(all []answer, in *Input) []answer {
			return when(all, in.Listed, LayerDoNotContact, envelope.ModeDeny, "a recipient is on the list")
		}},
	{LayerArguments, narrowing, "a rule about arguments", "rules", "the mode of every rule whose expression is true",
		arguments},
	{LayerSession, narrowing, "the session's mode", "session modes", "the session's mode for the tool",
		func(all []answer, in *Input) []answer { return stored(all, LayerSession, in.Session, in.Key) }},
	{LayerPreference, narrowing, "a preference", "preferences", "a tool that is switched off: denied",
		preference},
	{LayerToken, narrowing, "the token's tools", "tokens", "a token that is for other tools: denied",
		token},
	{LayerQuarantine, narrowing, "a new tool that is not accepted yet", "the source", "a tool that nobody has accepted yet, or whose source nobody has: denied",
		func(all []answer, in *Input) []answer {
			return when(all, in.Quarantined, LayerQuarantine, envelope.ModeDeny, "nobody has accepted the tool, or its source")
		}},
	{LayerPerson, narrowing, "the tool, which never runs without a person", "the source", "a tool whose every call a person approves, such as one that sends mail: requires approval",
		func(all []answer, in *Input) []answer {
			detail := "a person approves every call of this tool"
			if in.PersonGrants {
				detail = personGrants
			}
			return when(all, in.Person, LayerPerson, envelope.ModeRequireApproval, detail)
		}},
	{LayerGrant, loosening, "a grant", "grants", "an approval in advance: allowed where approval would be required",
		grant},
}

// personGrants is the detail of LayerPerson for tools that a grant may approve.
const personGrants = "a person approves every call of this tool, each or by a grant"

// answer is an answer of a layer.
type answer struct {
	Step
	// source names the layer in a decision's source.
	source string
}

// when appends an answer with a mode if a condition holds.
func when(all []answer, holds bool, layer string, mode envelope.Mode, detail string) []answer {
	if !holds {
		return all
	}
	return append(all, answer{Step{Layer: layer, Said: mode, Detail: detail}, layer})
}

// stored appends the answer of a layer with a rule for a tool. Invalid values
// are denied.
func stored(all []answer, layer string, rules Rules, key Key) []answer {
	rule, ok := rules.find(key)
	if !ok {
		return all
	}
	a := answer{Step{Layer: layer, Said: envelope.ModeDeny, Tool: rule.Key, Version: rule.Version}, layer}
	mode, err := ParseMode(rule.Mode)
	switch {
	case rules.malformed != nil:
		a.Tool, a.Detail, a.source = shown(rule.Key), "rule key cannot be read", SourceUnknownKey+shown(rule.Key)
	case err != nil:
		a.Detail = SourceUnknownMode + shown(rule.Mode)
		a.source = a.Detail
	default:
		a.Said = mode
	}
	return append(all, a)
}

func inferred(all []answer, in *Input) []answer {
	risk := shown(string(in.Risk))
	mode := in.Risk.Mode()
	if in.Risk == RiskDanger && in.Danger == envelope.ModeRequireApproval {
		mode = in.Danger
	}
	a := answer{Step{Layer: LayerInferred, Said: mode, Detail: "risk " + risk}, LayerInferred}
	if !in.Risk.Valid() {
		a.source = SourceUnknownRisk + risk
	}
	return append(all, a)
}

func trust(all []answer, in *Input) []answer {
	trusted := "trusted with " + shown(string(in.Trust))
	switch {
	case in.Trust == "":
		return all
	case in.Trust.covers(in.EnvelopeRisk):
		return append(all, answer{Step{Layer: LayerTrust, Detail: trusted}, LayerTrust})
	}
	return when(all, true, LayerTrust, envelope.ModeRequireApproval, "risk "+shown(string(in.EnvelopeRisk))+", "+trusted)
}

func arguments(all []answer, in *Input) []answer {
	for _, m := range in.Matches {
		all = append(all, m.answer())
	}
	return all
}

// preference appends the preference of everybody or, if that is stricter, of the
// employee.
func preference(all []answer, in *Input) []answer {
	off, detail := stored(nil, LayerPreference, in.Everybody, in.Key), "switched off for everybody"
	own := stored(nil, LayerPreference, in.Personal, in.Key)
	if own != nil && (off == nil || Stricter(off[0].Said, own[0].Said) != off[0].Said) {
		off, detail = own, "switched off for this employee"
	}
	if off != nil && off[0].Detail == "" {
		off[0].Detail = detail
	}
	return append(all, off...)
}

func token(all []answer, in *Input) []answer {
	if in.Tools == nil || Covers(in.Tools, in.Key) {
		return all
	}
	return when(all, true, LayerToken, envelope.ModeDeny, "the token is for "+abridged(in.Tools))
}

// grant appends the grant; loosen applies it later.
func grant(all []answer, in *Input) []answer {
	if in.Grant == (GrantFound{}) {
		return all
	}
	return append(all, answer{Step{Layer: LayerGrant, Rule: in.Grant.ID, Version: in.Grant.Version}, LayerGrant + ":" + in.Grant.ID})
}

// loosen sets the step of a grant for the mode of the other layers. A grant
// loosens only require_approval, and only if no person must review this very
// call: because the agent requested it, because the tool never runs without one (and a
// grant is none), because the definition is not the accepted one, or because more than one
// approval is needed.
func loosen(step *Step, mode envelope.Mode, quorum int, answers []answer) {
	asks := func(layer string) bool {
		return slices.ContainsFunc(answers, func(a answer) bool { return a.Layer == layer && a.Said != "" })
	}
	switch {
	case mode != envelope.ModeRequireApproval:
		step.Detail = "holds, and changes nothing"
	case asks(LayerAsked):
		step.Detail = "not asked, since the agent asked for a person"
	case slices.ContainsFunc(answers, func(a answer) bool { return a.Layer == LayerPerson && a.Said != "" && a.Detail != personGrants }):
		step.Detail = "not asked, since a person approves every call of this tool"
	case asks(LayerDrift):
		step.Detail = "not asked, since the definition is not the accepted one"
	case quorum > 1:
		step.Detail = fmt.Sprintf("not asked, since %d people must approve", quorum)
	default:
		step.Said, step.Detail = envelope.ModeAllow, "let through beforehand"
	}
}

// Covers reports whether one of the patterns covers a tool. An invalid pattern
// covers nothing.
func Covers(list []string, key Key) bool {
	covering := Patterns(key)
	return slices.ContainsFunc(list, func(text string) bool {
		pattern, err := ParsePattern(text)
		return err == nil && slices.Contains(covering[:], pattern)
	})
}

// CoversSource reports whether one of the patterns covers any tool of a source;
// nil covers all.
func CoversSource(list []string, source string) bool {
	return list == nil || slices.ContainsFunc(list, func(text string) bool {
		pattern, err := ParsePattern(text)
		return err == nil && (pattern.Source == "*" || pattern.Source == source)
	})
}

// maxNamed is the number of patterns in a detail.
const maxNamed = 5

// abridged returns the first few elements of a list.
func abridged(list []string) string {
	if len(list) == 0 {
		return "no tool"
	}
	names := make([]string, 0, maxNamed)
	for _, text := range list[:min(len(list), maxNamed)] {
		names = append(names, shown(text))
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
