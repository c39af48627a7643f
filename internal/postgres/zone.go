package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// KnowsZone reports whether the server accepts a time zone, by setting it: the
// server's list of zones reads a file for each of them, which takes a tenth of a
// second. It also accepts notations other than zone names. The transaction remains
// usable.
func KnowsZone(ctx context.Context, tx pgx.Tx, name string) (bool, error) {
	const invalidParameter = "22023"
	err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { // a savepoint, since an unknown zone is an error
		_, err := inner.Exec(ctx, "SELECT now() AT TIME ZONE $1::text", name)
		return err
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == invalidParameter {
		return false, nil
	}
	return err == nil, err
}
