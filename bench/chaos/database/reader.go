package database

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
)

// readTimeout bounds one read.
const readTimeout = 30 * time.Second

// Reader reads the workers' rows of one tenant.
type Reader struct {
	Server *Server
	Tenant envelope.TenantID
}

// Lease is a worker's right to an action.
type Lease struct {
	Action uuid.UUID
	Fence  int64
}

// State is the state of all actions at one moment.
type State struct {
	// Leases are the current leases, expired or not.
	Leases map[Lease]bool
	// Begun are the actions that have been claimed and have not ended.
	Begun map[uuid.UUID]bool
	// Fresh counts the actions that no worker has ever claimed, Open all that
	// have not ended.
	Fresh, Open int
	// Ended counts the actions by their status at the end.
	Ended map[string]int
}

// State reads the state of all actions.
func (r Reader) State(ctx context.Context) (State, error) {
	now := State{Leases: make(map[Lease]bool), Begun: make(map[uuid.UUID]bool), Ended: make(map[string]int)}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := postgres.InTx(ctx, r.Server.Pool, postgres.Worker(), func(tx pgx.Tx) error {
		// Proposals made in SQL and not yet taken are open too.
		const open = `
SELECT o.fresh + p.waiting, o.all + p.waiting
FROM (SELECT count(1) FILTER (WHERE o.fence = 0) AS fresh, count(1) AS all FROM outbox o WHERE o.tenant_id = $1) o,
    (SELECT count(1) AS waiting FROM proposals p WHERE p.tenant_id = $1 AND p.answered_at IS NULL) p`
		if err := tx.QueryRow(ctx, open, uuid.UUID(r.Tenant)).Scan(&now.Fresh, &now.Open); err != nil {
			return err
		}
		const begun = `
SELECT o.action_id, o.fence, o.lease_until IS NOT NULL
FROM outbox o
WHERE o.tenant_id = $1 AND o.fence > 0`
		var l Lease
		var leased bool
		rows, _ := tx.Query(ctx, begun, uuid.UUID(r.Tenant)) // ForEachRow returns the error
		_, err := pgx.ForEachRow(rows, []any{&l.Action, &l.Fence, &leased}, func() error {
			now.Begun[l.Action] = true
			if leased {
				now.Leases[l] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
		const ends = `
SELECT e.status, count(1)
FROM tool_executions e
WHERE e.tenant_id = $1 AND e.status <> 'pending'
GROUP BY e.status`
		var status string
		var count int
		rows, _ = tx.Query(ctx, ends, uuid.UUID(r.Tenant))
		_, err = pgx.ForEachRow(rows, []any{&status, &count}, func() error {
			now.Ended[status] = count
			return nil
		})
		return err
	})
	return now, err
}

// Stored counts the actions, and the proposals made in SQL that were not taken yet.
func (r Reader) Stored(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = postgres.InTx(ctx, r.Server.Pool, postgres.Worker(), func(tx pgx.Tx) error {
		const query = `
SELECT (SELECT count(1) FROM actions a WHERE a.tenant_id = $1)
    + (SELECT count(1) FROM proposals p WHERE p.tenant_id = $1 AND p.answered_at IS NULL)`
		return tx.QueryRow(ctx, query, uuid.UUID(r.Tenant)).Scan(&n)
	})
	return n, err
}

// Refused counts the refused proposals made in SQL.
func (r Reader) Refused(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = postgres.InTx(ctx, r.Server.Pool, postgres.Worker(), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT count(1) FROM proposals p WHERE p.tenant_id = $1 AND p.problem IS NOT NULL", uuid.UUID(r.Tenant)).Scan(&n)
	})
	return n, err
}

// Attempts counts calls that failed, or took long.
type Attempts struct{ Lost, TimedOut, Long int }

// Attempts reads the counts; a call takes long from a duration on.
func (r Reader) Attempts(ctx context.Context, long time.Duration) (Attempts, error) {
	var a Attempts
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := postgres.InTx(ctx, r.Server.Pool, postgres.Worker(), func(tx pgx.Tx) error {
		const query = `
SELECT
    count(1) FILTER (WHERE e.code = $2),
    count(1) FILTER (WHERE e.code = $3),
    count(1) FILTER (WHERE e.finished_at - e.started_at >= make_interval(secs => $4))
FROM tool_executions e
WHERE e.tenant_id = $1`
		return tx.QueryRow(ctx, query, uuid.UUID(r.Tenant), source.CodeLost, source.CodeTimeout, long.Seconds()).
			Scan(&a.Lost, &a.TimedOut, &a.Long)
	})
	return a, err
}

// Action is an action as Countersign stores it.
type Action struct {
	ExternalID string
	ID         uuid.UUID
	Status     string
	Code       string
	// Ends counts the attempts that ended the action, Repeats the attempts
	// that are recorded twice.
	Ends, Repeats int
	// DeadLetter is the reason of its dead letter; empty if it has none.
	DeadLetter string
}

// UnevenClaims returns the claims of buckets with a ceiling whose sum is not their number
// of rows in the outbox, each with both numbers.
func (r Reader) UnevenClaims(ctx context.Context) (all []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = postgres.InTx(ctx, r.Server.Pool, postgres.Worker(), func(tx pgx.Tx) error {
		const query = `
SELECT format('claim %s: %s in bucket_claims, %s in outbox', claim_id, coalesce(c.n, 0), coalesce(o.n, 0))
FROM (SELECT bucket_id, claim_id, sum(n) AS n FROM bucket_claims WHERE tenant_id = $1 GROUP BY bucket_id, claim_id) c
FULL JOIN (SELECT bucket_id, claim_id, count(1) AS n FROM outbox WHERE tenant_id = $1 AND claim_id IS NOT NULL GROUP BY bucket_id, claim_id) o USING (bucket_id, claim_id)
WHERE coalesce(c.n, 0) <> coalesce(o.n, 0)`
		rows, _ := tx.Query(ctx, query, uuid.UUID(r.Tenant)) // CollectRows returns the error
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return all, err
}

// Actions reads every action of the tenant, with its attempts and its dead
// letter.
func (r Reader) Actions(ctx context.Context) (all []Action, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = postgres.InTx(ctx, r.Server.Pool, postgres.Worker(), func(tx pgx.Tx) (err error) {
		// The planner has no statistics of tables that have just been filled.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_nestloop = off"); err != nil {
			return err
		}
		const query = `
SELECT v.external_id, v.action_id, v.status, coalesce(v.code, ''), coalesce(e.ends, 0), coalesce(e.repeats, 0), coalesce(d.reason, '')
FROM envelopes v
LEFT JOIN (
    SELECT e.action_id, count(1) FILTER (WHERE e.status <> 'pending') AS ends, count(1) - count(DISTINCT e.attempt) AS repeats
    FROM tool_executions e
    WHERE e.tenant_id = $1
    GROUP BY e.action_id
) e ON e.action_id = v.action_id
LEFT JOIN dead_letters d ON d.tenant_id = $1 AND d.action_id = v.action_id
WHERE v.tenant_id = $1`
		rows, _ := tx.Query(ctx, query, uuid.UUID(r.Tenant)) // CollectRows returns the error
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Action])
		return err
	})
	return all, err
}
