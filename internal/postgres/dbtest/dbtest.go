// Package dbtest gives tests a real database with Countersign's schema.
//
// It uses the server that TEST_DATABASE_URL names, by a superuser's URL, and
// else starts a private one per test process, which ends with the process.
// The schema is migrated once into a template; what a test gets is either a
// transaction that is rolled back (Tx, well under a millisecond) or a copy of
// the template of its own (DB and URL, tenths of a second).
//
// It does not skip tests: without a server the test fails and says what to do.
package dbtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// URLEnv is the environment variable that names the server to use.
	URLEnv = "TEST_DATABASE_URL"

	// cleanupTimeout bounds each step of cleaning up after a test.
	cleanupTimeout = time.Minute
	// closeTimeout bounds the wait for connections that a test still uses
	// when it ends.
	closeTimeout = 10 * time.Second
)

// Tx returns a transaction that is rolled back when the test ends: the
// default. All tests share its database, and none sees another's rows, but two
// that write the same unique key wait for each other.
//
// It acts as the superuser. It replaces a pool that only begins transactions,
// such as in postgres.InTx, which then sets the scope's role and tenant; see
// Session. It serves one goroutine at a time. Where
// commits, NOTIFY, several connections or the time between statements matter
// (now() stands still), use DB.
func Tx(t testing.TB) *Session {
	t.Helper()
	c := use(t)
	pool, err := c.sharedPool()
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatalf("dbtest: begin: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if err := tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("dbtest: roll back: %v", err)
		}
	})
	return &Session{Tx: tx, t: t}
}

// DB returns a pool on a database of the test's own, which is dropped when the
// test ends. The pool's user is the superuser; Config().ConnString() has the
// URL, for those who need further connections.
func DB(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: URL(t), Name: t.Name()})
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool closes the pool, and fails the test if that has to wait for a
// connection which the test never gave back.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	closed := make(chan struct{})
	go func() { // waited for below, unless the test has leaked a connection
		pool.Close()
		close(closed)
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
		t.Errorf("dbtest: %d connections are still in use %s after the test", pool.Stat().AcquiredConns(), closeTimeout)
	}
}

// URL creates a database of the test's own, which is dropped when the test
// ends whoever is connected to it, and returns the superuser's URL of it. Each
// call creates another one.
func URL(t testing.TB) string {
	t.Helper()
	c := use(t)
	return ownURL(t, c, c.template)
}

// EmptyURL is URL for a database without any schema: for tests of migrations.
// The roles belong to the server, so they may exist already.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return ownURL(t, use(t), "template0")
}

func ownURL(t testing.TB, c *cluster, template string) string {
	t.Helper()
	name, err := c.create(t.Context(), template)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if err := c.drop(ctx, name); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return c.url(name)
}

// cleanupContext returns a context for cleaning up, when that of the test is
// over already.
func cleanupContext(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
}
