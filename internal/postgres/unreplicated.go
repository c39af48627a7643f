package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/fault"
)

// unreplicatedKey is the key, in a connection's custom data, of whether its last commit
// stopped waiting for a synchronous standby.
const unreplicatedKey = "countersign unreplicated"

// syncWait is the function of PostgreSQL that warns when a commit stops waiting for a
// standby, because the wait was cancelled: the text of the warning is translated.
const syncWait = "SyncRepWaitForLSN"

// noteUnreplicated records a commit that a failover may lose.
func noteUnreplicated(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Routine == syncWait {
		conn.CustomData()[unreplicatedKey] = true
	}
}

// unreplicated reports whether the last commit of a connection may be lost in a failover,
// though PostgreSQL committed it.
func unreplicated(conn *pgx.Conn) bool {
	if conn == nil {
		return false
	}
	data := conn.PgConn().CustomData()
	_, noted := data[unreplicatedKey]
	delete(data, unreplicatedKey)
	return noted
}

// errUnreplicated is the error of such a commit: its outcome is as uncertain as if the
// connection had been lost.
func errUnreplicated() error {
	return fault.New(fault.Busy, "the commit did not wait for a standby, and a failover may lose it; look whether it is there before you repeat it")
}
