package worker

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// recheckResult is what to do with a claimed action: settle it without a call,
// return it to approval or, if neither is set, call the tool.
type recheckResult struct {
	settle        *outbox.Settlement
	needsApproval *needsApproval
	// probe reports whether the call finds out if its source is back.
	probe bool
}

// needsApproval is why an action that was approved needs a person after all,
// who then decides about the tool's present definition.
type needsApproval struct {
	tool     *catalog.Tool
	decision policy.Decision
	note     string
}

// pausedRecheck is the time after which a paused action is checked again.
// Resuming wakes it sooner.
const pausedRecheck = time.Hour

// probeWait is how long an action waits if another call is probing its source.
const probeWait = time.Second

// recheck asks policy and the gates again, just before the call: they may have
// changed since the action was approved.
func (c *claimedBatch) recheck(i int) recheckResult {
	it := &c.items[i]
	if it.Sending && it.Effect == envelope.EffectOnce {
		return settled(outbox.WorkerLost(*it))
	}
	if it.LeasesLost > outbox.MaxLeasesLost {
		return settled(outbox.TooManyLeasesLost(*it))
	}
	s := c.settings[it.Tenant]
	if r := recheckPolicy(it, s); r.settle != nil || r.needsApproval != nil {
		return r
	}
	facts, probe := c.facts(i, s)
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

// recheckPolicy asks policy again where its answer may have changed: an action
// that a person approved is compared with its approval digest each time, any
// other only if the tenant's settings changed.
func recheckPolicy(it *outbox.Item, s *settings.Settings) recheckResult {
	hasDigest := it.Approval == envelope.ApprovalGranted && it.ApprovalDigest != nil
	if !hasDigest && it.ConfigVersion == s.Version {
		return recheckResult{}
	}
	tool, ok := s.Tool(key(it))
	if !ok {
		return settled(outbox.Skip(*it, "tool_gone", "its source no longer has the tool"))
	}
	if hasDigest {
		return recheckApproval(it, s, tool)
	}
	return recheckDecision(it, s, tool)
}

// The notes for people to whom an action returns.
const (
	noteChanged = "policy or the tool changed after it was approved"
	noteQuorum  = "more people must agree than did: the review rules changed after it was approved"
	noteUnread  = "what was approved cannot be read by this version"
	notePolicy  = "policy changed after it was approved: "
)

// recheckApproval compares an action with what was approved.
func recheckApproval(it *outbox.Item, s *settings.Settings, tool *catalog.Tool) recheckResult {
	now, decision, err := approval.ComputeDigest(s, tool, proposed(it))
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
		return recheckResult{needsApproval: &needsApproval{tool, decision, notePolicy + policy.Because(decision.Mode, decision.Source, decision.Trace)}}
	}
	return recheckResult{}
}

// recheckDecision asks policy about an action without an approval digest.
func recheckDecision(it *outbox.Item, s *settings.Settings, tool *catalog.Tool) recheckResult {
	// Approved by a version that did not compute approval digests.
	granted := it.Approval == envelope.ApprovalGranted
	if granted && !tool.Is(it.ToolDigest) {
		return settled(outbox.Skip(*it, "tool_changed", "the tool's definition changed after it was approved"))
	}
	decision := s.Decide(tool, proposed(it))
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

// proposed returns what policy decides about.
func proposed(it *outbox.Item) settings.Proposal {
	return settings.Proposal{
		Automation: it.Automation, Employee: it.Employee, Risk: it.Risk, Session: it.Session, Args: it.Args, Now: it.ClaimedAt,
	}
}

func policyDenied(it *outbox.Item, d policy.Decision) recheckResult {
	return settled(outbox.Skip(*it, "policy_denied", "policy denies the tool by now: "+d.Source))
}

// facts returns what the gates check. If the breaker of the source is open and
// this worker may probe the source, the first action that passes is the probe.
func (c *claimedBatch) facts(i int, s *settings.Settings) (f preflight.Facts, probe bool) {
	it := &c.items[i]
	f = preflight.FactsOf(s.Limits, preflight.Action{
		Tool: key(it), Employee: it.Employee, Bucket: s.Limits.NameOf(it.Bucket), Urgent: it.Urgent,
		MustRunBefore: it.MustRunBefore, CreatedAt: it.CreatedAt, Contacts: c.recipients.Contacts[i], Listed: c.recipients.Listed[i],
	}, it.ClaimedAt)
	for n := range f.Quiet {
		f.Quiet[n].Spread = quiethours.Spread(it.Action, f.Quiet[n].Spread)
	}
	src := sourceOf(it)
	if b, ok := c.openBreakers[src]; ok {
		if probe = c.probes[src]; !probe {
			f.BreakerUntil = b.Until
			if !b.Until.After(it.ClaimedAt) || b.State == breaker.StateHalfOpen {
				f.BreakerUntil = it.ClaimedAt.Add(probeWait)
			}
		}
	}
	return f, probe
}

func key(it *outbox.Item) policy.Key { return policy.Key{Source: it.Source, Action: it.Tool} }

func settled(s outbox.Settlement) recheckResult { return recheckResult{settle: &s} }
