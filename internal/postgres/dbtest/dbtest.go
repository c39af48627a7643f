// Package dbtest provides tests with a real database with Countersign's schema.
// It uses the server at TEST_DATABASE_URL, a superuser's URL, or else starts a
// private one per test process, which ends with the process. The schema is
// migrated once into a template; a test gets a transaction that is rolled back
// (Tx, well under a millisecond), a copy of the template that earlier tests have
// used and that is as they found it (DB, milliseconds), or a new copy (URL,
// tenths of a second).
//
// It does not skip tests: without a server the test fails with the remedy.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// URLEnv is the environment variable that names the server to use.
	URLEnv = "TEST_DATABASE_URL"
	// TxURLEnv is the environment variable that names the server of Tx, if that is
	// another one. An event can be read once every older transaction of its server has
	// ended, and the transaction of a test lasts as long as the test.
	TxURLEnv = "TEST_TX_DATABASE_URL"

	// cleanupTimeout bounds each step of cleaning up after a test.
	cleanupTimeout = time.Minute
	// closeTimeout bounds the wait for connections that a test still uses
	// when it ends.
	closeTimeout = 10 * time.Second
)

// Tx returns a transaction that is rolled back when the test ends: the default.
// All tests share its database, and none sees another's rows, but two that write
// the same unique key wait for each other. It acts as the superuser.
//
// It replaces a pool that only begins transactions, such as in postgres.InTx,
// which then sets the scope's role and tenant; see Session. It serves one
// goroutine at a time.
//
// For tests of commits, NOTIFY, several connections or the time between
// statements (now() is constant), use DB.
func Tx(t testing.TB) *Session {
	t.Helper()
	c, err := openedTx()
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
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

// DB returns a pool on a database that no other test uses at the same time. A
// database is used again, with its connections, by a later test of the process:
// see reuse.go. The pool's user is the superuser; Config().ConnString() has the
// URL, for those who need further connections.
func DB(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return DBWith(t, "")
}

// DBWith is DB for a database in which statements have been executed before, such
// as those that create triggers. Tests with the same statements share databases.
func DBWith(t testing.TB, statements string) *pgxpool.Pool {
	t.Helper()
	d, err := use(t).take(t.Context(), statements)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if err := d.give(ctx); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return d.pool
}

// Connect returns a connection to a database with the search path of the product's
// sessions. It is closed when the test ends.
func Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), "SET search_path = "+postgres.SearchPath); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	return conn
}

// URL creates a database for the test and returns the superuser's URL of it.
// The database is dropped when the test ends, even if it has connections. Each
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
		if err := dropDatabase(ctx, c.admin, name); err != nil {
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

// Session is a transaction that ends with its test and in which savepoints replace transactions: BeginTx lets it
// replace a pool. It differs from a pool in that transactions cannot run concurrently, their isolation level and
// access mode are those of the session, and deferred constraints and notifications wait for a commit that never comes.
type Session struct {
	pgx.Tx

	t testing.TB
}

// Commit fails the test: later tests would see its rows. A test that commits needs
// a database of its own.
func (s *Session) Commit(context.Context) error {
	s.t.Helper()
	err := errors.New("the transaction of dbtest.Tx cannot be committed; use dbtest.DB")
	s.t.Error(err)
	return err
}

// BeginTx begins a savepoint. Settings that opts.BeginQuery makes with SET
// LOCAL, the role among them, hold until its Commit or Rollback, as they would
// in a transaction.
func (s *Session) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	sp, err := s.Tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin a savepoint: %w", err)
	}
	inner := &savepoint{Tx: sp, outer: s.Tx}
	if err := inner.set(ctx, opts.BeginQuery); err != nil {
		return nil, errors.Join(err, sp.Rollback(ctx))
	}
	return inner, nil
}

// savepoint is a transaction inside a Session.
type savepoint struct {
	pgx.Tx

	outer pgx.Tx
	// names and values are the settings to put back on Commit; Rollback puts
	// them back by itself.
	names, values []string
}

// set runs the rest of a transaction's first statement, after its "begin".
func (sp *savepoint) set(ctx context.Context, beginQuery string) error {
	_, settings, ok := strings.Cut(beginQuery, ";")
	if !ok {
		return nil
	}
	sp.names = settingNames(settings)
	const query = `
SELECT array_agg(coalesce(current_setting(name, true), '') ORDER BY place)
FROM unnest($1::text[]) WITH ORDINALITY AS s (name, place)`
	if err := sp.QueryRow(ctx, query, sp.names).Scan(&sp.values); err != nil {
		return fmt.Errorf("remember settings: %w", err)
	}
	if _, err := sp.Exec(ctx, settings); err != nil {
		return fmt.Errorf("begin a savepoint: %w", err)
	}
	return nil
}

// Commit releases the savepoint. After a failed statement it rolls back
// instead and returns pgx.ErrTxCommitRollback, as a real commit would.
func (sp *savepoint) Commit(ctx context.Context) error {
	const failed = 'E'
	if sp.Conn().PgConn().TxStatus() == failed {
		return errors.Join(pgx.ErrTxCommitRollback, sp.Rollback(ctx))
	}
	if err := sp.Tx.Commit(ctx); err != nil {
		return fmt.Errorf("release a savepoint: %w", err)
	}
	const query = "SELECT set_config(name, value, true) FROM unnest($1::text[], $2::text[]) AS s (name, value)"
	if _, err := sp.outer.Exec(ctx, query, sp.names, sp.values); err != nil {
		return fmt.Errorf("put settings back: %w", err)
	}
	return nil
}

// settingNames returns the names in statements such as
// "set local role r; set local a.b = 'c'".
func settingNames(statements string) []string {
	var names []string
	for _, match := range regexp.MustCompile(`(?i)\bset\s+local\s+([a-z_][a-z0-9_.]*)`).FindAllStringSubmatch(statements, -1) {
		names = append(names, strings.ToLower(match[1]))
	}
	return names
}
