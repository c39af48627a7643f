package outbox

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// Sweep is the work that an operator's change leaves: cancelling the envelopes of
// a kill, or waking envelopes that wait for a reason which may no longer hold,
// because a pause was lifted or quiet hours changed. It keeps no state in memory:
// the next sweep continues an interrupted one.
type Sweep struct {
	first, last envelope.TenantID
	// pause is the pause of the sweep; the zero UUID for none.
	pause    uuid.UUID
	scope    string
	subject  string
	message  string
	actor    string
	kill     bool
	killedAt time.Time
	// settled reports whether no transaction is left that was open when the kill was
	// given; long that the reason has been over for longer than any worker holds
	// its earlier claims.
	settled, long bool
	// waitsFor is the reason that may be over, askedAt the time of the change.
	waitsFor string
	askedAt  time.Time
}

// Sweeps returns up to most of either kind with work left, the oldest first.
func Sweeps(ctx context.Context, tx pgx.Tx, most int) ([]Sweep, error) {
	rows, err := dbsqlc.New().PauseUnfinished(ctx, tx, int64(most))
	if err != nil {
		return nil, err
	}
	sweeps := make([]Sweep, len(rows))
	for i, r := range rows {
		s := Sweep{
			last: envelope.TenantID(uuid.Max), pause: r.PauseID, scope: r.Scope, subject: r.Subject, actor: r.PausedBy,
			message: "the kill switch: " + r.Reason, kill: r.Killing, killedAt: r.KilledAt, settled: r.Settled,
			waitsFor: preflight.CodePaused, long: r.LongLifted,
		}
		if r.TenantID != nil {
			s.first, s.last = *r.TenantID, *r.TenantID
		}
		sweeps[i] = s
	}
	wakes, err := dbsqlc.New().WakeList(ctx, tx, int64(most))
	if err != nil {
		return nil, err
	}
	for _, r := range wakes {
		sweeps = append(sweeps, Sweep{first: r.TenantID, last: r.TenantID, waitsFor: r.WaitsFor, askedAt: r.AskedAt, long: r.LongAsked})
	}
	return sweeps, nil
}

// SweepCursor is the position of a sweep in the outbox.
type SweepCursor struct {
	tenant envelope.TenantID
	action envelope.ActionID
}

// Step does the next bounded part of a sweep in its own transaction, and returns the
// position to continue at; ended reports whether this round of the sweep is over.
// The next round finds rows that were left because a worker held them.
func (s *Sweep) Step(ctx context.Context, tx pgx.Tx, from SweepCursor, most int) (next SweepCursor, ended bool, err error) {
	if s.kill {
		return s.cancel(ctx, tx, from, most)
	}
	return s.wake(ctx, tx, from, most)
}

