package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/bench/process"
)

const (
	// releaseTimeout bounds Release.
	releaseTimeout = 5 * time.Second
	// HoldTry is the time that one hold waits for a session to reach a point, and
	// holdPoll the poll interval.
	HoldTry  = 300 * time.Millisecond
	holdPoll = 5 * time.Millisecond
)

// Point is a step of a worker's session during which the database is held up.
// At the first two its statement is running and is undone by a crash; at the
// others its commit is written, but the worker has no reply.
type Point string

// The points.
const (
	ClaimRuns     Point = "claims rolled back"
	SettleRuns    Point = "settlements rolled back"
	ClaimCommits  Point = "claims committed but not confirmed"
	SettleCommits Point = "settlements committed but not confirmed"
)

// Hold is a database that is held up: either no statement can claim or settle,
// because of a lock on the outbox that admits only readers, or no commit is
// confirmed, because each waits for a standby that does not exist.
type Hold struct {
	server *Server
	lock   pgx.Tx // nil if commits are held
}

// Hold holds the database up until sessions reach a point.
func (s *Server) Hold(ctx context.Context, at Point) (*Hold, error) {
	if at == ClaimCommits || at == SettleCommits {
		return &Hold{server: s}, s.alterSystem(ctx, "SET synchronous_standby_names = 'nobody'", true)
	}
	tx, err := s.Pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	if _, err := tx.Exec(ctx, "LOCK TABLE outbox IN EXCLUSIVE MODE"); err != nil {
		return nil, errors.Join(fmt.Errorf("lock outbox: %w", err), tx.Rollback(context.WithoutCancel(ctx)))
	}
	return &Hold{s, tx}, nil
}

// Release lets everything continue. After a crash, it returns the connection
// to the pool.
func (h *Hold) Release(ctx context.Context) error {
	if h.lock == nil {
		return h.server.alterSystem(ctx, "RESET synchronous_standby_names", true)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return h.lock.Rollback(ctx)
}

// Leave makes the database start without the hold after a crash. The running
// server stays held up.
func (h *Hold) Leave(ctx context.Context) error {
	if h.lock == nil {
		return h.server.alterSystem(ctx, "RESET synchronous_standby_names", false)
	}
	return nil
}

// alterSystem changes the server's configuration, for the running server too
// if reload is set.
func (s *Server) alterSystem(ctx context.Context, change string, reload bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if _, err := s.Pool.Exec(ctx, "ALTER SYSTEM "+change); err != nil {
		return fmt.Errorf("alter system: %w", err)
	}
	if !reload {
		return nil
	}
	if _, err := s.Pool.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return fmt.Errorf("reload configuration: %w", err)
	}
	return nil
}

// Both count the sessions that claim and those that settle. A statement is
// recognised by its text; a commit by the tables that its transaction has
// touched: settling writes tool_executions, claiming reads actions.
const (
	statementsSQL = `
SELECT
    count(1) FILTER (WHERE a.query LIKE '%OutboxClaim%'),
    count(1) FILTER (WHERE a.query LIKE '%WITH ended AS%' OR a.query LIKE '%OutboxSettleBack%')
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.state = 'active' AND a.wait_event_type = 'Lock' AND a.application_name <> $1`

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

// Await waits at most HoldTry until a session has reached a point, and returns
// the number of sessions at each.
func (h *Hold) Await(ctx context.Context, at Point) (caught map[Point]int, err error) {
	end := time.Now().Add(HoldTry)
	query, claim, settle := statementsSQL, ClaimRuns, SettleRuns
	if h.lock == nil {
		query, claim, settle = commitsSQL, ClaimCommits, SettleCommits
	}
	err = process.Poll(ctx, holdPoll, func() (bool, error) {
		var claims, settles int
		if err := h.server.Pool.QueryRow(ctx, query, sessionName).Scan(&claims, &settles); err != nil {
			return false, fmt.Errorf("read pg_stat_activity: %w", err)
		}
		caught = map[Point]int{claim: claims, settle: settles}
		return caught[at] > 0 || time.Now().After(end), nil
	})
	return caught, err
}

// LeftOpen counts the transactions that have claimed or settled something, and
// so hold locks on its rows, and whose client has sent nothing for at least
// idle.
func (s *Server) LeftOpen(ctx context.Context, idle time.Duration) (int, error) {
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
	if err := s.Pool.QueryRow(ctx, query, sessionName, idle.Seconds()).Scan(&n); err != nil {
		return 0, fmt.Errorf("read pg_stat_activity: %w", err)
	}
	return n, nil
}

// Sessions returns the server processes of other clients than this program.
func (s *Server) Sessions(ctx context.Context) ([]int32, error) {
	const query = `
SELECT a.pid
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.application_name NOT IN ('', $1)`
	rows, _ := s.Pool.Query(ctx, query, sessionName) // CollectRows returns the error
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil, fmt.Errorf("read pg_stat_activity: %w", err)
	}
	return pids, nil
}
