package intake

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// lockUsage counts n envelopes to a session's minute, locks the session's row,
// and returns what the session had used before, so that in the usual case,
// where the limits allow all, nothing else has to be written. What waits for
// a decision is counted only if asked for: by a statement of its own, which
// sees what others committed before they let go of the lock.
func lockUsage(ctx context.Context, tx pgx.Tx, by Submitter, limits limits.Session, n int, waits bool) (*usage, error) {
	if limits.Minute == 0 {
		n = 0
	}
	q, u := dbsqlc.New(), &usage{limits: limits}
	taken, err := q.SessionUsageTake(ctx, tx, &dbsqlc.SessionUsageTakeParams{
		TenantID: uuid.UUID(by.Tenant), SessionID: by.Session, Taken: int32(n),
	})
	if err != nil {
		return nil, err
	}
	u.used, u.minuteIn = int(taken.Used)-n, postgres.Seconds(taken.RoomIn)
	if limits.Pending == 0 || !waits {
		return u, nil
	}
	pending, err := q.SessionPending(ctx, tx, &dbsqlc.SessionPendingParams{
		TenantID: uuid.UUID(by.Tenant), SessionID: by.Session, Most: int64(limits.Pending),
	})
	if err != nil {
		return nil, err
	}
	u.pending, u.pendingIn = int(pending.Pending), postgres.Seconds(pending.RoomIn)
	return u, nil
}

// setUsage stores what a session used, where the limits did not allow all that
// lockUsage counted.
func setUsage(ctx context.Context, tx pgx.Tx, by Submitter, u *usage) error {
	return dbsqlc.New().SessionUsageSet(ctx, tx, &dbsqlc.SessionUsageSetParams{
		TenantID: uuid.UUID(by.Tenant), SessionID: by.Session, Used: int32(u.used),
	})
}

// PruneSessions deletes the usage of sessions that have proposed nothing for an
// hour, and returns their number.
func PruneSessions(ctx context.Context, db postgres.Begins) (int64, error) {
	var n int64
	err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
		var err error
		n, err = dbsqlc.New().SessionUsagePrune(ctx, tx)
		return err
	})
	return n, err
}
