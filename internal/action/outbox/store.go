package outbox

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// DueBucket is a bucket's first free row.
type DueBucket struct {
	Bucket int64
	Tenant envelope.TenantID
	// Limited reports whether the bucket has a rate, a calendar or a ceiling.
	Limited bool
	// From is its next_attempt_at, by the database's clock: the lower bound
	// of a claim.
	From time.Time
	// DueIn is the time until the row may run; zero or less if it may run now.
	DueIn time.Duration
	// AwaitedFrom is the next_attempt_at of its first free awaited row; zero if
	// none is due.
	AwaitedFrom time.Time
	// Paused reports whether nothing of the bucket may run until someone resumes it.
	Paused bool
}

// DueBuckets returns up to most buckets with work after the given one, in order of
// their ids, whether their work is due or not.
func DueBuckets(ctx context.Context, tx pgx.Tx, after int64, most int) ([]DueBucket, error) {
	return dueBuckets(ctx, tx, &dbsqlc.OutboxDueBucketsParams{After: after, Most: int64(most)})
}

// DueOf is DueBuckets of some buckets, in their order.
func DueOf(ctx context.Context, tx pgx.Tx, buckets []int64) ([]DueBucket, error) {
	return dueBuckets(ctx, tx, &dbsqlc.OutboxDueBucketsParams{After: math.MaxInt64, Chosen: buckets, Most: int64(len(buckets))})
}

func dueBuckets(ctx context.Context, tx pgx.Tx, of *dbsqlc.OutboxDueBucketsParams) ([]DueBucket, error) {
	rows, err := dbsqlc.New().OutboxDueBuckets(ctx, tx, of)
	return postgres.Map(rows, err, func(r dbsqlc.OutboxDueBucketsRow) DueBucket {
		return DueBucket{
			Bucket: r.BucketID, Tenant: r.TenantID, Limited: r.Limited,
			From: r.NextAttemptAt, DueIn: postgres.Seconds(r.WaitSeconds), AwaitedFrom: r.AwaitedAt, Paused: r.Paused,
		}
	})
}

// ClaimRequest claims up to Quota rows of a bucket.
type ClaimRequest struct {
	Bucket int64
	// Tenant is the owner of the bucket.
	Tenant envelope.TenantID
	// From is the lower bound of the rows in due order.
	From time.Time
	// AwaitedFrom is the lower bound of the awaited rows, which pass the others;
	// zero claims in due order only.
	AwaitedFrom time.Time
	// AwaitedOnly claims awaited rows only.
	AwaitedOnly bool
	Quota       int
	// Turn is from 0 to 9: the position of the first row among ten, of which the
	// last is claimed in due order. A random one keeps the ratio in the long run,
	// also where every claim has a quota of one.
	Turn int
	// Limited is as in DueBucket. A bucket that changed since gives nothing.
	Limited bool
}

// Turns is the number of rows of a bucket of which one is taken in due order,
// while awaited rows are due.
const Turns = 10

// Split divides the quota between rows in due order and awaited rows.
func (r ClaimRequest) Split() (ordered, awaited int) {
	switch {
	case r.AwaitedFrom.IsZero():
		return r.Quota, 0
	case r.AwaitedOnly:
		return 0, r.Quota
	}
	ordered = (r.Turn + r.Quota) / Turns
	return ordered, r.Quota - ordered
}

// Claim leases actions that are due and free, within the limits of the buckets.
// The lease must be renewed before it runs out, or another worker takes the
// envelope over. Limits hold across the fleet: a bucket's permits are granted
// under its lock, in the transaction of the claim, by the database's clock.
// Nothing is claimed unless the epoch of the mark is the fence's.
func Claim(ctx context.Context, tx pgx.Tx, mark Mark, requests []ClaimRequest, lease time.Duration) ([]Item, error) {
	requests, at, err := grant(ctx, tx, requests)
	if err != nil || len(requests) == 0 {
		return nil, err
	}
	p := &dbsqlc.OutboxClaimParams{
		BucketIds:     make([]int64, len(requests)),
		Lowers:        make([]time.Time, len(requests)),
		Quotas:        make([]int64, len(requests)),
		AwaitedLowers: make([]time.Time, len(requests)),
		AwaitedQuotas: make([]int64, len(requests)),
		Granted:       make([]bool, len(requests)),
		LeaseSeconds:  lease.Seconds(),
		ClaimID:       rand.Int64(),
		Epoch:         mark.Epoch, Worker: mark.Worker, Loop: mark.Loop, Seq: mark.Seq,
	}
	for i, w := range requests {
		ordered, awaited := w.Split()
		p.BucketIds[i], p.Lowers[i], p.Quotas[i], p.Granted[i] = w.Bucket, w.From, int64(ordered), w.Limited
		p.AwaitedLowers[i], p.AwaitedQuotas[i] = w.AwaitedFrom, int64(awaited)
	}
	rows, err := dbsqlc.New().OutboxClaim(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(rows))
	for i := range rows {
		items[i] = itemFromRow(&rows[i])
	}
	return items, takePermits(ctx, tx, items, at)
}

