package inspect

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// Explain explains the treatment of a message from its stored data, in
// chronological order. policies holds the policy decisions about its actions,
// as far as the reader may see them. It is pure.
func Explain(m wire.TriageMessageDetail, policies map[envelope.ActionID]wire.PolicyDecision) (wire.TriageWhy, error) {
	w := wire.TriageWhy{ID: m.ID, Account: m.Account, Reason: m.Reason, Steps: []wire.TriageWhyStep{}}
	add := func(stage, format string, args ...any) {
		w.Steps = append(w.Steps, wire.TriageWhyStep{Stage: stage, Text: fmt.Sprintf(format, args...)})
	}
	for _, n := range m.Notes {
		add("reading", "%s: %s removed %d times, %d characters", n.Step, n.Kind, n.Count, n.Characters)
	}
	for _, text := range m.Warnings {
		add("reading", "warning: %s", text)
	}
	if m.DecidedAt == nil {
		w.Summary = "Nothing was decided: " + undecided(m)
		return w, nil
	}
	for _, s := range m.Signals {
		text := fmt.Sprintf("%s (%s, %+.2f)", s.Name, s.Axis, s.Weight)
		if s.Evidence != "" {
			text += ": " + s.Evidence
		}
		add("signal", "%s", text)
	}
	var d decide.Decision
	if err := json.Unmarshal(m.Decision, &d); err != nil {
		return w, fmt.Errorf("decision about message %s: %w", m.ID, err)
	}
	if text := again(m.DecidedBecause); text != "" {
		add("rule", "decided again at %s, because %s", stamp(*m.DecidedAt), text)
	}
	for _, s := range d.Trace {
		if s.From == "" {
			add("rule", "%s: %s, because %s", s.Rule, s.To, s.Because)
		} else {
			add("rule", "%s: %s → %s, because %s", s.Rule, s.From, s.To, s.Because)
		}
	}
	if m.Tier != "" {
		add("rule", "%s", restsOn(m))
	}
	for _, s := range m.Skips {
		add("skip", "%s is not proposed: %s", s.Action, s.Because)
	}
	for _, p := range m.Proposals {
		w.Steps = append(w.Steps, proposalSteps(p, policies)...)
	}
	if m.TouchedAt != nil {
		add("owner", "its owner moved or flagged the message, seen at %s; nothing more is proposed", stamp(*m.TouchedAt))
	}
	if len(m.Undone) > 0 {
		add("owner", "refused or taken back, and not proposed again: %s", strings.Join(m.Undone, ", "))
	}
	for _, c := range m.Corrections {
		if c.RetractedAt == nil {
			add("correction", "%s: %s is %s, recorded at %s", c.MadeBy, c.Head, c.Label, stamp(c.MadeAt))
		} else {
			add("correction", "%s: %s is %s, recorded at %s and withdrawn at %s", c.MadeBy, c.Head, c.Label, stamp(c.MadeAt), stamp(*c.RetractedAt))
		}
	}
	w.Summary = summary(m, d)
	return w, nil
}

// restsOn describes the tier of a decision and the missing tiers.
func restsOn(m wire.TriageMessageDetail) string {
	text := "the decision is based on the tier " + m.Tier
	if m.Prompt != "" {
		text += fmt.Sprintf(", model %s, prompt %s", m.Model, m.Prompt)
	}
	if m.Degraded != "" {
		text += ", without " + m.Degraded
	}
	switch {
	case m.Withheld:
		text += "; nothing is proposed until these are asked: " + strings.Join(m.Waiting, ", ")
	case len(m.Waiting) > 0:
		text += "; still to be asked: " + strings.Join(m.Waiting, ", ")
	}
	return text
}

func undecided(m wire.TriageMessageDetail) string {
	if m.Outgoing {
		return "the message is one that its owner sent."
	}
	return "the message was read and not judged yet."
}

