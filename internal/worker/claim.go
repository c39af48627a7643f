package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// claimedBatch is a set of leased actions with the settings and facts for their
// recheck, all as of the claim.
type claimedBatch struct {
	at       time.Time
	mark     outbox.Mark
	items    []outbox.Item
	settings map[envelope.TenantID]*settings.Settings
	// actions are the inputs of policy and the checks for the items.
	actions []*decision.Action
	// votes counts the votes that still count for the granted ones.
	votes map[envelope.ActionID]int
	// triage has the automations of the actions that triage proposed, while triage
	// or an account of it is paused.
	triage map[envelope.ActionID][]string
	// openBreakers are the breakers that are not closed, anywhere in the
	// fleet. probes are the sources for which this worker makes the one call
	// that finds out whether the source is back.
	openBreakers map[breaker.Source]breaker.OpenBreaker
	// lost are the items whose calls were made before, under another id, and lost in a
	// failover. guard has the time in which proposals of classes once and keyed need a person.
	lost   map[envelope.ActionID]fence.Lost
	guard  *fence.Guard
	probes map[breaker.Source]bool
	// checked is the result of the checks of the items.
	checked checkedItems
}

// checkedItems are the items of a batch by the result of their recheck.
type checkedItems struct {
	settle   []settlement
	returned []approvalReturn
	// deferred counts the items that exceed the shares of spare slots.
	deferred int
	// run are the items whose tools are called, and once the leases of those of
	// class once. probes are the items whose call probes its source.
	run    []*outbox.Item
	once   []outbox.Lease
	probes map[*outbox.Item]bool
}

// claimIn leases a batch and reads, in the same transaction, the current state of
// everything that may hold it: the tenants' settings, the do-not-contact lists, and
// the breakers.
func (p *Pipeline) claimIn(ctx context.Context, tx pgx.Tx, requests []outbox.ClaimRequest) (claimedBatch, error) {
	c := claimedBatch{settings: make(map[envelope.TenantID]*settings.Settings), mark: p.claims.Next()}
	versions := statesAhead(ctx, tx, requests)
	var err error
	if c.items, err = outbox.Claim(ctx, tx, c.mark, requests, p.cfg.Lease); err != nil || len(c.items) == 0 {
		return c, err
	}
	if c.guard = p.guard; p.guard.Lost() {
		if c.lost, err = fence.FindLost(ctx, tx, c.items); err != nil {
			return c, err
		}
	}
	broken, err := p.readSettings(ctx, tx, versions, &c)
	if err != nil {
		return c, err
	}
	c.actions = make([]*decision.Action, len(c.items))
	for i := range c.items {
		c.actions[i] = actionOf(&c.items[i], c.settings[c.items[i].Tenant])
	}
	if err := decision.FindRecipients(ctx, tx, c.actions); err != nil {
		return c, err
	}
	if c.triage, err = c.automations(ctx, tx); err != nil {
		return c, err
	}
	if c.votes, err = approval.CountVotes(ctx, tx, c.granted()); err != nil {
		return c, err
	}
	return c, p.readBreakers(ctx, tx, &c, broken)
}

// mark marks the calls of class once as going out. It is the last statement of a
// transaction: nothing is sent before the commit, which the claim has counted. A call
// that is not marked goes back.
func (p *Pipeline) mark(ctx context.Context, tx pgx.Tx, c *claimedBatch) error {
	to := &c.checked
	if len(to.once) == 0 {
		return nil
	}
	started, err := outbox.Start(ctx, postgres.Final(tx), outbox.Mark{Epoch: c.mark.Epoch}, to.once, p.cfg.Lease)
	to.run = slices.DeleteFunc(to.run, func(it *outbox.Item) bool {
		unmarked := err == nil && it.Effect == envelope.EffectOnce && !started[it.Lease]
		if unmarked {
			to.settle = append(to.settle, settlement{Settlement: outbox.Release(*it), item: it})
			if to.probes[it] {
				c.probes[sourceOf(it)] = true
			}
		}
		return unmarked
	})
	return err
}

