package approval

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// actorSystem is the actor of changes that happen by time.
const actorSystem = "system"

// reminder is an envelope whose time to decide is running out.
type reminder struct {
	tenant        envelope.TenantID
	action        envelope.ActionID
	needed, given int
	expiresAt     time.Time
	waits         bool
}

// Expire expires up to most undecided envelopes, across tenants, and returns
// their number.
func Expire(ctx context.Context, db postgres.Begins, most int) (int, error) {
	return postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (int, error) {
		overdue, n, err := expire(ctx, tx, most)
		if err != nil {
			return 0, err
		}
		return n, audit.Write(ctx, tx, audit.EventsOf(audit.Decided, actorSystem, overdue)...)
	})
}

// Remind records reminders of actions that soon expire undecided, and
// escalations of actions that have waited too long; at most most of each, across
// tenants, each once. It returns the number that was due.
func Remind(ctx context.Context, db postgres.Begins, most int) (int, error) {
	return postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (int, error) {
		expiring, looked, err := dueWarnings(ctx, tx, most)
		if err != nil {
			return 0, err
		}
		escalating, more, err := dueEscalations(ctx, tx, most)
		if err != nil {
			return 0, err
		}
		return max(looked, more), audit.Write(ctx, tx, append(reminders(audit.Expiring, expiring), reminders(audit.Escalated, escalating)...)...)
	})
}

func reminders(kind audit.Kind, due []reminder) []audit.Event {
	items := make(map[envelope.TenantID][]audit.Item)
	for _, r := range due {
		items[r.tenant] = append(items[r.tenant], audit.Item{
			Action: r.action, Status: envelope.StatusPending, Approval: envelope.ApprovalRequired,
			Detail: map[string]any{"expires_at": r.expiresAt.UTC(), "given": r.given, "needed": r.needed},
		})
	}
	return audit.EventsOf(kind, actorSystem, items)
}
