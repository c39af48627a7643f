package intake

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// insert stores rows and schedules those that may run, along with the next statement. If
// one of their names is taken, the error of either is a duplicate, and the transaction is
// aborted.
func insert(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, version int64, now time.Time, rows []*row) error {
	store := insertMixed
	if !slices.ContainsFunc(rows, func(r *row) bool { return !r.alike(rows[0]) }) {
		store = insertAlike
	}
	if err := store(ctx, tx, tenant, version, now, rows); err != nil || !slices.ContainsFunc(rows, (*row).waits) {
		return err
	}
	return insertApprovals(ctx, tx, tenant, rows)
}

// alike reports whether insertAlike can store two rows together.
func (r *row) alike(other *row) bool {
	p, q := r.proposal, other.proposal
	return r.of == other.of && r.Tool == other.Tool && r.Employee == other.Employee && r.Session == other.Session && r.Risk == other.Risk &&
		r.approval == other.approval && r.review == other.review && r.decision.ID == other.decision.ID &&
		p.AutomationID == q.AutomationID && p.Tool.ComposioApp == q.Tool.ComposioApp && p.Constraints.Urgent == q.Constraints.Urgent &&
		p.Constraints.NotBefore.Equal(q.Constraints.NotBefore) && p.Constraints.MustRunBefore.Equal(q.Constraints.MustRunBefore)
}

// insertAlike stores rows of one submission that differ only in their names, arguments
// and buckets: most batches are of one tool.
func insertAlike(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, version int64, now time.Time, rows []*row) error {
	n, r := len(rows), rows[0]
	q, by := r.proposal, r.by
	p := &dbsqlc.ActionInsertAlikeParams{
		TenantID: tenant, ConfigVersion: version, WorkflowID: postgres.OrNull(by.Workflow),
		ProposedBy: postgres.OrNull(by.Token), Person: postgres.OrNull(by.Proposer()), Awaited: by.Awaited, Traceparent: postgres.OrNull(r.traceparent),
		EmployeeID: postgres.OrNull(uuid.UUID(r.Employee)), AutomationID: postgres.OrNull(q.AutomationID), SessionID: postgres.OrNull(r.Session),
		SourceID: r.Tool.Key.Source, ToolName: r.Tool.Key.Action, ComposioApp: postgres.OrNull(q.Tool.ComposioApp),
		Risk: string(r.Risk), Effect: string(r.Tool.Effect), DecisionID: r.decision.ID, ToolDigest: postgres.NotNull(r.Tool.Binding), ApprovalState: string(r.approval),
		NotBefore: postgres.OrNull(q.Constraints.NotBefore.UTC()), MustRunBefore: postgres.OrNull(q.Constraints.MustRunBefore.UTC()),
		MaxAttempts: int32(r.Tool.MaxAttempts), Urgent: q.Constraints.Urgent,
		ActionIds: make([]uuid.UUID, n), ExternalIds: make([]string, n), ContentDigests: make([][]byte, n),
		Args: make([][]byte, n), BucketIds: make([]int64, n), RateBuckets: make([]string, n),
	}
	if len(by.Origin) > 0 {
		p.Origin = by.Origin
	}
	switch {
	case r.waits():
		p.ApprovalExpiresAt = new(r.expiresAt(now))
	case r.approval == envelope.ApprovalDenied:
		p.DecisionNote = new("policy")
	}
	for i, r := range rows {
		q := r.proposal
		p.ActionIds[i], p.ExternalIds[i], p.ContentDigests[i] = uuid.UUID(r.action), q.ExternalID, r.digest[:]
		p.Args[i], p.BucketIds[i], p.RateBuckets[i] = q.Args, r.bucket, q.Constraints.RateBucket
	}
	return dbsqlc.New().ActionInsertAlike(ctx, postgres.Along(tx), p)
}