// proposalSteps describes a proposal, the origin of every value, and its
// outcome.
func proposalSteps(p wire.TriageProposal, policies map[envelope.ActionID]wire.PolicyDecision) []wire.TriageWhyStep {
	steps := []wire.TriageWhyStep{{
		Stage: "proposal", Text: fmt.Sprintf("%s is proposed as %s, under the name %s", p.Action, p.Tool, p.ExternalID), ActionID: p.ActionID,
	}}
	if p.Repeats != "" {
		steps[0].Text += ", once more, since nobody decided about " + p.Repeats + " in time"
	}
	for _, f := range p.Fields {
		steps = append(steps, wire.TriageWhyStep{
			Stage: "value", Text: fmt.Sprintf("%s = %q from %s", f.Pointer, f.Value, strings.TrimSpace(f.Origin+" "+f.Ref)), ActionID: p.ActionID,
		})
	}
	if p.ActionID != nil {
		steps = append(steps, policySteps(*p.ActionID, policies)...)
	}
	outcome := wire.TriageWhyStep{Stage: "outcome", Text: p.Action + " " + outcomeOf(p), ActionID: p.ActionID}
	steps = append(steps, outcome)
	for _, id := range p.Reversals {
		steps = append(steps, wire.TriageWhyStep{Stage: "outcome", Text: p.Action + " was to be taken back by " + id.String(), ActionID: &id})
	}
	return steps
}

// policySteps describes the policy decision about an action, layer by layer.
func policySteps(id envelope.ActionID, policies map[envelope.ActionID]wire.PolicyDecision) []wire.TriageWhyStep {
	decided, ok := policies[id]
	if !ok {
		return nil
	}
	steps := []wire.TriageWhyStep{{
		Stage: "policy", Text: fmt.Sprintf("the mode is %s, set by %s", decided.Mode, decided.Source), ActionID: &id,
	}}
	for _, s := range decided.Trace {
		if s.Said == "" {
			continue
		}
		text := s.Layer + " says " + string(s.Said)
		for _, part := range []struct{ name, value string }{{"rule", s.Rule}, {"for", s.Tool}, {"version", s.Version}} {
			if part.value != "" {
				text += ", " + part.name + " " + part.value
			}
		}
		if s.Detail != "" {
			text += ": " + s.Detail
		}
		steps = append(steps, wire.TriageWhyStep{Stage: "policy", Text: text, ActionID: &id})
	}
	return steps
}

// again describes why a message was decided again, or returns "" for the first
// time.
func again(because string) string {
	switch because {
	case "answered":
		return "somebody answered what its owner waited for"
	case "asked":
		return "a language model was asked about it, or was unavailable for too long"
	case "brought_back":
		return "its owner moved it back"
	case "copied":
		return "a copy of it differs in header fields or authentication"
	case "corrected":
		return "a message of its sender was corrected"
	}
	return ""
}

func outcomeOf(p wire.TriageProposal) string {
	switch {
	case p.Problem != "":
		return "was refused: " + p.Problem
	case p.ActionID == nil:
		return "waits for a worker to take the proposal"
	}
	return fmt.Sprintf("is %s; the decision of policy is part of the action %s", p.Phase, p.ActionID)
}

// summary summarises the decision and its outcome in a sentence.
func summary(m wire.TriageMessageDetail, d decide.Decision) string {
	text := fmt.Sprintf("Classified as %s (%s) in the cohort %s, at level %v with confidence %.2f: ", d.Bucket, d.Category, d.Cohort, d.Allowed, d.Confidence)
	if len(m.Proposals) > 0 {
		parts := make([]string, len(m.Proposals))
		for i, p := range m.Proposals {
			parts[i] = p.Action + " " + outcomeOf(p)
		}
		return text + strings.Join(parts, "; ") + "."
	}
	switch {
	case m.Withheld:
		text += "nothing is proposed yet, because a language model is asked first"
	case d.Question:
		text += "nothing is proposed, because its owner is asked first what it is"
	case len(m.Skips) > 0:
		text += fmt.Sprintf("nothing is proposed, because %s could not be: %s", m.Skips[0].Action, m.Skips[0].Because)
	case len(d.Vetoes) > 0:
		text += "nothing is proposed, and it stays where it is: " + strings.Join(d.Vetoes, ", ")
	default:
		text += "nothing is proposed"
	}
	return text + "."
}