// check rechecks the items of a batch. Those in spare slots that exceed their shares
// are deferred.
func (p *Pipeline) check(c *claimedBatch, spare bool) {
	var within []bool
	if spare {
		within = p.withinShares(c.items)
	}
	to := &c.checked
	to.probes = make(map[*outbox.Item]bool)
	for i := range c.items {
		it := &c.items[i]
		// A call that was started by a worker that was lost is never put back.
		if spare && !within[i] && !it.Sending {
			to.deferred++
			to.settle = append(to.settle, settlement{Settlement: outbox.Defer(*it, outbox.WaitsTurn, p.turns.next(flowOf(it), time.Now())), item: it})
			continue
		}
		v := c.recheck(i)
		switch {
		case v.settle != nil:
			to.settle = append(to.settle, settlement{Settlement: *v.settle, item: it})
		case v.needsApproval != nil:
			to.returned = append(to.returned, approvalReturn{it, v.needsApproval, c.settings[it.Tenant].Review(c.actions[i].Tool, it.Risk).Or(p.cfg.ApprovalWait)})
		default:
			to.run = append(to.run, it)
			if v.probe {
				// One call is enough; the others wait for its result.
				delete(c.probes, sourceOf(it))
				to.probes[it] = true
			}
			if it.Effect == envelope.EffectOnce {
				to.once = append(to.once, it.Lease)
			}
		}
	}
}

// kept returns the number of items that were not deferred for their shares.
func (c *claimedBatch) kept() int { return len(c.items) - c.checked.deferred }

// granted returns the leases of the actions that people approved.
func (c *claimedBatch) granted() (leases []outbox.Lease) {
	for i := range c.items {
		if c.items[i].Approval == envelope.ApprovalGranted {
			leases = append(leases, c.items[i].Lease)
		}
	}
	return leases
}

// automations returns the automations of the actions that triage proposed, if a
// pause of triage can cover some.
func (c *claimedBatch) automations(ctx context.Context, tx pgx.Tx) (map[envelope.ActionID][]string, error) {
	var items []outbox.Item
	for i := range c.items {
		if c.settings[c.items[i].Tenant].Limits.TriagePause() {
			items = append(items, c.items[i])
		}
	}
	if len(items) == 0 {
		return nil, nil
	}
	return outbox.Automations(ctx, tx, items)
}

// automationsOf returns the names by which a pause can cover the program that
// proposed an item.
func (c *claimedBatch) automationsOf(it *outbox.Item) (names []string) {
	if it.Automation != "" {
		names = append(names, it.Automation)
	}
	return append(names, c.triage[it.Action]...)
}

// readSettings reads the settings of the tenants of the batch, whose states it reads
// with versions. It returns the tenants that have a breaker which is not closed.
func (p *Pipeline) readSettings(ctx context.Context, tx, versions pgx.Tx, c *claimedBatch) (broken []envelope.TenantID, err error) {
	var tenants []envelope.TenantID
	for i := range c.items {
		if t := c.items[i].Tenant; c.settings[t] == nil {
			c.settings[t] = &settings.Settings{}
			tenants = append(tenants, t)
		}
	}
	states, err := settings.States(ctx, versions, tenants)
	if err != nil {
		return nil, err
	}
	for _, t := range tenants {
		if c.settings[t], err = p.catalog.At(ctx, tx, t, states[t].Version); err != nil {
			return nil, fmt.Errorf("settings of tenant %s: %w", t, err)
		}
		if states[t].BreakerOpen {
			broken = append(broken, t)
		}
	}
	return broken, nil
}

// probeTimeout is the time after which another worker may probe a source, if
// the worker that was to probe it has not reported.
const probeTimeout = time.Minute

