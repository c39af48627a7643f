package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// releaseTimeout bounds letting go of the database.
const releaseTimeout = 5 * time.Second

// holdStatements has every statement wait that claims or settles: a lock on
// the outbox lets only readers pass.
func (s store) holdStatements(ctx context.Context) (held, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return held{}, fmt.Errorf("begin: %w", err)
	}
	if _, err := tx.Exec(ctx, "LOCK TABLE outbox IN EXCLUSIVE MODE"); err != nil {
		return held{}, fmt.Errorf("lock outbox: %w", err)
	}
	release := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		return tx.Rollback(ctx)
	}
	return held{
		look: func(ctx context.Context) (map[lockPoint]int, error) {
			return s.waiting(ctx, claimRuns, settleRuns, statementsSQL)
		},
		release: release,
		// The connection goes down with the database; its rollback then only
		// gives it back to the pool.
		leave: func(context.Context) (func(context.Context) error, error) { return release, nil },
	}, nil
}

// holdCommits has every commit wait for a standby that is not there: what it
// commits is written and stays, but nobody is told.
func (s store) holdCommits(ctx context.Context) (held, error) {
	const set, reset = "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "ALTER SYSTEM RESET synchronous_standby_names"
	if err := s.alter(ctx, set, true); err != nil {
		return held{}, err
	}
	return held{
		look: func(ctx context.Context) (map[lockPoint]int, error) {
			return s.waiting(ctx, claimCommits, settleCommits, commitsSQL)
		},
		release: func(ctx context.Context) error { return s.alter(ctx, reset, true) },
		// The running server is not told.
		leave: func(ctx context.Context) (func(context.Context) error, error) {
			return func(context.Context) error { return nil }, s.alter(ctx, reset, false)
		},
	}, nil
}

// alter changes the server's configuration, and tells it so if asked to.
func (s store) alter(ctx context.Context, statement string, reload bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if _, err := s.pool.Exec(ctx, statement); err != nil {
		return fmt.Errorf("alter system: %w", err)
	}
	if !reload {
		return nil
	}
	if _, err := s.pool.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return fmt.Errorf("reload configuration: %w", err)
	}
	return nil
}

// Both count the sessions that claim and those that settle. A statement is
// known by its text; a commit by the tables that its transaction has touched:
// to settle is to write the ledger, to claim is to read the actions.
const (
	statementsSQL = `
SELECT
    count(1) FILTER (WHERE a.query LIKE '%OutboxClaim%'),
    count(1) FILTER (WHERE a.query LIKE '%WITH ended AS%' OR a.query LIKE '%OutboxSettleBack%')
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.state = 'active' AND a.wait_event_type = 'Lock'`

	commitsSQL = `
SELECT
    count(1) FILTER (WHERE t.claims AND NOT t.settles),
    count(1) FILTER (WHERE t.settles)
FROM pg_stat_activity a
CROSS JOIN LATERAL (
    SELECT
        coalesce(bool_or(c.relname = 'actions' AND l.mode = 'AccessShareLock'), false) AS claims,
        coalesce(bool_or(c.relname LIKE 'tool\_executions%' AND l.mode = 'RowExclusiveLock'), false) AS settles
    FROM pg_locks l
    JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = a.pid
) t
WHERE a.datname = current_database() AND a.wait_event = 'SyncRep' AND a.application_name <> $1`
)

func (s store) waiting(ctx context.Context, claim, settle lockPoint, query string) (map[lockPoint]int, error) {
	var args []any
	if query == commitsSQL {
		args = append(args, ourName)
	}
	var claims, settles int
	err := s.pool.QueryRow(ctx, query, args...).Scan(&claims, &settles)
	if err != nil {
		return nil, fmt.Errorf("look into pg_stat_activity: %w", err)
	}
	return map[lockPoint]int{claim: claims, settle: settles}, nil
}

// leftOpen counts the transactions that have claimed or settled something, and
// so hold its rows, and whose client has said nothing for at least so long.
func (s store) leftOpen(ctx context.Context, idle time.Duration) (int, error) {
	const query = `
SELECT count(1)
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.state = 'idle in transaction' AND a.application_name <> $1
    AND a.backend_xid IS NOT NULL
    AND a.state_change <= clock_timestamp() - make_interval(secs => $2)
    AND EXISTS (
        SELECT FROM pg_locks l
        JOIN pg_class c ON c.oid = l.relation
        WHERE l.pid = a.pid AND c.relname = 'outbox' AND l.mode = 'RowExclusiveLock'
    )`
	var n int
	if err := s.pool.QueryRow(ctx, query, ourName, idle.Seconds()).Scan(&n); err != nil {
		return 0, fmt.Errorf("look into pg_stat_activity: %w", err)
	}
	return n, nil
}

// sessions returns the processes that serve other clients than us.
func (s store) sessions(ctx context.Context) (map[int32]bool, error) {
	const query = `
SELECT a.pid
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.application_name NOT IN ('', $1)`
	rows, err := s.pool.Query(ctx, query, ourName)
	if err != nil {
		return nil, fmt.Errorf("look into pg_stat_activity: %w", err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil, fmt.Errorf("look into pg_stat_activity: %w", err)
	}
	all := make(map[int32]bool, len(pids))
	for _, pid := range pids {
		all[pid] = true
	}
	return all, nil
}
