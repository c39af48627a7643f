package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// further is what the layers found that most proposals have nothing to do
// with. It is kept as one text, so that facts stay small and comparable, and
// empty where they found nothing.
type further struct {
	Verdicts []verdict  `json:"v,omitempty"`
	Grant    GrantFound `json:"g,omitzero"`
	Quorum   int        `json:"q,omitzero"`
}

// GrantFound is a grant that covers a proposal. The zero value is none.
type GrantFound struct {
	ID      string `json:"id,omitzero"`
	Version string `json:"version,omitzero"`
}

// furtherLayers are the layers that speak of few proposals, in order.
func furtherLayers() []string {
	return []string{LayerArguments, LayerSession, LayerPreference, LayerToken, LayerQuarantine}
}

// plain says that an input has nothing for them.
func (in *Input) plain() bool {
	return len(in.Matches) == 0 && in.Tools == nil && !in.Quarantined && in.Grant == (GrantFound{}) &&
		in.Session.empty() && in.Everybody.empty() && in.Personal.empty()
}

// findFurther asks them.
func findFurther(in *Input) string {
	if in.plain() {
		return ""
	}
	var f further
	for _, m := range in.Matches {
		f.Verdicts = append(f.Verdicts, m.verdict())
	}
	if v := stored(LayerSession, in.Session.find(in.Key)); v.Said != "" {
		f.Verdicts = append(f.Verdicts, v)
	}
	if v := preference(in.Everybody.find(in.Key), in.Personal.find(in.Key)); v.Said != "" {
		f.Verdicts = append(f.Verdicts, v)
	}
	if in.Tools != nil && !Covers(in.Tools, in.Key) {
		f.Verdicts = append(f.Verdicts, verdict{
			Step{Layer: LayerToken, Said: envelope.ModeDeny, Detail: "the token is for " + abridged(in.Tools)}, LayerToken,
		})
	}
	if in.Quarantined {
		f.Verdicts = append(f.Verdicts, verdict{
			Step{Layer: LayerQuarantine, Said: envelope.ModeDeny, Detail: "the tool is new and nobody has accepted it"}, LayerQuarantine,
		})
	}
	if in.Grant != (GrantFound{}) {
		f.Grant, f.Quorum = in.Grant, in.Quorum
	}
	if len(f.Verdicts) == 0 && f.Grant == (GrantFound{}) {
		return ""
	}
	text, err := json.Marshal(f)
	if err != nil {
		// Strings and numbers can always be written; a text that nobody can
		// read is denied.
		return err.Error()
	}
	return string(text)
}

// preference says what users switched off: the tenant for everybody, or the
// employee for itself.
func preference(everybody, personal finding) verdict {
	v, detail := stored(LayerPreference, everybody), "switched off for everybody"
	if v.Said == "" {
		v, detail = stored(LayerPreference, personal), "switched off for this employee"
	}
	if v.Detail == "" {
		v.Detail = detail
	}
	return v
}

// readFurther returns what findFurther found.
func readFurther(text string) further {
	var f further
	if text == "" {
		return f
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		f = further{Verdicts: []verdict{{Step{Layer: LayerArguments, Said: envelope.ModeDeny, Detail: "cannot be read"}, SourceRuleError}}}
	}
	return f
}

// narrowings returns what the layers said, in order; one that had nothing to
// say has an empty step.
func (f further) narrowings() []verdict {
	var all []verdict
	for _, layer := range furtherLayers() {
		from := len(all)
		for _, v := range f.Verdicts {
			if v.Layer == layer {
				all = append(all, v)
			}
		}
		if len(all) == from {
			all = append(all, verdict{Step: Step{Layer: layer}})
		}
	}
	return all
}

// granted says whether the grant lets through what the narrowing left at a
// mode, and the step that tells. It loosens require_approval and nothing
// else, and not where a person must look at this very call: because the agent
// asked, because the tool is another one by now, or because one person is not
// enough.
func (f further) granted(mode envelope.Mode, narrowed []verdict) (bool, Step) {
	step := Step{Layer: LayerGrant, Rule: f.Grant.ID, Version: f.Grant.Version}
	asks := func(layer string) bool {
		return slices.ContainsFunc(narrowed, func(v verdict) bool { return v.Layer == layer && v.Said != "" })
	}
	switch {
	case f.Grant == (GrantFound{}):
	case mode != envelope.ModeRequireApproval:
		step.Detail = "holds, and changes nothing"
	case asks(LayerAsked):
		step.Detail = "not asked, since the agent asked for a person"
	case asks(LayerDrift):
		step.Detail = "not asked, since the definition is not the accepted one"
	case f.Quorum > 1:
		step.Detail = fmt.Sprintf("not asked, since %d people must approve", f.Quorum)
	default:
		step.Said, step.Detail = envelope.ModeAllow, "let through beforehand"
		return true, step
	}
	return false, step
}

// Covers says whether one of the patterns covers a tool. One that cannot be
// read covers nothing.
func Covers(list []string, key Key) bool {
	covering := patterns(key)
	return slices.ContainsFunc(list, func(text string) bool {
		pattern, err := ParsePattern(text)
		return err == nil && slices.Contains(covering[:], pattern)
	})
}

// maxNamed is how many patterns a detail names.
const maxNamed = 5

// abridged names the first few of a list.
func abridged(list []string) string {
	if len(list) == 0 {
		return "no tool"
	}
	names := make([]string, 0, maxNamed)
	for _, text := range list[:min(len(list), maxNamed)] {
		names = append(names, shown(text))
	}
	if more := len(list) - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, ", ")
}
