package postgres

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/fault"
)

// The poll intervals of AwaitSchema: short at first, since a migration takes
// seconds, and then longer and longer.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 5 * time.Second
)

// olderSchemaError is a fault.Busy of a database that answers and needs a
// migration, or the right to read its version.
type olderSchemaError struct{ error }

// Unwrap returns the fault.
func (e olderSchemaError) Unwrap() error { return e.error }

// CheckSchema returns nil if the database answers, its schema is at least that of this binary, and the search
// path has no schema of other logins. Otherwise the error is fault.Busy with the remedy. A newer schema is
// accepted, since migrations keep compatibility with older binaries.
func CheckSchema(ctx context.Context, db Begins) error {
	want, err := LatestSchema()
	if err != nil {
		return err
	}
	var got int64
	err = InTx(ctx, db, Admin(), func(tx pgx.Tx) error {
		const query = "SELECT coalesce(max(g.version_id), 0)::bigint FROM " + Schema + ".goose_db_version g WHERE g.is_applied"
		return tx.QueryRow(ctx, query).Scan(&got)
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "42P01": // no such table
			return olderSchemaError{fault.Wrap(err, fault.Busy, "the database is not migrated; run `countersign migrate`")}
		case "42501": // not allowed, which it also is until the first migration has ended
			return olderSchemaError{fault.Wrap(err, fault.Busy,
				"the database's user may not read the schema's version; run `countersign migrate`, and grant the user its role")}
		}
	}
	if err != nil {
		return fault.Wrap(err, fault.Busy, "the database does not answer")
	}
	if got < want {
		return olderSchemaError{fault.New(fault.Busy, "the database has schema %d and this program needs %d; run `countersign migrate`", got, want)}
	}
	return checkPath(ctx, db)
}

// AwaitSchema returns when CheckSchema succeeds. It waits for a migration until
// ctx ends, so that programs and the migration of their release can be started
// in any order. If the database does not answer at the start, it returns the
// error without waiting, because a wrong address or password does not go away.
func AwaitSchema(ctx context.Context, db Begins, log *slog.Logger) error {
	err := CheckSchema(ctx, db)
	if _, older := errors.AsType[olderSchemaError](err); !older {
		return err
	}
	shown := ""
	for look := firstLook; err != nil; look = min(2*look, lastLook) {
		if text := err.Error(); text != shown {
			log.WarnContext(ctx, "waiting for the database to be migrated", slog.Any("error", err))
			shown = text
		}
		timer := time.NewTimer(look)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		err = CheckSchema(ctx, db)
	}
	log.InfoContext(ctx, "the database is migrated")
	return nil
}
