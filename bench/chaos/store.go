package main

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
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

// state is how things stand at one moment.
type state struct {
	// held are the leases that are out, run out or not.
	held map[hold]bool
	// begun are the envelopes that have been claimed and have not ended.
	begun map[uuid.UUID]bool
	// fresh counts the envelopes that nobody has ever claimed, left all that
	// have not ended.
	fresh, left int
	// ended counts the envelopes by how they ended.
	ended map[string]int
}

// readState reads how things stand.
func (s store) readState(ctx context.Context) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	now := state{held: make(map[hold]bool), begun: make(map[uuid.UUID]bool), ended: make(map[string]int)}
	err := s.in(ctx, func(tx pgx.Tx) error {
		const begun = `
SELECT o.action_id, o.fence, o.lease_until IS NOT NULL
FROM outbox o
WHERE o.tenant_id = $1 AND o.fence > 0`
		var h hold
		var leased bool
		err := s.each(ctx, tx, begun, []any{&h.Action, &h.Fence, &leased}, func() {
			now.begun[h.Action] = true
			if leased {
				now.held[h] = true
			}
		})
		if err != nil {
			return err
		}
		const left = `
SELECT count(1) FILTER (WHERE o.fence = 0), count(1)
FROM outbox o
WHERE o.tenant_id = $1`
		if err := tx.QueryRow(ctx, left, uuid.UUID(s.tenant)).Scan(&now.fresh, &now.left); err != nil {
			return err
		}
		const ends = `
SELECT e.status, count(1)
FROM tool_executions e
WHERE e.tenant_id = $1 AND e.status <> 'pending'
GROUP BY e.status`
		var status string
		var count int
		return s.each(ctx, tx, ends, []any{&status, &count}, func() { now.ended[status] = count })
	})
	return now, err
}

// attempts is what the ledger says of calls that went wrong, or took long.
type attempts struct{ lost, timedOut, long int }

func (s store) attempts(ctx context.Context, long time.Duration) (attempts, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var a attempts
	err := s.in(ctx, func(tx pgx.Tx) error {
		const query = `
SELECT
    count(1) FILTER (WHERE e.code = $2),
    count(1) FILTER (WHERE e.code = $3),
    count(1) FILTER (WHERE e.finished_at - e.started_at >= make_interval(secs => $4))
FROM tool_executions e
WHERE e.tenant_id = $1`
		return tx.QueryRow(ctx, query, uuid.UUID(s.tenant), source.CodeLost, source.CodeTimeout, long.Seconds()).
			Scan(&a.lost, &a.timedOut, &a.long)
	})
	return a, err
}

// envelopes reads every envelope of the tenant, with what the ledger and the
// dead letters say of it. They are put together here, since the planner knows
// nothing yet of tables that have just been filled.
func (s store) envelopes(ctx context.Context) ([]storedAction, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var all []storedAction
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
		var f storedAction
		err = s.each(ctx, tx, dead, []any{&f.Action, &f.DeadLetter}, func() { letters[f.Action] = f.DeadLetter })
		if err != nil {
			return err
		}
		const views = `
SELECT v.external_id, v.action_id, v.status, coalesce(v.code, '')
FROM envelopes v
WHERE v.tenant_id = $1`
		all = nil
		return s.each(ctx, tx, views, []any{&f.External, &f.Action, &f.Status, &f.Code}, func() {
			f.DeadLetter = letters[f.Action]
			f.Ends, f.Repeats = notes[f.Action].ends, notes[f.Action].repeats
			all = append(all, f)
		})
	})
	return all, err
}

// note is what the ledger has of one envelope.
type attemptCounts struct{ ends, repeats int }

func (s store) ledger(ctx context.Context, tx pgx.Tx) (map[uuid.UUID]attemptCounts, error) {
	const query = `
SELECT e.action_id, count(1) FILTER (WHERE e.status <> 'pending'), count(1) - count(DISTINCT e.attempt)
FROM tool_executions e
WHERE e.tenant_id = $1
GROUP BY e.action_id`
	notes := make(map[uuid.UUID]attemptCounts)
	var action uuid.UUID
	var n attemptCounts
	return notes, s.each(ctx, tx, query, []any{&action, &n.ends, &n.repeats}, func() { notes[action] = n })
}

// each reads the rows of a query on the tenant, one after the other.
func (s store) each(ctx context.Context, tx pgx.Tx, query string, into []any, fn func()) error {
	rows, err := tx.Query(ctx, query, uuid.UUID(s.tenant))
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		fn()
		return nil
	})
	return err
}

func (s store) in(ctx context.Context, fn func(pgx.Tx) error) error {
	return postgres.InTx(ctx, s.pool, postgres.Worker(), fn)
}
