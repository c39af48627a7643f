package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// trips counts round trips to the database.
type trips struct{ queries, batches int }

func (c *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.queries++
	return ctx
}

func (*trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.batches++
	return ctx
}

func (*trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// onePool returns a pool of one connection, and its counter.
func onePool(t *testing.T) (*pgxpool.Pool, *trips) {
	t.Helper()
	config, counted := dbtest.DB(t).Config(), &trips{}
	config.ConnConfig.Tracer, config.MaxConns = counted, 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	*counted = trips{}
	return pool, counted
}

const shown = `SELECT $1::text || current_user || ' ' || coalesce(current_setting('countersign.tenant_id', true), '') || ' ' || current_setting('transaction_read_only') || ' ' ||
	current_setting('search_path') || ' ' || current_setting('enable_seqscan') || ' ' || current_setting('idle_in_transaction_session_timeout') || ' ' || current_setting('transaction_isolation')`

// TestATransactionBeginsWithItsFirstStatement compares the settings of transactions
// with a separate begin with those of transactions that begin with a statement.
func TestATransactionBeginsWithItsFirstStatement(t *testing.T) {
	t.Parallel()
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	for name, as := range map[string]postgres.Scope{
		"admin": postgres.Admin(), "api": postgres.API(tenant), "read only": postgres.API(tenant).ReadOnly(),
		"snapshot": postgres.Worker().Snapshot(), "planned": postgres.Worker().Planned(), "authenticator": postgres.Authenticator(),
		"alone": postgres.API(tenant).Alone(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, counted := onePool(t)
			var got [3]string
			var sent [3]trips
			for i := range got {
				*counted = trips{}
				err := postgres.InTx(t.Context(), pool, as, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), shown, "").Scan(&got[i]) })
				if err != nil {
					t.Fatal(err)
				}
				sent[i] = *counted
			}
			if got[1] != got[0] || got[2] != got[0] {
				t.Errorf("parameters are %q, then %q and %q", got[0], got[1], got[2])
			}
			want := trips{1, 1} // with the commit
			if name == "alone" {
				want.queries = 0
			}
			if sent[2] != want {
				t.Errorf("sent %+v, want %+v", sent[2], want)
			}
			var after string
			if err := pool.QueryRow(t.Context(), shown, "").Scan(&after); err != nil || name != "admin" && after == got[0] {
				t.Errorf("after the transaction: %q, %v; want the session's own parameters", after, err)
			}
		})
	}
}

// TestAFirstStatementMayFail makes a first statement fail in each way, and
// uses the connection again.
func TestAFirstStatementMayFail(t *testing.T) {
	t.Parallel()
	pool, _ := onePool(t)
	const divide = "SELECT 1 / $1::int"
	divided := func(err error) bool {
		pg, ok := errors.AsType[*pgconn.PgError](err)
		return ok && pg.Code == "22012"
	}
	quotient := func(as postgres.Scope, by int) (n int, err error) {
		err = postgres.InTx(t.Context(), pool, as, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), divide, by).Scan(&n) })
		return n, err
	}
	for _, as := range []postgres.Scope{postgres.Admin(), postgres.Worker().Alone()} {
		for range 3 {
			if n, err := quotient(as, 1); n != 1 || err != nil {
				t.Fatalf("quotient = %d, %v", n, err)
			}
			if _, err := quotient(as, 0); !divided(err) {
				t.Fatalf("quotient by zero = %v", err)
			}
			err := postgres.InTx(t.Context(), pool, as, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), divide, 0)
				return err
			})
			if !divided(err) {
				t.Fatalf("executed by zero = %v", err)
			}
		}
	}

	// The session has lost the statement, which only the worker's role may prepare.
	if _, err := pool.Exec(t.Context(), "DEALLOCATE ALL"); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		_, _ = quotient(postgres.Admin(), 1)
	}
	if n, err := quotient(postgres.Admin(), 1); n != 1 || err != nil {
		t.Errorf("quotient after DEALLOCATE = %d, %v", n, err)
	}
}