func (s *Sweep) cancel(ctx context.Context, tx pgx.Tx, from SweepCursor, most int) (SweepCursor, bool, error) {
	q := dbsqlc.New()
	refused, err := q.ActionsCancel(ctx, tx, &dbsqlc.ActionsCancelParams{
		FirstTenant: s.first, LastTenant: s.last, KilledAt: s.killedAt, Scope: s.scope, Subject: s.subject,
		Most: int64(most), Message: s.message, DecidedBy: s.actor,
	})
	if err != nil {
		return from, false, err
	}
	deleted, err := q.OutboxCancel(ctx, tx, &dbsqlc.OutboxCancelParams{
		FirstTenant: s.first, LastTenant: s.last, AfterTenant: uuid.UUID(from.tenant), AfterAction: uuid.UUID(from.action),
		KilledAt: s.killedAt, Scope: s.scope, Subject: s.subject, Most: int64(most), Message: s.message,
	})
	if err != nil {
		return from, false, err
	}
	items := make(map[envelope.TenantID][]audit.Item)
	for _, r := range refused {
		items[r.TenantID] = append(items[r.TenantID], audit.Item{
			Action: r.ActionID, Status: envelope.StatusSkipped, Approval: envelope.ApprovalDenied, Code: preflight.CodeKilled,
		})
	}
	for _, r := range deleted {
		items[r.TenantID] = append(items[r.TenantID], audit.Item{
			Action: r.ActionID, Status: envelope.Status(r.Status), Attempt: int(r.Attempt), Code: preflight.CodeKilled,
		})
	}
	if err := audit.Write(ctx, tx, audit.EventsOf(audit.Killed, envelope.Actor(s.actor), items)...); err != nil {
		return from, false, err
	}
	if n := len(refused) + len(deleted); n > 0 {
		if err := q.PauseCount(ctx, tx, &dbsqlc.PauseCountParams{PauseID: s.pause, More: int32(n)}); err != nil {
			return from, false, err
		}
	}
	if len(refused) == most || len(deleted) == most {
		if len(deleted) > 0 {
			last := deleted[len(deleted)-1]
			from = SweepCursor{last.TenantID, last.ActionID}
		}
		return from, false, nil
	}
	left, err := q.OutboxCancelLeft(ctx, tx, &dbsqlc.OutboxCancelLeftParams{
		FirstTenant: s.first, LastTenant: s.last, KilledAt: s.killedAt, Scope: s.scope, Subject: s.subject,
	})
	if err != nil || left || !s.settled {
		return from, true, err
	}
	return from, true, q.PauseSwept(ctx, tx, &dbsqlc.PauseSweptParams{PauseID: s.pause, KilledAt: &s.killedAt})
}

func (s *Sweep) wake(ctx context.Context, tx pgx.Tx, from SweepCursor, most int) (SweepCursor, bool, error) {
	q := dbsqlc.New()
	rows, err := q.OutboxWake(ctx, tx, &dbsqlc.OutboxWakeParams{
		FirstTenant: s.first, LastTenant: s.last, AfterTenant: uuid.UUID(from.tenant), AfterAction: uuid.UUID(from.action),
		Scope: s.scope, Subject: s.subject, WaitsFor: s.waitsFor, Most: int64(most),
	})
	if err != nil {
		return from, false, err
	}
	if len(rows) == most {
		last := slices.MaxFunc(rows, func(a, b dbsqlc.OutboxWakeRow) int {
			return cmp.Or(bytes.Compare(a.TenantID[:], b.TenantID[:]), bytes.Compare(a.ActionID[:], b.ActionID[:]))
		})
		return SweepCursor{last.TenantID, last.ActionID}, false, nil
	}
	if !s.long {
		left, err := q.OutboxWakeLeft(ctx, tx, &dbsqlc.OutboxWakeLeftParams{
			FirstTenant: s.first, LastTenant: s.last, Scope: s.scope, Subject: s.subject,
		})
		if err != nil || left {
			return from, true, err
		}
	}
	if s.pause != uuid.Nil {
		return from, true, q.PauseWoken(ctx, tx, s.pause)
	}
	return from, true, q.WakeDone(ctx, tx, &dbsqlc.WakeDoneParams{TenantID: s.first, WaitsFor: s.waitsFor, AskedAt: s.askedAt})
}

// Automations returns the names by which a pause covers claimed actions that triage
// proposed.
func Automations(ctx context.Context, tx pgx.Tx, items []Item) (map[envelope.ActionID][]string, error) {
	p := &dbsqlc.OutboxAutomationsParams{}
	for i := range items {
		p.TenantIds, p.ActionIds = append(p.TenantIds, uuid.UUID(items[i].Tenant)), append(p.ActionIds, uuid.UUID(items[i].Action))
	}
	rows, err := dbsqlc.New().OutboxAutomations(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	of := make(map[envelope.ActionID][]string, len(rows))
	for _, r := range rows {
		of[r.ActionID] = []string{pause.Triage, r.Automation}
	}
	return of, nil
}
