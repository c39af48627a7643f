package main

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// readTimeout bounds one look at the database.
const readTimeout = 30 * time.Second

// store reads what the fleet has written about one tenant.
type store struct {
	pool   *pgxpool.Pool
	tenant envelope.TenantID
}

// hold is a claim's right to an envelope.
type hold struct {
	Action uuid.UUID
	Fence  int64
}

// standing is how things stand at one moment.
type standing struct {
	// held are the leases that are out, run out or not.
	held map[hold]bool
	// fresh counts the envelopes that nobody has ever claimed, waiting those
	// in the outbox that nobody holds.
	fresh, waiting int
	// ended counts the envelopes by how they ended.
	ended map[string]int
}

// look reads how things stand.
func (s store) look(ctx context.Context) (standing, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	now := standing{held: make(map[hold]bool), ended: make(map[string]int)}
	err := s.in(ctx, func(tx pgx.Tx) error {
		const leases = `
SELECT o.action_id, o.fence
FROM outbox o
WHERE o.tenant_id = $1 AND o.lease_until IS NOT NULL`
		var h hold
		if err := s.each(ctx, tx, leases, []any{&h.Action, &h.Fence}, func() { now.held[h] = true }); err != nil {
			return err
		}
		const free = `
SELECT count(1) FILTER (WHERE o.fence = 0), count(1)
FROM outbox o
WHERE o.tenant_id = $1 AND o.lease_until IS NULL`
		if err := tx.QueryRow(ctx, free, uuid.UUID(s.tenant)).Scan(&now.fresh, &now.waiting); err != nil {
			return err //nolint:wrapcheck // in does
		}
		const ends = `
SELECT e.status, count(1)
FROM tool_executions e
WHERE e.tenant_id = $1
GROUP BY e.status`
		var status string
		var count int
		return s.each(ctx, tx, ends, []any{&status, &count}, func() { now.ended[status] = count })
	})
	return now, err
}

// envelopes reads every envelope of the tenant, with what the ledger and the
// dead letters say of it. They are put together here, since the planner knows
// nothing yet of tables that have just been filled.
func (s store) envelopes(ctx context.Context) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var all []found
	err := s.in(ctx, func(tx pgx.Tx) error {
		notes, err := s.ledger(ctx, tx)
		if err != nil {
			return err
		}
		letters := make(map[uuid.UUID]string)
		const dead = `
SELECT d.action_id, d.reason
FROM dead_letters d
WHERE d.tenant_id = $1`
		var f found
		err = s.each(ctx, tx, dead, []any{&f.Action, &f.Letter}, func() { letters[f.Action] = f.Letter })
		if err != nil {
			return err
		}
		const views = `
SELECT v.external_id, v.action_id, v.status, coalesce(v.code, '')
FROM envelopes v
WHERE v.tenant_id = $1`
		all = nil
		return s.each(ctx, tx, views, []any{&f.External, &f.Action, &f.Status, &f.Code}, func() {
			f.Letter = letters[f.Action]
			f.Ends, f.Repeats = notes[f.Action].ends, notes[f.Action].repeats
			all = append(all, f)
		})
	})
	return all, err
}

// note is what the ledger has of one envelope.
type note struct{ ends, repeats int }

func (s store) ledger(ctx context.Context, tx pgx.Tx) (map[uuid.UUID]note, error) {
	const query = `
SELECT e.action_id, count(1) FILTER (WHERE e.status <> 'pending'), count(1) - count(DISTINCT e.attempt)
FROM tool_executions e
WHERE e.tenant_id = $1
GROUP BY e.action_id`
	notes := make(map[uuid.UUID]note)
	var action uuid.UUID
	var n note
	return notes, s.each(ctx, tx, query, []any{&action, &n.ends, &n.repeats}, func() { notes[action] = n })
}

// each reads the rows of a query on the tenant, one after the other.
func (s store) each(ctx context.Context, tx pgx.Tx, query string, into []any, fn func()) error {
	rows, err := tx.Query(ctx, query, uuid.UUID(s.tenant))
	if err != nil {
		return err //nolint:wrapcheck // in does
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		fn()
		return nil
	})
	return err //nolint:wrapcheck // in does
}

func (s store) in(ctx context.Context, fn func(pgx.Tx) error) error {
	return postgres.InTx(ctx, s.pool, postgres.Worker(), fn) //nolint:wrapcheck // it says which
}
