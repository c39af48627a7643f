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
		rows, err := tx.Query(ctx, leases, uuid.UUID(s.tenant))
		if err != nil {
			return err //nolint:wrapcheck // in does
		}
		var h hold
		if _, err := pgx.ForEachRow(rows, []any{&h.Action, &h.Fence}, func() error {
			now.held[h] = true
			return nil
		}); err != nil {
			return err //nolint:wrapcheck // in does
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
		rows, err = tx.Query(ctx, ends, uuid.UUID(s.tenant))
		if err != nil {
			return err //nolint:wrapcheck // in does
		}
		var status string
		var count int
		_, err = pgx.ForEachRow(rows, []any{&status, &count}, func() error {
			now.ended[status] = count
			return nil
		})
		return err //nolint:wrapcheck // in does
	})
	return now, err
}

// envelopes reads every envelope of the tenant, with what the ledger and the
// dead letters say of it.
func (s store) envelopes(ctx context.Context) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var all []found
	err := s.in(ctx, func(tx pgx.Tx) error {
		const query = `
SELECT
    v.external_id, v.action_id, v.status, coalesce(v.code, ''),
    coalesce(l.ends, 0), coalesce(l.repeats, 0), coalesce(d.reason, '')
FROM envelopes v
LEFT JOIN (
    SELECT e.action_id,
        count(1) FILTER (WHERE e.status <> 'pending') AS ends,
        count(1) - count(DISTINCT e.attempt) AS repeats
    FROM tool_executions e
    WHERE e.tenant_id = $1
    GROUP BY e.action_id
) l ON l.action_id = v.action_id
LEFT JOIN dead_letters d ON d.tenant_id = v.tenant_id AND d.action_id = v.action_id
WHERE v.tenant_id = $1`
		rows, err := tx.Query(ctx, query, uuid.UUID(s.tenant))
		if err != nil {
			return err //nolint:wrapcheck // in does
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[found])
		return err //nolint:wrapcheck // in does
	})
	return all, err
}

func (s store) in(ctx context.Context, fn func(pgx.Tx) error) error {
	return postgres.InTx(ctx, s.pool, postgres.Worker(), fn) //nolint:wrapcheck // it says which
}
