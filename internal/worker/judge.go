package worker

import (
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// verdict is what is to be done with a claimed envelope: settle it without a
// call, send it to a person, or, if neither is set, call the tool.
type recheckResult struct {
	settle        *outbox.Settlement
	needsApproval *needsApproval
	// probe says that the call shows whether its source is well again.
	probe bool
}

// appeal is why an envelope that was let through needs a person after all, who
// then decides about the tool as it is now.
type needsApproval struct {
	tool     *catalog.Tool
	decision policy.Decision
	note     string
}

// recheck is after which time an envelope is looked at again that waits for an
// operator. Lifting a pause wakes it sooner.
const pausedRecheck = time.Hour

// politeness is how long a call waits that met a probe in flight.
const probeWait = time.Second

// judge decides the second time, just before the call: the world may have
// moved since the envelope was let through.
func (c *claimedBatch) recheck(i int) recheckResult {
	it := &c.items[i]
	if it.Sending && it.Effect == envelope.EffectOnce {
		return settled(outbox.WorkerLost(*it))
	}
	if it.LeasesLost > outbox.MaxLeasesLost {
		return settled(outbox.TooManyLeasesLost(*it))
	}
	snap := c.snaps[it.Tenant]
	if v := recheckPolicy(it, snap); v.settle != nil || v.needsApproval != nil {
		return v
	}
	facts, probe := c.facts(i, snap)
	switch a := preflight.Check(facts); a.Verdict {
	case preflight.Skip:
		return settled(outbox.Skip(*it, a.Code, a.Message))
	case preflight.Wait:
		wait := pausedRecheck
		if !a.Until.IsZero() {
			wait = max(0, a.Until.Sub(it.ClaimedAt))
		}
		return settled(outbox.Defer(*it, a.Code, wait))
	case preflight.Pass:
	}
	return recheckResult{probe: probe}
}

// secondLook decides again about what is to be sent, where it may have come
// out otherwise by now: what a person approved is compared with its seal each
// time, and the rest where something that policy depends on changed.
func recheckPolicy(it *outbox.Item, snap *settings.Settings) recheckResult {
	sealed := it.Approval == envelope.ApprovalGranted && it.ApprovalDigest != nil
	if !sealed && it.ConfigVersion == snap.Version {
		return recheckResult{}
	}
	tool, ok := snap.Tool(key(it))
	if !ok {
		return settled(outbox.Skip(*it, "tool_gone", "its source no longer has the tool"))
	}
	if sealed {
		return recheckApproval(it, snap, tool)
	}
	return recheckDecision(it, snap, tool)
}

// The notes for people to whom an envelope comes back.
const (
	noteChanged = "policy or the tool changed after it was let through"
	noteQuorum  = "more people must agree than did: the review rules changed after it was approved"
	noteUnread  = "what was approved cannot be read by this version"
	notePolicy  = "policy changed after it was approved: "
)

// reapprove compares an envelope with what was approved.
func recheckApproval(it *outbox.Item, snap *settings.Settings, tool *catalog.Tool) recheckResult {
	now, decision, err := approval.ComputeDigest(snap, tool, proposed(it))
	then, readable := approval.ParseDigest(it.ApprovalDigest)
	switch {
	case !readable:
		return recheckResult{needsApproval: &needsApproval{tool, decision, noteUnread}}
	case err != nil || now.Args != then.Args:
		return settled(outbox.Skip(*it, "args_changed", "the arguments are not the ones that were approved"))
	case !tool.Is(then.ToolDigest):
		return settled(outbox.Skip(*it, "tool_changed", "the tool's definition changed after it was approved"))
	case decision.Mode == envelope.ModeDeny:
		return policyDenied(it, decision)
	case now.Needed > then.Needed:
		return recheckResult{needsApproval: &needsApproval{tool, decision, noteQuorum}}
	case decision.Mode == envelope.ModeRequireApproval && now.Decision != then.Decision:
		return recheckResult{needsApproval: &needsApproval{tool, decision, notePolicy + because(decision)}}
	}
	return recheckResult{}
}

// redecide asks policy again, because something that it depends on changed.
func recheckDecision(it *outbox.Item, snap *settings.Settings, tool *catalog.Tool) recheckResult {
	// Approved before approvals had seals.
	granted := it.Approval == envelope.ApprovalGranted
	if granted && !tool.Is(it.ToolDigest) {
		return settled(outbox.Skip(*it, "tool_changed", "the tool's definition changed after it was approved"))
	}
	decision := snap.Decide(tool, proposed(it))
	switch decision.Mode {
	case envelope.ModeDeny:
		return policyDenied(it, decision)
	case envelope.ModeRequireApproval:
		if !granted {
			return recheckResult{needsApproval: &needsApproval{tool, decision, noteChanged}}
		}
	case envelope.ModeAllow:
	}
	return recheckResult{}
}

// proposed is what policy looks at in an item.
func proposed(it *outbox.Item) settings.Proposed {
	return settings.Proposed{
		Automation: it.Automation, Employee: it.Employee, Risk: it.Risk, Session: it.Session, Args: it.Args, Now: it.ClaimedAt,
	}
}

func policyDenied(it *outbox.Item, d policy.Decision) recheckResult {
	return settled(outbox.Skip(*it, "policy_denied", "policy denies the tool by now: "+d.Source))
}

// because names the layers that ask for a person, each with its rule.
func because(d policy.Decision) string {
	var reasons []string
	for _, step := range d.Trace {
		if step.Said != envelope.ModeRequireApproval {
			continue
		}
		reason := step.Layer
		if step.Key != "" {
			reason += " rule " + step.Key
		}
		if step.Detail != "" {
			reason += " (" + step.Detail + ")"
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(reasons, ", ")
}

// facts gathers what the gates look at. Where the source is left alone and
// this worker may probe it, the first envelope that passes is the probe.
func (c *claimedBatch) facts(i int, snap *settings.Settings) (f preflight.Facts, probe bool) {
	it := &c.items[i]
	f = preflight.Facts{
		Now: it.ClaimedAt, MustRunBefore: it.MustRunBefore,
		DoNotContact: c.matches[i],
		Quiet:        snap.Limits.Quiet(it.Employee, snap.Limits.NameOf(it.Bucket), c.contacts[i], it.ClaimedAt),
	}
	for n := range f.Quiet {
		f.Quiet[n].Spread = preflight.Spread(it.Action, f.Quiet[n].Spread)
	}
	if len(f.Quiet) > 0 && it.Urgent {
		e, known := snap.Limits.Employee(it.Employee)
		f.UrgentAsked, f.UrgentAllowed = true, known && len(preflight.Granted(e.Scopes, []string{string(preflight.ScopeQuietOverride)})) == 0
	}
	if pause, ok := snap.Limits.Paused(it.Employee, key(it)); ok {
		f.Pause = preflight.Pause{
			Scope: string(pause.Scope), Since: pause.At,
			Kill: pause.Kill && pause.KilledAt != nil && !it.CreatedAt.After(*pause.KilledAt),
		}
	}
	src := breaker.Source{Tenant: it.Tenant, ID: it.Source}
	if s, ok := c.openBreakers[src]; ok {
		if probe = c.probes[src]; !probe {
			f.BreakerUntil = s.Until
			if !s.Until.After(it.ClaimedAt) || s.Phase == breaker.HalfOpen {
				f.BreakerUntil = it.ClaimedAt.Add(probeWait)
			}
		}
	}
	return f, probe
}

func key(it *outbox.Item) policy.Key { return policy.Key{Source: it.Source, Action: it.Tool} }

func settled(s outbox.Settlement) recheckResult { return recheckResult{settle: &s} }
