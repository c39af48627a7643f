package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Compare decides about every envelope of the page by the current and by the
// changed policy. It calls enough after each envelope; if that returns true, the
// report ends there, and Next is the start of the rest. It needs no transaction.
func (p *Page) Compare(change settings.Document, enough func() bool) Report {
	return p.compare(p.Snapshot.With(change), enough)
}

// Granted returns the envelopes of the page that needed a person's decision and
// would be allowed by a grant.
func (p *Page) Granted(g settings.Grant, now time.Time, enough func() bool) (Passed, error) {
	changed, err := p.Snapshot.WithGrant(g, now)
	if err != nil {
		return Passed{}, err
	}
	r := p.compare(changed, enough)
	passed := Passed{Examined: r.Examined, Compared: r.Compared, Complete: r.Next == nil}
	through := make(map[envelope.ActionID]bool)
	for _, d := range r.Differences {
		through[d.Action] = d.Action != g.From && d.Now.Mode == envelope.ModeRequireApproval && d.Changed.Mode == envelope.ModeAllow
	}
	for _, e := range p.past {
		if through[e.action] {
			passed.Calls = append(passed.Calls, Call{e.action, e.at, e.proposed.Args})
		}
	}
	return passed, nil
}

func (p *Page) compare(changed *settings.Settings, enough func() bool) Report {
	r := Report{Next: p.next, SimulationPage: wire.SimulationPage{
		Version: p.Snapshot.Version, Examined: p.examined, Counts: []wire.SimulationCount{}, Differences: []wire.SimulationDifference{},
	}}
	counts := make(map[wire.SimulationCount]int)
	for i := range p.past {
		if e := &p.past[i]; e.tool == nil {
			r.WithoutTool++
		} else {
			r.Compared++
			d, because := e.compare(p.Snapshot, changed)
			counts[wire.SimulationCount{
				Tool: d.Tool, Then: d.Then.Mode, Now: d.Now.Mode, Changed: d.Changed.Mode,
				NowApprovals: d.Now.Approvals, ChangedApprovals: d.Changed.Approvals,
			}]++
			if d.Then.Mode != d.Changed.Mode || d.Now.Differs(d.Changed) {
				d.Causes = because()
				r.Differences = append(r.Differences, d)
			}
		}
		if i < len(p.past)-1 && enough() {
			r.Examined, r.Next = p.past[i].examined, &p.past[i].action
			break
		}
	}
	for c, n := range counts {
		c.Count = n
		r.Counts = append(r.Counts, c)
	}
	slices.SortFunc(r.Counts, func(a, b wire.SimulationCount) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Then, b.Then), cmp.Compare(a.Now, b.Now), cmp.Compare(a.Changed, b.Changed),
			cmp.Compare(a.NowApprovals, b.NowApprovals), cmp.Compare(a.ChangedApprovals, b.ChangedApprovals))
	})
	return r
}

// Match evaluates a rule for every envelope of the page that it would cover,
// latest first. It calls enough after each; if that returns true, the result ends there.
func (p *Page) Match(r settings.Rule, enough func() bool) Matched {
	r.Enabled = true
	alone := p.Snapshot.With(settings.Document{Rules: []settings.Rule{r}})
	m := Matched{Examined: p.examined, Complete: p.next == nil}
	for i := range p.past {
		e := &p.past[i]
		_, delivery := settings.Delivery(e.proposed.Automation)
		if e.tool == nil || delivery || r.Automation != "" && r.Automation != e.proposed.Automation {
			continue
		}
		m.Compared++
		switch found := alone.Matches(e.tool, &e.proposed); {
		case len(found) == 0:
			m.False = append(m.False, e.action)
		case found[0].Failure != "":
			m.Failed = append(m.Failed, e.action)
			if reason := found[0].Failure; !slices.Contains(m.Reasons, reason) {
				m.Reasons = append(m.Reasons, reason)
			}
		default:
			m.True = append(m.True, e.action)
		}
		if i < len(p.past)-1 && enough() {
			m.Examined, m.Complete = e.examined, false
			break
		}
	}
	return m
}

// compare decides about an envelope by both policies. The returned function
// determines the causes of a difference.
func (e *past) compare(now, changed *settings.Settings) (wire.SimulationDifference, func() []wire.SimulationCause) {
	before, after := now.Decide(e.tool, e.proposed), changed.Decide(e.overridden, e.changed)
	return wire.SimulationDifference{
		Action: e.action, ProposedAt: e.at, Tool: e.key.String(), Then: e.then,
		Now: decided(now, e.tool, e.proposed, before), Changed: decided(changed, e.overridden, e.changed, after),
	}, func() []wire.SimulationCause { return causes(before, after) }
}

// decided returns a decision with the approvals that it requires.
func decided(s *settings.Settings, t *catalog.Tool, p settings.Proposal, d policy.Decision) wire.SimulatedDecision {
	simulated := wire.SimulatedDecision{Mode: d.Mode, Source: d.Source}
	if n := s.Review(t, p.Risk).Approvals; d.Mode == envelope.ModeRequireApproval && n > 1 {
		simulated.Approvals = n
	}
	return simulated
}

// layerRule identifies a rule in a trace by its layer and name.
type layerRule struct{ layer, rule string }

// causes returns the layers whose results differ between two decisions, in the
// order of the layers.
func causes(now, changed policy.Decision) []wire.SimulationCause {
	found := []wire.SimulationCause{}
	if now.Mode == changed.Mode {
		return found
	}
	before := make(map[layerRule]policy.Step, len(now.Trace))
	var order []layerRule
	for _, s := range effectiveSteps(now.Trace) {
		before[layerRule{s.Layer, s.Rule}] = s
		order = append(order, layerRule{s.Layer, s.Rule})
	}
	after := make(map[layerRule]policy.Step, len(changed.Trace))
	for _, s := range effectiveSteps(changed.Trace) {
		w := layerRule{s.Layer, s.Rule}
		after[w] = s
		if _, ok := before[w]; !ok {
			order = append(order, w)
		}
	}
	for _, w := range order {
		a, b := before[w], after[w]
		if a.Said == b.Said {
			continue
		}
		shown := b
		if b.Said == "" {
			shown = a
		}
		found = append(found, wire.SimulationCause{Layer: w.layer, Rule: w.rule, Tool: shown.Tool, Now: a.Said, Changed: b.Said, Detail: shown.Detail})
	}
	slices.SortStableFunc(found, func(a, b wire.SimulationCause) int { return rank(a.Layer) - rank(b.Layer) })
	return found
}

// effectiveSteps returns the steps that count: of the base layers, only the
// first with a result.
func effectiveSteps(trace []policy.Step) []policy.Step {
	spoken := false
	var steps []policy.Step
	for _, s := range trace {
		if s.Said == "" || spoken && base(s.Layer) {
			continue
		}
		spoken = spoken || base(s.Layer)
		steps = append(steps, s)
	}
	return steps
}

func base(layer string) bool {
	return layer == policy.LayerAutomation || layer == policy.LayerOrganisation || layer == policy.LayerInferred
}

// rank orders the base layers first, and the grant last.
func rank(layer string) int {
	switch {
	case base(layer):
		return 0
	case layer == policy.LayerGrant:
		return 2
	}
	return 1
}

// orLast returns id, or top if id is zero.
func orLast(id, top envelope.ActionID) envelope.ActionID {
	if id == (envelope.ActionID{}) || slices.Compare(top[:], id[:]) < 0 {
		return top
	}
	return id
}
