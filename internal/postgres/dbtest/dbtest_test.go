package dbtest_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

const insertTenant = "INSERT INTO tenants (tenant_id, name) VALUES (gen_random_uuid(), $1)"

// count returns the number of tenants with a name.
func count(t *testing.T, tx pgx.Tx, name string) int {
	t.Helper()
	var n int
	if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM tenants WHERE name = $1", name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTxLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			tx := dbtest.Tx(t)
			before := count(t, tx, "acme")

			_, err := tx.Exec(t.Context(), insertTenant, "acme")

			if after := count(t, tx, "acme"); err != nil || before != 0 || after != 1 {
				t.Errorf("tenants before and after: %d, %d, %v, want 0, 1, nil", before, after, err)
			}
		})
	}
}

// tolerant is a test that records no errors.
type tolerant struct {
	testing.TB

	errors int
}

func (d *tolerant) Error(...any) { d.errors++ }

func TestTxIsOnTheServerForIt(t *testing.T) {
	t.Parallel()
	const query = "SELECT system_identifier FROM pg_control_system()"
	var tx, db int64
	if err := dbtest.Tx(t).QueryRow(t.Context(), query).Scan(&tx); err != nil {
		t.Fatal(err)
	}
	if err := dbtest.DB(t).QueryRow(t.Context(), query).Scan(&db); err != nil {
		t.Fatal(err)
	}

	if other := os.Getenv(dbtest.TxURLEnv) != ""; other != (tx != db) {
		t.Errorf("Tx is on another server than DB: %t, want %t", tx != db, other)
	}
}

func TestTxCannotBeCommitted(t *testing.T) {
	t.Parallel()
	d := &tolerant{TB: t}
	tx := dbtest.Tx(d)

	err := tx.Commit(t.Context())

	if err == nil || d.errors != 1 {
		t.Errorf("Commit() = %v with %d test errors, want an error and 1", err, d.errors)
	}
}

// scope is the role, the tenant and a setting as a transaction sees them.
type scope struct{ Role, Tenant, HashJoin string }

func scopeOf(t *testing.T, tx pgx.Tx) scope {
	t.Helper()
	const query = `
SELECT current_user::text, coalesce(current_setting('countersign.tenant_id', true), ''), current_setting('enable_hashjoin')`
	var s scope
	if err := tx.QueryRow(t.Context(), query).Scan(&s.Role, &s.Tenant, &s.HashJoin); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTxReplacesAPool(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	outside := scopeOf(t, tx)
	tenant := envelope.TenantID(uuid.New())
	refused := errors.New("refused")

	for _, want := range []error{nil, refused} {
		var inside scope
		err := postgres.InTx(t.Context(), tx, postgres.API(tenant).Planned(), func(tx pgx.Tx) error {
			inside = scopeOf(t, tx)
			return want
		})
		if !errors.Is(err, want) {
			t.Errorf("InTx() = %v, want %v", err, want)
		}
		if diff := cmp.Diff(scope{"countersign_api", tenant.String(), "off"}, inside); diff != "" {
			t.Errorf("scope inside (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(outside, scopeOf(t, tx)); diff != "" {
			t.Errorf("scope afterwards (-want +got):\n%s", diff)
		}
	}
}

func TestTxKeepsInnerCommits(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	insert := func(name string, then error) error {
		return postgres.InTx(t.Context(), tx, postgres.Admin(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), insertTenant, name)
			return errors.Join(err, then)
		})
	}

	if err := insert("kept", nil); err != nil {
		t.Fatal(err)
	}
	if err := insert("undone", errors.New("refused")); err == nil {
		t.Error("InTx() = nil, want the closure's error")
	}

	if kept, undone := count(t, tx, "kept"), count(t, tx, "undone"); kept != 1 || undone != 0 {
		t.Errorf("tenants kept and undone: %d, %d, want 1, 0", kept, undone)
	}
}

func TestTxSurvivesAFailedInnerTransaction(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)

	err := postgres.InTx(t.Context(), tx, postgres.Worker(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SELECT 1 / 0")
		if err == nil {
			t.Error("1 / 0 succeeded")
		}
		return nil // as buggy code would
	})

	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("InTx() = %v, want %v", err, pgx.ErrTxCommitRollback)
	}
	if n := count(t, tx, "nobody"); n != 0 {
		t.Errorf("count = %d, want 0", n)
	}
}

func TestDBIsOfOneTest(t *testing.T) {
	t.Parallel()
	one, other := dbtest.DB(t), dbtest.DB(t)

	if _, err := one.Exec(t.Context(), insertTenant, "acme"); err != nil {
		t.Fatal(err)
	}

	for name, row := range map[string]struct {
		db   postgres.Begins
		want int
	}{"one": {one, 1}, "other": {other, 0}, "shared": {dbtest.Tx(t), 0}} {
		err := postgres.InTx(t.Context(), row.db, postgres.Admin(), func(tx pgx.Tx) error {
			if got := count(t, tx, "acme"); got != row.want {
				t.Errorf("%s: count = %d, want %d", name, got, row.want)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDatabaseIsDroppedUnderItsUsers(t *testing.T) {
	t.Parallel()
	var conn *pgx.Conn
	t.Run("a test that forgets to close", func(t *testing.T) {
		url := dbtest.URL(t)
		var err error
		if conn, err = pgx.Connect(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	})

	if conn == nil {
		t.FailNow() // the subtest has reported the error
	}

	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the connection still works after the test's end")
	}
	var exists bool
	const query = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := dbtest.Tx(t).QueryRow(t.Context(), query, conn.Config().Database).Scan(&exists); err != nil || exists {
		t.Errorf("the database exists: %t, %v, want false, nil", exists, err)
	}
}

func TestEmptyURLHasNoSchema(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)

	m, err := postgres.Migrate(t.Context(), url)

	if err != nil || m.From != 0 || m.To == 0 || m.River == 0 {
		t.Errorf("Migrate() = %+v, %v, want from version 0 to a later one", m, err)
	}
	if !strings.HasPrefix(url, "postgres") {
		t.Errorf("EmptyURL() = %q, want a URL", url)
	}
}
