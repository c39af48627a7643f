package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/fault"
)

// syncWait is the function of PostgreSQL that warns when a commit stops waiting for a
// standby, because the wait was cancelled: the text of the warning is translated.
const syncWait = "SyncRepWaitForLSN"

// noteUnreplicated counts a commit that a failover may lose.
func noteUnreplicated(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if n, ok := conn.CustomData()[noticesKey].(*notices); ok && notice.Routine == syncWait {
		n.unreplicated.Add(1)
	}
}

// commits returns a function that reports whether the next commit of the connection may
// be lost in a failover, though PostgreSQL committed it. It is called before the commit,
// after which the connection may be in use by another transaction.
func (n *notices) commits() (lost func() bool) {
	if n == nil {
		return func() bool { return false }
	}
	before := n.unreplicated.Load()
	return func() bool { return n.unreplicated.Load() != before }
}

// errUnreplicated is the error of such a commit: its outcome is as uncertain as if the
// connection had been lost.
func errUnreplicated() error {
	return fault.New(fault.Busy, "the commit did not wait for a standby, and a failover may lose it; check its result before you repeat it")
}

// AwaitStandbys has the commit of a transaction that wrote nothing wait for synchronous
// standbys too. It is for answers that something is stored already: the commit that stored
// it may have stopped waiting, and a failover would lose it. Without synchronous standbys it
// has no effect.
func AwaitStandbys(ctx context.Context, tx pgx.Tx) error {
	// Only a transaction with a record in the log waits: for that record, and all before it.
	_, err := tx.Exec(ctx, `
SELECT CASE WHEN current_setting('synchronous_standby_names') <> '' THEN pg_logical_emit_message(true, 'countersign', '') END`)
	return err
}
