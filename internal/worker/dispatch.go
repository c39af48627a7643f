package worker

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// dispatch starts the calls of a batch that may be made.
func (p *Pipeline) dispatch(ctx context.Context, c claimedBatch) {
	if len(c.items) == 0 && len(c.probes) == 0 {
		return
	}
	p.cfg.Metrics.ClaimBatch.Record(ctx, float64(len(c.items)))
	for _, settled := range c.checked.settle {
		p.settle <- settled
	}
	if returned := c.checked.returned; len(returned) > 0 {
		p.returnToApproval(context.WithoutCancel(ctx), returned)
	}
	run, probes := c.checked.run, c.checked.probes
	for src := range c.probes {
		p.breakerEvents <- breakerEvent{Source: src, kind: probeReleased} // nothing was there to probe with
	}
	p.guard.Started(run, c.at)
	p.executing.Add(int64(len(run)))
	for _, it := range run {
		snap := c.settings[it.Tenant]
		src, err := p.live.Get(snap, it.Source)
		a := attempt{item: it, claimed: c.at, source: src, sourceErr: err, retry: p.retryOf(snap, it), probe: probes[it]}
		a.sharedBucket = snap.Limits.NameOf(it.Bucket) == limits.DefaultBucket
		if tool, ok := snap.Tool(key(it)); ok {
			a.timeout = tool.Timeout
		}
		if it.ApprovalDigest != nil && it.Approval == envelope.ApprovalGranted {
			if of, ok := snap.Source(it.Source); ok && connection.Discovered(of.Kind) {
				a.approvedBy = snap
			}
		}
		if rule, ok := snap.SnapshotRule(key(it)); ok {
			a.snapshot = &snapshotRead{rule: rule, snap: snap}
		}
		p.start(a)
	}
}

// start makes a call, in a goroutine that waits for one if there is any.
func (p *Pipeline) start(a attempt) {
	p.running.Add(1)
	select {
	case p.attempts <- a:
	default:
		p.callers.Go(func() { p.callLoop(a) })
	}
}

// callLoop makes calls, one after the other, until an attempt without an item or the
// end of the attempts. Its stack has the size for a call, which costs more to grow than
// a call without work.
func (p *Pipeline) callLoop(a attempt) {
	for open := true; open && a.item != nil; a, open = <-p.attempts {
		p.execute(a)
		p.running.Done()
	}
}

// dismiss ends the goroutines that wait for calls.
func (p *Pipeline) dismiss() {
	for {
		select {
		case p.attempts <- attempt{}:
		default:
			return
		}
	}
}

// retryOf returns the retry policy of an item's tool.
func (p *Pipeline) retryOf(snap *settings.Settings, it *outbox.Item) outbox.Retry {
	if tool, ok := snap.Tool(key(it)); ok && tool.Retry != (catalog.Retry{}) {
		return outbox.Retry(tool.Retry)
	}
	return p.cfg.Retry
}

// approvalReturn is an item that returns to approval, and its review.
type approvalReturn struct {
	*outbox.Item
	*needsApproval
	review settings.Review
}

func (p *Pipeline) writeApprovalReturns(ctx context.Context, tx pgx.Tx, returns []approvalReturn) error {
	decisions := make(map[envelope.TenantID][]policy.Decision)
	rows := make([]outbox.ApprovalReturn, len(returns))
	for i, k := range returns {
		decisions[k.Tenant] = append(decisions[k.Tenant], k.decision)
		rows[i] = outbox.ApprovalReturn{
			Lease: k.Lease, ToolDigest: k.tool.Binding, Decision: k.decision.ID, Note: k.note, UnusedPermit: k.Permit,
			Needed: k.review.Approvals, Wait: k.review.Wait, Warn: k.review.Warn, Escalate: k.review.Escalate,
		}
	}
	for _, tenant := range slices.SortedFunc(maps.Keys(decisions), func(a, b envelope.TenantID) int { return bytes.Compare(a[:], b[:]) }) {
		if err := decision.Insert(ctx, tx, tenant, decisions[tenant]...); err != nil {
			return err
		}
	}
	returned, err := outbox.ReturnToApproval(ctx, tx, rows)
	if err != nil {
		return err
	}
	byTenant := make(map[envelope.TenantID][]audit.Item)
	for _, l := range returned {
		byTenant[l.Tenant] = append(byTenant[l.Tenant], audit.Item{Action: l.Action, Status: envelope.StatusPending, Approval: envelope.ApprovalRequired})
	}
	return audit.WriteLast(ctx, tx, p.events(audit.ReturnedToApproval, byTenant)...)
}

// returnToApproval returns scheduled actions to approval.
func (p *Pipeline) returnToApproval(ctx context.Context, returns []approvalReturn) {
	err := p.tx(ctx, func(tx pgx.Tx) error {
		return p.writeApprovalReturns(ctx, tx, returns)
	})
	if err != nil {
		// Their leases expire, and they are rechecked.
		p.cfg.Log.ErrorContext(ctx, "actions were not returned to approval", slog.Int("envelopes", len(returns)), slog.Any("error", err))
	}
	leases := make([]outbox.Lease, len(returns))
	for i, k := range returns {
		leases[i] = k.Lease
	}
	p.inFlight.drop(leases)
	p.semaphore.release(len(leases))
}
