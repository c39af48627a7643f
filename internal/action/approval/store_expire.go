package approval

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// expire marks what nobody decided in time.
func expire(ctx context.Context, tx pgx.Tx, most int) (map[envelope.TenantID][]envelope.ActionID, error) {
	rows, err := dbsqlc.New().ActionsExpire(ctx, tx, int64(most))
	if err != nil {
		return nil, err
	}
	overdue := make(map[envelope.TenantID][]envelope.ActionID)
	for _, r := range rows {
		t := envelope.TenantID(r.TenantID)
		overdue[t] = append(overdue[t], envelope.ActionID(r.ActionID))
	}
	return overdue, nil
}

// dueWarnings takes the warnings that are due: those of envelopes that still
// wait, and how many there were in all.
func dueWarnings(ctx context.Context, tx pgx.Tx, most int) ([]reminder, int, error) {
	rows, err := dbsqlc.New().ApprovalsExpiring(ctx, tx, int64(most))
	if err != nil {
		return nil, 0, err
	}
	var due []reminder
	for _, r := range rows {
		due = appendWaiting(due, dbsqlc.ApprovalsEscalatingRow(r))
	}
	return due, len(rows), nil
}

// dueEscalations takes the escalations that are due, like dueWarnings.
func dueEscalations(ctx context.Context, tx pgx.Tx, most int) ([]reminder, int, error) {
	rows, err := dbsqlc.New().ApprovalsEscalating(ctx, tx, int64(most))
	if err != nil {
		return nil, 0, err
	}
	var due []reminder
	for _, r := range rows {
		due = appendWaiting(due, r)
	}
	return due, len(rows), nil
}

func appendWaiting(due []reminder, r dbsqlc.ApprovalsEscalatingRow) []reminder {
	if !r.Waits {
		return due
	}
	return append(due, reminder{
		tenant: envelope.TenantID(r.TenantID), action: envelope.ActionID(r.ActionID),
		needed: int(r.Needed), given: int(r.Given), expiresAt: r.ExpiresAt,
	})
}