// readBreakers reads the breakers of tenants, and acquires the right to probe
// the sources whose breakers have been open long enough.
func (p *Pipeline) readBreakers(ctx context.Context, tx pgx.Tx, c *claimedBatch, broken []envelope.TenantID) error {
	if len(broken) == 0 {
		return nil
	}
	breakers, err := breaker.NotClosed(ctx, tx, broken...)
	if err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	c.openBreakers = make(map[breaker.Source]breaker.OpenBreaker, len(breakers))
	for _, b := range breakers {
		c.openBreakers[b.Source] = b
	}
	due := make(map[breaker.Source]bool)
	var probe []breaker.Source
	for i := range c.items {
		it := &c.items[i]
		src := sourceOf(it)
		if b, ok := c.openBreakers[src]; ok && !b.Until.After(it.ClaimedAt) && !due[src] {
			due[src] = true
			probe = append(probe, src)
		}
	}
	if len(probe) == 0 {
		return nil
	}
	c.probes, err = breaker.Probe(ctx, tx, probe, p.cfg.ID, probeTimeout)
	return err
}

// recheckResult is the result of rechecking a claimed action: settle it
// without a call, return it to approval or, if neither is set, call the tool.
type recheckResult struct {
	settle        *outbox.Settlement
	needsApproval *needsApproval
	// probe reports whether the call finds out if its source is back.
	probe bool
}

// needsApproval is the reason why an approved action needs approval again, and
// the tool's current definition for the decision.
type needsApproval struct {
	tool     *catalog.Tool
	decision policy.Decision
	note     string
}

// pausedRecheck is the time after which a paused action is checked again.
// Resuming wakes it sooner.
const pausedRecheck = time.Hour

// probeWait is the delay of an action while another call probes its source.
const probeWait = time.Second

