package approval

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
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

// dueWarnings takes the warnings that are due: those of actions that still wait,
// and their number in all.
func dueWarnings(ctx context.Context, tx pgx.Tx, most int) ([]reminder, int, error) {
	rows, err := dbsqlc.New().ApprovalsExpiring(ctx, tx, int64(most))
	all, err := postgres.Map(rows, err, func(r dbsqlc.ApprovalsExpiringRow) reminder { return reminderFromRow(dbsqlc.ApprovalsEscalatingRow(r)) })
	return stillWaiting(all), len(all), err
}

// dueEscalations takes the escalations that are due, like dueWarnings.
func dueEscalations(ctx context.Context, tx pgx.Tx, most int) ([]reminder, int, error) {
	rows, err := dbsqlc.New().ApprovalsEscalating(ctx, tx, int64(most))
	all, err := postgres.Map(rows, err, reminderFromRow)
	return stillWaiting(all), len(all), err
}

func reminderFromRow(r dbsqlc.ApprovalsEscalatingRow) reminder {
	return reminder{
		tenant: envelope.TenantID(r.TenantID), action: envelope.ActionID(r.ActionID),
		needed: int(r.Needed), given: int(r.Given), expiresAt: r.ExpiresAt, waits: r.Waits,
	}
}

func stillWaiting(all []reminder) []reminder {
	return slices.DeleteFunc(slices.Clone(all), func(r reminder) bool { return !r.waits })
}