// TestRollbackOfAFirstStatement rolls back a transaction that began with its
// first statement.
func TestRollbackOfAFirstStatement(t *testing.T) {
	t.Parallel()
	pool, _ := onePool(t)
	errBack := errors.New("back")
	const insert = "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)"
	for i := range 4 {
		id := uuid.Must(uuid.NewV7())
		err := postgres.InTx(t.Context(), pool, postgres.Admin(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), insert, id, id.String()); err != nil {
				return err
			}
			return errBack
		})
		if !errors.Is(err, errBack) {
			t.Fatal(err)
		}
		var n int
		if err := pool.QueryRow(t.Context(), "SELECT count(1) FROM tenants WHERE tenant_id = $1", id).Scan(&n); err != nil || n != 0 {
			t.Errorf("try %d: %d rows, %v; want none", i, n, err)
		}
	}
	for range 3 {
		err := postgres.InTx(t.Context(), pool, postgres.Admin().Alone(), func(tx pgx.Tx) error {
			for range 2 {
				if _, err := tx.Exec(t.Context(), "SELECT $1::int", 1); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			t.Error("a transaction of one statement took another")
		}
	}
}

// TestAQueryWithoutArgumentsBeginsItsTransaction counts the round trips of a query and of
// a statement without rows, which pgx does not prepare.
func TestAQueryWithoutArgumentsBeginsItsTransaction(t *testing.T) {
	t.Parallel()
	pool, counted := onePool(t)
	for range 3 {
		*counted = trips{}
		err := postgres.InTx(t.Context(), pool, postgres.Worker().Alone(), func(tx pgx.Tx) error {
			var n int
			return tx.QueryRow(t.Context(), "SELECT 7").Scan(&n)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if *counted != (trips{batches: 1}) {
		t.Errorf("a query: sent %+v, want one batch", *counted)
	}
	for range 3 {
		*counted = trips{}
		if err := postgres.InTx(t.Context(), pool, postgres.Worker(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "SELECT 8")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if counted.batches != 0 {
		t.Errorf("a statement without rows: sent %+v, want no batch", *counted)
	}
}

// TestAStatementIsSentAlongWithTheNext sends one along with each kind of next statement
// and with the commit, has it succeed and fail, and uses the connection again.
func TestAStatementIsSentAlongWithTheNext(t *testing.T) {
	t.Parallel()
	pool, counted := onePool(t)
	if _, err := pool.Exec(t.Context(), "CREATE TEMPORARY TABLE quotients (n int)"); err != nil {
		t.Fatal(err)
	}
	const insert = "INSERT INTO pg_temp.quotients VALUES (6 / $1::int)"
	rows := func(ctx context.Context, tx pgx.Tx) (n int, err error) {
		return n, tx.QueryRow(ctx, "SELECT count(1) FROM pg_temp.quotients WHERE n > $1", 0).Scan(&n)
	}
	for name, next := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"nothing": func(context.Context, pgx.Tx) error { return nil },
		"a row":   func(ctx context.Context, tx pgx.Tx) error { _, err := rows(ctx, tx); return err },
		"another": func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.Along(tx).Exec(ctx, insert, 3)
			return err
		},
		"the last": func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.Final(tx).Exec(ctx, insert, 2)
			return err
		},
		"one that is not prepared": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, "SELECT 9"); return err },
		"a savepoint": func(ctx context.Context, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, tx, func(pgx.Tx) error { return nil })
		},
	} {
		for try, by := range []int{1, 1, 1, 0, 1} {
			var before, after int
			err := postgres.InTx(t.Context(), pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
				if before, err = rows(t.Context(), tx); err != nil {
					return err
				}
				*counted = trips{}
				if _, err = postgres.Along(tx).Exec(t.Context(), insert+" -- held", by); err != nil {
					return err
				}
				return next(t.Context(), tx)
			})
			sent := *counted
			if pg, ok := errors.AsType[*pgconn.PgError](err); by == 0 != ok || ok && pg.Code != "22012" {
				t.Fatalf("%s, by %d: %v", name, by, err)
			}
			if err := postgres.InTx(t.Context(), pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
				after, err = rows(t.Context(), tx)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if stored := after > before; stored != (by == 1) {
				t.Errorf("%s, by %d: %d rows after %d", name, by, after, before)
			}
			if name == "the last" && try == 2 && sent != (trips{batches: 1}) {
				t.Errorf("%s: sent %+v, want one batch", name, sent)
			}
		}
	}
}

// TestATransactionWithoutAStatementSendsNothing counts it.
func TestATransactionWithoutAStatementSendsNothing(t *testing.T) {
	t.Parallel()
	pool, counted := onePool(t)
	if err := postgres.InTx(t.Context(), pool, postgres.Worker(), func(pgx.Tx) error { return nil }); err != nil || *counted != (trips{}) {
		t.Errorf("sent %+v, %v; want nothing", *counted, err)
	}
}
