package worker

import (
	"bytes"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/circuit"
	"github.com/countersign-dev/countersign/internal/gate"
	"github.com/countersign-dev/countersign/internal/outbox"
	"github.com/countersign-dev/countersign/internal/policy"
)

// verdict is what is to be done with a claimed envelope: settle it without a
// call, send it to a person, or, if neither is set, call the tool.
type verdict struct {
	settle *outbox.Settlement
	// park is the digest of the tool's definition that the person decides
	// about.
	park []byte
	// probe says that the call shows whether its source is well again.
	probe bool
}

// recheck is after which time an envelope is looked at again that waits for an
// operator. Lifting a pause wakes it sooner.
const recheck = time.Hour

// politeness is how long a call waits that met a probe in flight.
const politeness = time.Second

// judge decides the second time, just before the call: the world may have
// moved since the envelope was let through.
func (c *claimed) judge(i int) verdict {
	it := &c.items[i]
	if it.Sending && it.Effect == envelope.EffectOnce {
		return settled(outbox.Lose(*it))
	}
	if it.Lost > outbox.MaxLost {
		return settled(outbox.Poison(*it))
	}
	snap := c.snaps[it.Tenant]
	if it.ConfigVersion != snap.Version {
		if v := redecide(it, snap); v.settle != nil || v.park != nil {
			return v
		}
	}
	facts, probe := c.facts(i, snap)
	switch a := gate.Check(facts); a.Verdict {
	case gate.Skip:
		return settled(outbox.Skip(*it, a.Code, a.Message))
	case gate.Wait:
		wait := recheck
		if !a.Until.IsZero() {
			wait = max(0, a.Until.Sub(it.ClaimedAt))
		}
		return settled(outbox.Wait(*it, a.Code, wait))
	case gate.Pass:
	}
	return verdict{probe: probe}
}

// redecide asks policy again, because something that it depends on changed.
func redecide(it *outbox.Item, snap *catalog.Snapshot) verdict {
	tool, ok := snap.Tool(key(it))
	if !ok {
		return settled(outbox.Skip(*it, "tool_gone", "its source no longer has the tool"))
	}
	granted := it.Approval == envelope.ApprovalGranted
	if granted && !bytes.Equal(tool.Digest, it.ToolDigest) {
		return settled(outbox.Skip(*it, "tool_changed", "the tool's definition changed after it was approved"))
	}
	decision := snap.Decide(tool, catalog.Proposed{Automation: it.Automation, Employee: it.Employee, Risk: it.Risk, Session: it.Session, Args: it.Args})
	switch decision.Mode {
	case envelope.ModeDeny:
		return settled(outbox.Skip(*it, "policy_denied", "policy denies the tool by now: "+decision.Source))
	case envelope.ModeRequireApproval:
		if !granted {
			return verdict{park: tool.Digest}
		}
	case envelope.ModeAllow:
	}
	return verdict{}
}

// facts gathers what the gates look at. Where the source is left alone and
// this worker may probe it, the first envelope that passes is the probe.
func (c *claimed) facts(i int, snap *catalog.Snapshot) (f gate.Facts, probe bool) {
	it := &c.items[i]
	f = gate.Facts{
		Now: it.ClaimedAt, MustRunBefore: it.MustRunBefore,
		DoNotContact: c.matches[i],
		Quiet:        snap.Limits.Quiet(it.Employee, snap.Limits.NameOf(it.Bucket), c.contacts[i], it.ClaimedAt),
	}
	for n := range f.Quiet {
		f.Quiet[n].Spread = gate.Spread(it.Action, f.Quiet[n].Spread)
	}
	if len(f.Quiet) > 0 && it.Urgent {
		e, known := snap.Limits.Employee(it.Employee)
		f.UrgentAsked, f.UrgentAllowed = true, known && len(gate.Granted(e.Scopes, []string{string(gate.ScopeQuietOverride)})) == 0
	}
	if pause, ok := snap.Limits.Paused(it.Employee, key(it)); ok {
		f.Pause = gate.Pause{
			Scope: string(pause.Scope), Since: pause.At,
			Kill: pause.Kill && pause.KilledAt != nil && !it.CreatedAt.After(*pause.KilledAt),
		}
	}
	src := circuit.Source{Tenant: it.Tenant, ID: it.Source}
	if s, ok := c.alone[src]; ok {
		if probe = c.probes[src]; !probe {
			f.BreakerUntil = s.Until
			if !s.Until.After(it.ClaimedAt) || s.Phase == circuit.HalfOpen {
				f.BreakerUntil = it.ClaimedAt.Add(politeness)
			}
		}
	}
	return f, probe
}

func key(it *outbox.Item) policy.Key { return policy.Key{Source: it.Source, Action: it.Tool} }

func settled(s outbox.Settlement) verdict { return verdict{settle: &s} }