func itemFromRow(r *dbsqlc.OutboxClaimRow) Item {
	return Item{
		Lease:            Lease{Tenant: r.TenantID, Action: r.ActionID, Fence: r.Fence},
		Bucket:           r.BucketID,
		Due:              r.NextAttemptAt,
		Awaited:          r.Awaited,
		Attempt:          int(r.Attempt),
		MaxAttempts:      int(r.MaxAttempts),
		LeasesLost:       int(r.Lost),
		Unsure:           r.Unsure,
		Sending:          r.Status == string(envelope.StatusSending),
		Source:           r.SourceID,
		Tool:             r.ToolName,
		Args:             r.Args,
		Effect:           envelope.Effect(r.Effect),
		Risk:             envelope.Risk(r.Risk),
		Employee:         postgres.OrZero(r.EmployeeID),
		Approval:         envelope.Approval(r.ApprovalState),
		Session:          postgres.OrZero(r.SessionID),
		Person:           postgres.OrZero(r.Person),
		Automation:       postgres.OrZero(r.AutomationID),
		ConfigVersion:    r.ConfigVersion,
		ToolDigest:       r.ToolDigest,
		Traceparent:      postgres.OrZero(r.Traceparent),
		ApprovalDigest:   r.ApprovalDigest,
		ExternalID:       postgres.OrZero(r.ExternalID),
		HoldsConcurrency: r.Counted,
		Urgent:           r.Urgent,
		MustRunBefore:    utcOrZero(r.MustRunBefore),
		CreatedAt:        r.CreatedAt,
		ClaimedAt:        r.ClaimedAt,
		Waited:           postgres.Seconds(r.WaitedSeconds),
		Age:              postgres.Seconds(r.AgeSeconds),
	}
}

// Start marks envelopes of class once as started and renews their leases. Only
// the leases that it returns may be used to send: the others were undone or
// lost, or the epoch of the mark is not the fence's.
func Start(ctx context.Context, tx pgx.Tx, mark Mark, leases []Lease, lease time.Duration) (map[Lease]bool, error) {
	k := keysOf(leases)
	rows, err := dbsqlc.New().OutboxStart(ctx, tx, &dbsqlc.OutboxStartParams{
		LeaseSeconds: lease.Seconds(), TenantIds: k.tenants, ActionIds: k.actions, Fences: k.fences,
		Epoch: mark.Epoch, Worker: mark.Worker, Loop: mark.Loop, Seq: mark.Seq,
	})
	if err != nil {
		return nil, err
	}
	started := make(map[Lease]bool, len(rows))
	for _, r := range rows {
		started[Lease{r.TenantID, r.ActionID, r.Fence}] = true
	}
	return started, nil
}

// Renew extends leases by another term. It returns the number of leases still
// held.
func Renew(ctx context.Context, tx pgx.Tx, leases []Lease, lease time.Duration) (int, error) {
	k := keysOf(leases)
	n, err := dbsqlc.New().OutboxRenew(ctx, tx, &dbsqlc.OutboxRenewParams{
		LeaseSeconds: lease.Seconds(), TenantIds: k.tenants, ActionIds: k.actions, Fences: k.fences,
	})
	return int(n), err
}

// ApprovalReturn is an envelope to return to approval, under the given definition
// of its tool.
type ApprovalReturn struct {
	Lease
	ToolDigest []byte
	// Decision is the current decision of policy, which must be stored already.
	// Zero keeps the envelope's.
	Decision uuid.UUID
	// Note is the reason, for people.
	Note string
	// Needed is the number of people who must agree, and Wait the time they have.
	// Warn is the time before its end at which a warning is recorded, Escalate the
	// time after which the action is escalated; zero disables either.
	Needed               int
	Wait, Warn, Escalate time.Duration
	// UnusedPermit is the claim's permit, which is returned.
	UnusedPermit Permit
}