// recheck evaluates policy and the preflight checks again, just before the call: they may have
// changed since the approval.
func (c *claimedBatch) recheck(i int) recheckResult {
	it := &c.items[i]
	if it.Sending && it.Effect == envelope.EffectOnce {
		return settled(outbox.WorkerLost(*it))
	}
	if it.LeasesLost > outbox.MaxLeasesLost {
		return settled(outbox.TooManyLeasesLost(*it))
	}
	if lost, ok := c.lost[it.Action]; ok {
		return settled(outbox.Skip(*it, "sent_before", fmt.Sprintf(
			"a call with this external_id was made at %s by %s, and the database lost it; its outcome: %s", lost.At.UTC().Format(time.RFC3339), lost.Worker, cmp.Or(lost.Outcome, "not known"))))
	}
	if r := recheckPolicy(it, c.actions[i], c.votes[it.Action]); r.settle != nil || r.needsApproval != nil {
		return r
	}
	// A lost action that is proposed again has another key than the call that was made.
	keyed := it.Effect == envelope.EffectOnce || it.Effect == envelope.EffectKeyed
	if a := c.actions[i]; keyed && it.Approval == envelope.ApprovalAuto && c.guard.Asks(it.CreatedAt) && a.Tool != nil {
		return recheckResult{needsApproval: &needsApproval{a.Tool, a.Recheck(), noteRecovered}}
	}
	facts, probe := c.facts(i)
	switch a := preflight.Check(facts); a.Result {
	case preflight.Skip:
		if a.Code == preflight.CodeKilled {
			// The sweep of the kill ends the action: only the sweep counts it
			// for the kill, and names the person who gave the kill.
			return settled(outbox.Defer(*it, preflight.CodePaused, pausedRecheck))
		}
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

// recheckPolicy evaluates policy again if its decision may have changed: an
// approved action is compared with its approval digest each time, any other
// only if the tenant's settings changed.
func recheckPolicy(it *outbox.Item, a *decision.Action, votes int) recheckResult {
	hasDigest := it.Approval == envelope.ApprovalGranted && it.ApprovalDigest != nil
	if !hasDigest && it.ConfigVersion == a.Settings.Version {
		return recheckResult{}
	}
	if a.Tool == nil {
		return settled(outbox.Skip(*it, "tool_gone", "its source no longer has the tool"))
	}
	if hasDigest {
		return recheckApproval(it, a, votes)
	}
	return recheckDecision(it, a)
}

// The notes for people who decide about a returned action.
const (
	noteChanged     = "policy or the tool changed after it was approved"
	noteQuorum      = "more people must agree than did: the review rules changed after it was approved"
	noteVoters      = "not enough of those who approved it may still decide"
	noteCredentials = "the credentials of its source changed after it was approved"
	noteUnread      = "what was approved cannot be read by this version"
	notePolicy      = "policy changed after it was approved: "
	noteRecovered   = "the database was recovered: this may repeat an action that was sent before and lost"
)

// recheckApproval compares an action with its approval, and with the votes that
// count.
func recheckApproval(it *outbox.Item, a *decision.Action, votes int) recheckResult {
	now, d, err := approval.ComputeDigest(a)
	then, readable := approval.ParseDigest(it.ApprovalDigest)
	switch {
	case !readable:
		return recheckResult{needsApproval: &needsApproval{a.Tool, d, noteUnread}}
	case err != nil || now.Args != then.Args:
		return settled(outbox.Skip(*it, "args_changed", "the arguments are not the ones that were approved"))
	case !a.Tool.Is(then.ToolDigest):
		return settled(outbox.Skip(*it, "tool_changed", "the tool's definition, or the address of its source, changed after it was approved"))
	case d.Mode == envelope.ModeDeny:
		return policyDenied(it, d)
	case now.Generation != then.Generation:
		return recheckResult{needsApproval: &needsApproval{a.Tool, d, noteCredentials}}
	case now.Needed > then.Needed && !then.Alone:
		return recheckResult{needsApproval: &needsApproval{a.Tool, d, noteQuorum}}
	case d.Mode == envelope.ModeRequireApproval && votes < then.Needed:
		return recheckResult{needsApproval: &needsApproval{a.Tool, d, noteVoters}}
	case d.Mode == envelope.ModeRequireApproval && now.Decision != then.Decision:
		return recheckResult{needsApproval: &needsApproval{a.Tool, d, notePolicy + policy.Because(d.Mode, d.Source, d.Trace)}}
	}
	return recheckResult{}
}

// recheckDecision evaluates policy for an action without an approval digest.
func recheckDecision(it *outbox.Item, a *decision.Action) recheckResult {
	// Approved by a version that did not compute approval digests.
	granted := it.Approval == envelope.ApprovalGranted
	if granted && !a.Tool.Is(it.ToolDigest) {
		return settled(outbox.Skip(*it, "tool_changed", "the tool's definition changed after it was approved"))
	}
	d := a.Recheck()
	switch d.Mode {
	case envelope.ModeDeny:
		return policyDenied(it, d)
	case envelope.ModeRequireApproval:
		if !granted {
			return recheckResult{needsApproval: &needsApproval{a.Tool, d, noteChanged}}
		}
	case envelope.ModeAllow:
	}
	return recheckResult{}
}

// actionOf returns an item as policy decides about it.
func actionOf(it *outbox.Item, s *settings.Settings) *decision.Action {
	tool, _ := s.Tool(key(it))
	return &decision.Action{Settings: s, Tool: tool, Proposal: settings.Proposal{
		Automation: it.Automation, Employee: it.Employee, Risk: it.Risk, Session: it.Session, Person: it.Person, Args: it.Args, Now: it.ClaimedAt,
	}}
}

func policyDenied(it *outbox.Item, d policy.Decision) recheckResult {
	return settled(outbox.Skip(*it, "policy_denied", "policy now denies the tool: "+d.Source))
}

// facts returns the input of the checks. If the breaker of the source is open and
// this worker may probe the source, the first action that passes is the probe.
func (c *claimedBatch) facts(i int) (f preflight.Facts, probe bool) {
	it, a := &c.items[i], c.actions[i]
	f = preflight.FactsOf(a.Settings.Limits, preflight.Action{
		Tool: key(it), Employee: it.Employee, Automations: c.automationsOf(it), Approved: it.Approval == envelope.ApprovalGranted, Bucket: a.Settings.Limits.NameOf(it.Bucket), Urgent: it.Urgent,
		MustRunBefore: it.MustRunBefore, CreatedAt: it.CreatedAt, Contacts: a.Contacts, Listed: a.Match,
	}, it.ClaimedAt)
	for n := range f.Quiet {
		f.Quiet[n].Spread = quiethours.Spread(it.Action, f.Quiet[n].Spread)
	}
	if of, ok := a.Settings.Source(it.Source); ok {
		f.LoginLost = of.WaitsForLogin(it.Tool)
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
