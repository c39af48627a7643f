// Package postgres owns access to the database: the pool, transactions with a role
// and a tenant, migrations, and the mapping of PostgreSQL's errors to faults. It
// does not know what the tables mean; their stores own the texts of violations.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to reach the database.
type Config struct {
	// URL is a connection string; it may hold a password and is never logged.
	URL string
	// MaxConns bounds the pool; zero means 10.
	MaxConns int32
	// Pooled says that a pooler in transaction mode (PgBouncer) stands in
	// between: statements are then described, not prepared by name.
	Pooled bool
	// Name is shown as application_name in pg_stat_activity.
	Name string
}

// Open returns a pool. It does not wait for the database to answer.
func Open(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		// The parser's own text may quote the URL, and with it the password.
		return nil, errors.New("DATABASE_URL is not a PostgreSQL connection string (postgres://user:password@host:port/database)")
	}
	pc.MaxConns = cfg.MaxConns
	if pc.MaxConns == 0 {
		pc.MaxConns = 10
	}
	pc.ConnConfig.ConnectTimeout = 5 * time.Second
	if cfg.Pooled {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if cfg.Name != "" {
		pc.ConnConfig.RuntimeParams["application_name"] = cfg.Name
	}
	pc.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		registerUUID(conn.TypeMap())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return pool, nil
}

// Begins starts transactions: a pool, or in tests a transaction that starts
// savepoints.
type Begins interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// InTx runs fn in a transaction of the given scope and commits it if fn
// returns nil. A serialization failure or a deadlock runs it again, three
// times in all, so fn must have no effect outside tx. Inside fn use tx alone:
// taking a second connection there can starve the pool. The error is a fault
// where the outside can tell it apart.
func InTx(ctx context.Context, db Begins, as Scope, fn func(tx pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := inTx(ctx, db, as, fn)
		if err == nil || try == 3 || !rerunnable(err) || ctx.Err() != nil {
			return Fault(err)
		}
	}
}

func inTx(ctx context.Context, db Begins, as Scope, fn func(tx pgx.Tx) error) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{BeginQuery: as.begin()})
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			// Also after a panic in fn; the caller's context may be over.
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = tx.Rollback(clean) // the cause is already on its way up
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	done = true
	return tx.Commit(ctx)
}

func rerunnable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "40001" || pg.Code == "40P01")
}