// ReturnToApproval takes envelopes off the schedule that need approval because policy or
// the tool has changed since. It returns the leases of those that it moved.
func ReturnToApproval(ctx context.Context, tx pgx.Tx, returns []ApprovalReturn) ([]Lease, error) {
	leases, n := make([]Lease, len(returns)), len(returns)
	p := &dbsqlc.OutboxReturnToApprovalParams{
		ToolDigests: make([][]byte, n), DecisionIds: make([]uuid.UUID, n), Notes: make([]string, n), Needed: make([]int32, n),
		Waits: make([]float64, n), WarnAfter: make([]float64, n), EscalateAfter: make([]float64, n),
	}
	for i, k := range returns {
		leases[i], p.ToolDigests[i], p.DecisionIds[i], p.Notes[i], p.Needed[i] = k.Lease, k.ToolDigest, k.Decision, k.Note, int32(k.Needed)
		p.Waits[i], p.EscalateAfter[i] = k.Wait.Seconds(), k.Escalate.Seconds()
		if k.Warn > 0 {
			p.WarnAfter[i] = max(time.Millisecond, k.Wait-k.Warn).Seconds()
		}
	}
	k := keysOf(leases)
	p.TenantIds, p.ActionIds, p.Fences = k.tenants, k.actions, k.fences
	rows, err := dbsqlc.New().OutboxReturnToApproval(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	returned := make([]Lease, len(rows))
	deleted := make(map[Lease]bool, len(rows))
	for i, r := range rows {
		returned[i] = Lease{Tenant: r.TenantID, Action: r.ActionID}
		deleted[returned[i]] = true
	}
	permits := make(map[Permit]int64)
	for _, p := range returns {
		if p.UnusedPermit != (Permit{}) && deleted[Lease{Tenant: p.Tenant, Action: p.Action}] {
			permits[p.UnusedPermit]++
		}
	}
	if err := lockBuckets(ctx, tx, permits, nil); err != nil {
		return nil, err
	}
	return returned, returnPermits(ctx, tx, permits)
}

type leaseKeys struct {
	tenants, actions []uuid.UUID
	fences           []int64
}

func keysOf(leases []Lease) leaseKeys {
	k := leaseKeys{make([]uuid.UUID, len(leases)), make([]uuid.UUID, len(leases)), make([]int64, len(leases))}
	for i, l := range leases {
		k.tenants[i], k.actions[i], k.fences[i] = uuid.UUID(l.Tenant), uuid.UUID(l.Action), l.Fence
	}
	return k
}

// Enqueue schedules approved actions, as awaited ones. Their first attempt is
// due immediately, or at their not_before.
func Enqueue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions ...envelope.ActionID) error {
	return enqueue(ctx, tx, tenant, actions, make([]int32, len(actions)), make([]bool, len(actions)), true)
}

// Requeue schedules actions that already had the given numbers of attempts,
// from which the allowed attempts are counted. unsure reports of which an attempt
// may have had its effect; they find out if their class allows it. The error is fault.Conflict if
// an action is scheduled already.
func Requeue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions []envelope.ActionID, attempts []int32, unsure []bool) error {
	return enqueue(ctx, tx, tenant, actions, attempts, unsure, false)
}

func enqueue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions []envelope.ActionID, attempts []int32, unsure []bool, awaited bool) error {
	_, err := dbsqlc.New().OutboxEnqueue(ctx, tx, &dbsqlc.OutboxEnqueueParams{
		TenantID: tenant, ActionIds: postgres.UUIDs(actions), Attempts: attempts, Unsure: unsure, Awaited: awaited,
	})
	return violations.Fault(err)
}

// EndWait returns an action to due order after its caller stopped waiting. An
// action that a person approved stays awaited.
func EndWait(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) error {
	return dbsqlc.New().OutboxEndWait(ctx, tx, &dbsqlc.OutboxEndWaitParams{TenantID: tenant, ActionID: action})
}

// withdraw ends an action that is scheduled, or that waits for approval. An
// action that is approved while this transaction waits for its lock is
// scheduled by then, so the schedule is tried a second time.
func withdraw(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, actor envelope.Actor) (bool, error) {
	q, by := dbsqlc.New(), envelope.UndoneBy+actor
	unschedule := func() (int64, error) {
		return q.OutboxUndo(ctx, tx, &dbsqlc.OutboxUndoParams{
			TenantID: tenant, ActionID: action, Code: CodeUndone, Message: string(by),
		})
	}
	fromApproval := func() (int64, error) {
		return q.ActionWithdraw(ctx, tx, &dbsqlc.ActionWithdrawParams{
			TenantID: tenant, ActionID: action, DecidedBy: string(actor), Message: string(by),
		})
	}
	for _, try := range []func() (int64, error){unschedule, fromApproval, unschedule} {
		if n, err := try(); err != nil || n > 0 {
			return n > 0, err
		}
	}
	return false, nil
}