// insertMixed stores any rows.
func insertMixed(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, version int64, now time.Time, rows []*row) error {
	n := len(rows)
	p := &dbsqlc.ActionInsertManyParams{
		TenantID: tenant, ConfigVersion: version, WorkflowID: postgres.OrNull(rows[0].by.Workflow),
		ProposedBys: make([]uuid.UUID, n), People: make([]uuid.UUID, n), Origins: make([]string, n), Awaited: make([]bool, n), Traceparents: make([]string, n),
		ActionIds: make([]uuid.UUID, n), ExternalIds: make([]string, n), ContentDigests: make([][]byte, n),
		EmployeeIds: make([]uuid.UUID, n), AutomationIds: make([]string, n), SessionIds: make([]string, n),
		SourceIds: make([]string, n), ToolNames: make([]string, n), ComposioApps: make([]string, n),
		Args: make([][]byte, n), Risks: make([]string, n), Effects: make([]string, n),
		DecisionIds: make([]uuid.UUID, n),
		ToolDigests: make([][]byte, n), ApprovalStates: make([]string, n), BucketIds: make([]int64, n),
		RateBuckets: make([]string, n), NotBefores: make([]time.Time, n), MustRunBefores: make([]time.Time, n), MaxAttempts: make([]int32, n), Urgent: make([]bool, n),
	}
	for i, r := range rows {
		q, by := r.proposal, r.by
		p.ProposedBys[i], p.People[i], p.Origins[i], p.Awaited[i] = by.Token, by.Proposer(), string(by.Origin), by.Awaited
		p.Traceparents[i] = r.traceparent
		p.ActionIds[i], p.ExternalIds[i], p.ContentDigests[i] = uuid.UUID(r.action), q.ExternalID, r.digest[:]
		p.EmployeeIds[i], p.AutomationIds[i], p.SessionIds[i] = uuid.UUID(r.Employee), q.AutomationID, r.Session
		p.SourceIds[i], p.ToolNames[i], p.ComposioApps[i] = r.Tool.Key.Source, r.Tool.Key.Action, q.Tool.ComposioApp
		p.Args[i], p.Risks[i], p.Effects[i] = q.Args, string(r.Risk), string(r.Tool.Effect)
		p.DecisionIds[i] = r.decision.ID
		p.ToolDigests[i], p.ApprovalStates[i], p.BucketIds[i] = r.Tool.Binding, string(r.approval), r.bucket
		p.RateBuckets[i], p.NotBefores[i], p.MustRunBefores[i] = q.Constraints.RateBucket, q.Constraints.NotBefore, q.Constraints.MustRunBefore
		p.MaxAttempts[i], p.Urgent[i] = int32(r.Tool.MaxAttempts), q.Constraints.Urgent
		if r.waits() {
			if p.ApprovalExpires == nil {
				p.ApprovalExpires = make([]time.Time, n)
			}
			p.ApprovalExpires[i] = r.expiresAt(now)
		}
	}
	sendOnce(p)
	return dbsqlc.New().ActionInsertMany(ctx, postgres.Along(tx), p)
}

// sendOnce shortens each column that is the same in all rows to its first value,
// as ActionInsertMany accepts it: encoding and decoding every column of every row
// would cost as much as deciding about it.
func sendOnce(p *dbsqlc.ActionInsertManyParams) {
	p.ProposedBys, p.People, p.Origins, p.Awaited = once(p.ProposedBys), once(p.People), once(p.Origins), once(p.Awaited)
	p.Traceparents = once(p.Traceparents)
	p.EmployeeIds, p.AutomationIds, p.SessionIds = once(p.EmployeeIds), once(p.AutomationIds), once(p.SessionIds)
	p.SourceIds, p.ToolNames, p.ComposioApps = once(p.SourceIds), once(p.ToolNames), once(p.ComposioApps)
	p.Risks, p.Effects, p.DecisionIds, p.ApprovalStates = once(p.Risks), once(p.Effects), once(p.DecisionIds), once(p.ApprovalStates)
	p.BucketIds, p.RateBuckets, p.NotBefores, p.MustRunBefores = once(p.BucketIds), once(p.RateBuckets), once(p.NotBefores), once(p.MustRunBefores)
	p.MaxAttempts, p.Urgent = once(p.MaxAttempts), once(p.Urgent)
	if !slices.ContainsFunc(p.ToolDigests, func(d []byte) bool { return !bytes.Equal(d, p.ToolDigests[0]) }) {
		p.ToolDigests = p.ToolDigests[:1]
	}
}

// once returns the first of the values if all are the same.
func once[T comparable](values []T) []T {
	if slices.ContainsFunc(values, func(v T) bool { return v != values[0] }) {
		return values
	}
	return values[:1]
}

