package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// counter is a database with a table of a few counters.
func counter(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db := dbtest.DB(t)
	exec(t, db, "CREATE TABLE countersign_data.counter (id int PRIMARY KEY, n int NOT NULL)")
	exec(t, db, "INSERT INTO counter VALUES (1, 0), (2, 0)")
	return db
}

func exec(t *testing.T, db *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func value[T any](t *testing.T, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string) (v T) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestInTxCommitsAndRollsBack(t *testing.T) {
	t.Parallel()
	db := counter(t)
	boom := errors.New("boom")
	add := func(then func() error) error {
		return postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "UPDATE counter SET n = n + 1 WHERE id = 1"); err != nil {
				return err
			}
			return then()
		})
	}

	done := add(func() error { return nil })
	failed := add(func() error { return boom })
	panicked := func() (r any) {
		defer func() { r = recover() }()
		_ = add(func() error { panic("bug") })
		return nil
	}()

	if done != nil || !errors.Is(failed, boom) || panicked != "bug" {
		t.Errorf("InTx = %v, %v, and panics with %v", done, failed, panicked)
	}
	if n := value[int](t, db, "SELECT n FROM counter WHERE id = 1"); n != 1 {
		t.Errorf("n = %d, want that of the one commit", n)
	}
	if open := db.Stat().AcquiredConns(); open != 0 {
		t.Errorf("%d connections were not given back", open)
	}
}

func TestInTxRollsBackWhenItsContextIsOver(t *testing.T) {
	t.Parallel()
	db := counter(t)
	ctx, cancel := context.WithCancel(t.Context())

	err := postgres.InTx(ctx, db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE counter SET n = n + 1")
		cancel()
		return err
	})

	if !errors.Is(err, context.Canceled) {
		t.Errorf("InTx = %v, want context.Canceled", err)
	}
	if n := value[int](t, db, "SELECT sum(n)::int FROM counter"); n != 0 {
		t.Errorf("n = %d, want nothing committed", n)
	}
}

// Two transactions lock the same two rows in opposite order, each holding its
// first until the other has its own: one must be rerun.
func TestInTxRunsADeadlockAgain(t *testing.T) {
	t.Parallel()
	db := counter(t)
	var locked sync.WaitGroup
	locked.Add(2)
	var tries [2]int
	var errs [2]error

	var wg sync.WaitGroup
	for i, ids := range [2][2]int{{1, 2}, {2, 1}} {
		wg.Go(func() {
			errs[i] = postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
				tries[i]++
				if _, err := tx.Exec(t.Context(), "UPDATE counter SET n = n + 1 WHERE id = $1", ids[0]); err != nil {
					return err
				}
				if tries[i] == 1 {
					locked.Done()
					locked.Wait()
				}
				_, err := tx.Exec(t.Context(), "UPDATE counter SET n = n + 1 WHERE id = $1", ids[1])
				return err
			})
		})
	}
	wg.Wait()

	if errs[0] != nil || errs[1] != nil || tries[0]+tries[1] < 3 {
		t.Errorf("InTx = %v, %v after %v tries, want success, and a rerun of at least one", errs[0], errs[1], tries)
	}
	if n := value[int](t, db, "SELECT sum(n)::int FROM counter"); n != 4 {
		t.Errorf("sum = %d, want 4: each transaction once", n)
	}
}

// A transaction reads, another one changes the same row, and the first writes:
// at this isolation level it cannot be serialized.
func TestInTxRunsASerializationFailureAgain(t *testing.T) {
	t.Parallel()
	db := counter(t)
	interferes := func(times int) (tries int, err error) {
		err = postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
			tries++
			if _, err := tx.Exec(t.Context(), "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
				return err
			}
			value[int](t, tx, "SELECT n FROM counter WHERE id = 1")
			if tries <= times {
				exec(t, db, "UPDATE counter SET n = n + 1 WHERE id = 1")
			}
			_, err := tx.Exec(t.Context(), "UPDATE counter SET n = n + 1 WHERE id = 1")
			return err
		})
		return tries, err
	}

	once, err := interferes(1)
	always, errAlways := interferes(100)

	if once != 2 || err != nil {
		t.Errorf("InTx = %v after %d tries, want success after 2", err, once)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](errAlways); always != 3 || !ok || pg.Code != "40001" {
		t.Errorf("InTx = %v after %d tries, want the failure after 3", errAlways, always)
	}
}

func TestInTxRunsOtherErrorsOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tries := 0

	err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
		tries++
		_, err := tx.Exec(t.Context(), "INSERT INTO tenants (tenant_id, name) VALUES (gen_random_uuid(), 'NOT A NAME')")
		return err
	})

	if pg, ok := errors.AsType[*pgconn.PgError](err); tries != 1 || !ok || pg.Code != "23514" {
		t.Errorf("InTx = %v after %d tries, want the violation after 1", err, tries)
	}
}

func TestAScopeEndsWithItsTransaction(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 1, Name: "one connection"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	const about = `SELECT concat_ws(' ', current_user, current_setting('countersign.tenant_id', true), current_setting('enable_hashjoin'),
		current_setting('enable_seqscan'), current_setting('plan_cache_mode'), current_setting('jit'))`
	tenant := envelope.TenantID(uuid.New())
	fresh := value[string](t, db, about)
	if value[string](t, db, "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()") != "one connection" {
		t.Error("the pool's name is not shown")
	}

	for name, test := range map[string]struct {
		scope postgres.Scope
		want  []string
	}{
		"api":             {postgres.API(tenant), []string{"countersign_api", tenant.String(), "on"}},
		"worker, planned": {postgres.Worker().Planned(), []string{"countersign_worker", "off off force_generic_plan off"}},
		"authenticator":   {postgres.Authenticator(), []string{"countersign_api"}},
		"admin":           {postgres.Admin(), []string{"postgres"}},
	} {
		for _, end := range []error{nil, errUndo} {
			var inside string
			err := postgres.InTx(t.Context(), db, test.scope, func(tx pgx.Tx) error {
				inside = value[string](t, tx, about)
				return end
			})
			if !errors.Is(err, end) {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(inside, want) {
					t.Errorf("%s: inside it is %q, want %q in it", name, inside, want)
				}
			}
			// A setting of '' and an unset one are the same to a reader.
			if after := value[string](t, db, about); strings.ReplaceAll(after, "  ", " ") != strings.ReplaceAll(fresh, "  ", " ") {
				t.Errorf("%s: the next user of the connection is %q, want %q", name, after, fresh)
			}
		}
	}
}

func TestOpenHidesThePassword(t *testing.T) {
	t.Parallel()

	_, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://user:hunter2@host:notaport/db"})

	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Open = %v, want an error without the password", err)
	}
}

func TestOpenWorksBehindAPooler(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: dbtest.URL(t), Pooled: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)

	for range 3 {
		var n int
		err := postgres.InTx(t.Context(), db, postgres.Worker(), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "SELECT count(1) FROM tenants WHERE name = $1", "x").Scan(&n)
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	if n := value[int](t, db, "SELECT count(1)::int FROM pg_prepared_statements"); n != 0 {
		t.Errorf("%d statements are prepared by name, which a pooler would lose", n)
	}
}

func TestATransactionDoesNotOutliveItsHost(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)

	for name, scope := range map[string]postgres.Scope{"worker": postgres.Worker(), "api": postgres.API(envelope.TenantID(uuid.New()))} {
		var limit string
		err := postgres.InTx(t.Context(), db, scope, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&limit)
		})
		if err != nil || limit == "0" {
			t.Errorf("a transaction of the %s may stand idle for %q (%v), want a bound", name, limit, err)
		}
	}
}
