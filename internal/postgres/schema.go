package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/fault"
)

// CheckSchema returns nil if the database answers and its schema is at least
// that of this binary. Else the error is fault.Busy with what to do; a newer
// schema is fine, since migrations keep what older binaries need.
func CheckSchema(ctx context.Context, db Begins) error {
	want, err := LatestSchema()
	if err != nil {
		return err
	}
	var got int64
	err = InTx(ctx, db, Admin(), func(tx pgx.Tx) error {
		const query = "SELECT coalesce(max(g.version_id), 0)::bigint FROM goose_db_version g WHERE g.is_applied"
		return tx.QueryRow(ctx, query).Scan(&got)
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42P01" { // no such table
		return fault.Wrap(err, fault.Busy, "the database is not migrated; run `countersign migrate`")
	}
	if err != nil {
		return fault.Wrap(err, fault.Busy, "the database does not answer")
	}
	if got < want {
		return fault.New(fault.Busy, "the database has schema %d and this program needs %d; run `countersign migrate`", got, want)
	}
	return nil
}