// insertApprovals stores the reviews of the rows that wait for people.
func insertApprovals(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, rows []*row) error {
	p := &dbsqlc.ApprovalInsertManyParams{TenantID: tenant}
	for _, r := range rows {
		if !r.waits() {
			continue
		}
		var warn time.Duration
		if r.review.Warn > 0 {
			warn = max(time.Millisecond, r.review.Wait-r.review.Warn)
		}
		p.ActionIds, p.Needed = append(p.ActionIds, uuid.UUID(r.action)), append(p.Needed, int32(r.review.Approvals)) // at most MaxApprovals
		p.Asked = append(p.Asked, r.proposal.Approval == envelope.ApprovalRequired)
		p.WarnAfter, p.EscalateAfter = append(p.WarnAfter, warn.Seconds()), append(p.EscalateAfter, r.review.Escalate.Seconds())
	}
	return dbsqlc.New().ApprovalInsertMany(ctx, tx, p)
}

// findExisting answers the proposals that the tenant has already, by their keys.
// It returns their indexes in the batch.
func findExisting(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, rows []*row, answers []Answer) (map[int]bool, error) {
	p := &dbsqlc.ActionsKnownParams{TenantID: tenant}
	for _, r := range rows {
		if r.chosen {
			p.ActionIds = append(p.ActionIds, uuid.UUID(r.action))
		}
		if r.external != "" {
			p.ExternalIds = append(p.ExternalIds, r.external)
		}
	}
	found, err := dbsqlc.New().ActionsKnown(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	type stored struct {
		uniqueness
		by      uuid.UUID
		session string
	}
	byAction, byExternal := make(map[envelope.ActionID]stored, len(found)), make(map[string]stored, len(found))
	for _, f := range found {
		first := stored{
			uniqueness{action: f.ActionID, external: f.ExternalID, digest: envelope.Digest(f.ContentDigest)},
			postgres.OrZero(f.ProposedBy), f.SessionID,
		}
		byAction[first.action] = first
		if first.external != "" {
			byExternal[first.external] = first
		}
	}
	known := make(map[int]bool, len(found))
	for _, r := range rows {
		first, ok := byExternal[r.external]
		if !ok {
			first, ok = byAction[r.action]
		}
		first.unseen = ok && !r.by.Sees(first.by, first.session)
		// A proposal that is rejected anyway is rejected alike whether others have its name.
		if ok && !(first.unseen && answers[r.at].Err != nil) {
			known[r.at] = true
			answers[r.at] = r.compare(first.uniqueness)
		}
	}
	return known, nil
}

// lockUsage adds n envelopes to a session's minute, locks the session's row,
// and returns the session's use before the addition, so that in the common
// case, where the limits allow all, nothing else is written. Pending envelopes
// are counted only if asked for: by a separate statement, which sees the rows
// committed before the lock was released.
func lockUsage(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, session string, limits limits.Session, n int, waits bool) (*usage, error) {
	if limits.Minute == 0 {
		n = 0
	}
	q, u := dbsqlc.New(), &usage{limits: limits}
	taken, err := q.SessionUsageTake(ctx, tx, &dbsqlc.SessionUsageTakeParams{
		TenantID: tenant, SessionID: session, Taken: int32(n),
	})
	if err != nil {
		return nil, err
	}
	u.used, u.minuteIn = int(taken.Used)-n, postgres.Seconds(taken.RoomIn)
	if limits.Pending == 0 || !waits {
		return u, nil
	}
	pending, err := q.SessionPending(ctx, tx, &dbsqlc.SessionPendingParams{
		TenantID: tenant, SessionID: session, Most: int64(limits.Pending),
	})
	if err != nil {
		return nil, err
	}
	u.pending, u.pendingIn = int(pending.Pending), postgres.Seconds(pending.RoomIn)
	return u, nil
}

// setUsage corrects a session's use if the limits did not allow all that
// lockUsage counted.
func setUsage(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, session string, u *usage) error {
	return dbsqlc.New().SessionUsageSet(ctx, tx, &dbsqlc.SessionUsageSetParams{
		TenantID: tenant, SessionID: session, Used: int32(u.used),
	})
}

// agentSessions returns the sessions among the given ones that belong to an
// agent.
func agentSessions(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, sessions []string) ([]string, error) {
	return dbsqlc.New().AgentSessions(ctx, tx, &dbsqlc.AgentSessionsParams{TenantID: uuid.UUID(tenant), SessionIds: sessions})
}

// PruneSessions deletes the usage of sessions that have proposed nothing for an
// hour, and returns their number.
func PruneSessions(ctx context.Context, db postgres.Begins) (int64, error) {
	return postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (int64, error) {
		return dbsqlc.New().SessionUsagePrune(ctx, tx)
	})
}
