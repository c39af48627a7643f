package approval

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// actorSystem is who does what time does.
const actorSystem = "system"

// Vote is what one person said about an envelope.
type Vote struct {
	// Round goes up when what is voted on changes; only votes of the last one
	// count.
	Round    int
	Name     string
	Decision envelope.Decision
	Note     string
	At       time.Time
}

// reminder is an envelope whose time to be decided about goes by.
type reminder struct {
	tenant        envelope.TenantID
	action        envelope.ActionID
	needed, given int
	expiresAt     time.Time
	waits         bool
}

// Expire ends the wait of envelopes that nobody decided in time, at most so
// many, across tenants. It returns how many.
func Expire(ctx context.Context, db postgres.Begins, most int) (int, error) {
	n := 0
	err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
		overdue, err := expire(ctx, tx, most)
		if err != nil {
			return err
		}
		n = 0
		events := make([]audit.Event, 0, len(overdue))
		for tenant, actions := range overdue {
			n += len(actions)
			e := audit.Event{Tenant: tenant, Kind: audit.Decided, Actor: actorSystem}
			for _, a := range actions {
				e.Items = append(e.Items, audit.Item{Action: a, Status: envelope.StatusSkipped, Approval: envelope.ApprovalExpired})
			}
			events = append(events, e)
		}
		return audit.Write(ctx, tx, events...)
	})
	return n, err
}

// Remind records reminders of actions that expire undecided soon, and
// escalations of actions that have waited so long that more people should know,
// at most so many of either, across tenants, each once. It returns how many were
// due.
func Remind(ctx context.Context, db postgres.Begins, most int) (int, error) {
	n := 0
	err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
		expiring, looked, err := dueWarnings(ctx, tx, most)
		if err != nil {
			return err
		}
		escalating, more, err := dueEscalations(ctx, tx, most)
		if err != nil {
			return err
		}
		n = max(looked, more)
		return audit.Write(ctx, tx, append(reminders(audit.Expiring, expiring), reminders(audit.Escalated, escalating)...)...)
	})
	return n, err
}

func reminders(kind audit.Kind, due []reminder) []audit.Event {
	byTenant := make(map[envelope.TenantID]*audit.Event)
	for _, r := range due {
		e := byTenant[r.tenant]
		if e == nil {
			e = &audit.Event{Tenant: r.tenant, Kind: kind, Actor: actorSystem}
			byTenant[r.tenant] = e
		}
		e.Items = append(e.Items, audit.Item{
			Action: r.action, Status: envelope.StatusPending, Approval: envelope.ApprovalRequired,
			Detail: map[string]any{"expires_at": r.expiresAt.UTC(), "given": r.given, "needed": r.needed},
		})
	}
	events := make([]audit.Event, 0, len(byTenant))
	for _, e := range byTenant {
		events = append(events, *e)
	}
	return events
}
