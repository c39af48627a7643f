package postgres_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/countersign-dev/countersign/db"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// stranger creates a login that the product does not trust, which ends after the
// databases that are created later.
func stranger(t *testing.T) string {
	t.Helper()
	server := dbtest.DB(t)
	name := "stranger_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	run := func(sql string) {
		if _, err := server.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Error(err)
		}
	}
	run("CREATE ROLE " + name + " LOGIN PASSWORD '" + name + "'")
	t.Cleanup(func() { run("DROP ROLE " + name) })
	return name
}

func TestMigrateRejectsExposedSchemas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		migrated   bool
		statements []string
		want       []string
	}{
		"created by somebody before": {false, []string{"CREATE SCHEMA countersign_data AUTHORIZATION WHO"}, []string{"schema countersign_data belongs to WHO", "RENAME TO"}},
		"River's, before":            {false, []string{"CREATE SCHEMA river AUTHORIZATION WHO"}, []string{"schema river belongs to WHO"}},
		"a grant to everybody":       {true, []string{"GRANT CREATE ON SCHEMA countersign_data TO PUBLIC"}, []string{"PUBLIC may create in schema countersign_data", "REVOKE CREATE ON SCHEMA countersign_data FROM PUBLIC"}},
		"a grant to a login":         {true, []string{"GRANT CREATE ON SCHEMA countersign TO WHO"}, []string{"WHO may create in schema countersign;"}},
		"an operator of a login": {true, []string{
			"CREATE FUNCTION countersign_data.f(float8, int4) RETURNS bool RETURN true", "CREATE OPERATOR countersign_data.* (LEFTARG = float8, RIGHTARG = int4, FUNCTION = countersign_data.f)",
			"ALTER OPERATOR countersign_data.* (float8, int4) OWNER TO WHO",
		}, []string{"operator countersign_data.*(double precision,integer) in schema countersign_data belongs to WHO"}},
		"a constraint that calls a function of a login": {true, []string{
			"CREATE FUNCTION public.f(int4) RETURNS bool LANGUAGE sql AS 'SELECT true'", "ALTER FUNCTION public.f(int4) OWNER TO WHO",
			"ALTER TABLE countersign_data.outbox ADD CONSTRAINT planted CHECK (public.f(1))",
		}, []string{"constraint planted on table countersign_data.outbox calls public.f(integer) of WHO"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			who := stranger(t)
			address := dbtest.EmptyURL(t)
			if test.migrated {
				address = dbtest.URL(t)
			}
			conn, err := pgx.Connect(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
			for _, sql := range test.statements {
				if _, err := conn.Exec(t.Context(), strings.ReplaceAll(sql, "WHO", who)); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}

			_, err = postgres.Migrate(t.Context(), address)

			if _, ok := errors.AsType[*postgres.ExposedError](err); !ok {
				t.Fatalf("Migrate = %v, want an ExposedError", err)
			}
			for _, want := range test.want {
				if want = strings.ReplaceAll(want, "WHO", who); !strings.Contains(err.Error(), want) {
					t.Errorf("Migrate = %v, want %q in it", err, want)
				}
			}
		})
	}
}

// TestMigrateMovesTablesOutOfPublic brings up the schema that version 11 left in
// public, next to an application's own table, and compares it with a new one.
func TestMigrateMovesTablesOutOfPublic(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	files, err := fs.Sub(db.Migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	old := stdlib.OpenDBFromPool(pool)
	defer func() { _ = old.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, old, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 11); err != nil {
		t.Fatal(err)
	}
	tenant := uuid.Must(uuid.NewV7())
	for _, sql := range []string{
		"INSERT INTO public.tenants (tenant_id, name) VALUES ('" + tenant.String() + "', 'kept')", "CREATE TABLE public.orders (order_no text)",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	got, err := postgres.Migrate(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}

	latest, _ := postgres.LatestSchema()
	if got.From != 11 || got.To != latest {
		t.Errorf("Migrate = %+v, want from 11 to %d", got, latest)
	}
	if _, err := pool.Exec(t.Context(), "DROP TABLE public.orders"); err != nil {
		t.Errorf("the application's table: %v", err)
	}
	if diff := cmp.Diff(definitions(t, dbtest.URL(t)), definitions(t, address)); diff != "" {
		t.Errorf("schema (-new +moved):\n%s", diff)
	}
	var kept string
	if err := pool.QueryRow(t.Context(), "SELECT name FROM countersign_data.tenants WHERE tenant_id = $1", tenant).Scan(&kept); err != nil || kept != "kept" {
		t.Errorf("the tenant is %q, %v", kept, err)
	}
	if again, err := postgres.Migrate(t.Context(), address); err != nil || again.From != latest {
		t.Errorf("Migrate again = %+v, %v", again, err)
	}
}

// definitions lists the definitions of a database: objects, owners, privileges,
// and the settings of functions.
func definitions(t *testing.T, address string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	rows, _ := conn.Query(t.Context(), `
		SELECT format('%s %s %s %s', n.nspname, c.relname, c.relowner::regrole, c.relacl) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
		UNION ALL SELECT format('%s %s %s %s %s', f.oid::regprocedure, f.proowner::regrole, f.proacl, f.proconfig, md5(f.prosrc)) FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
		WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
		UNION ALL SELECT format('%s %s %s', n.nspname, n.nspowner::regrole, n.nspacl) FROM pg_namespace n WHERE n.nspname IN ('countersign', 'countersign_data', 'river')
		UNION ALL SELECT format('%s %s %s', k.polname, k.polrelid::regclass, pg_get_expr(k.polqual, k.polrelid)) FROM pg_policy k
		UNION ALL SELECT pg_get_triggerdef(g.oid) FROM pg_trigger g WHERE NOT g.tgisinternal
		UNION ALL SELECT pg_get_constraintdef(k.oid) FROM pg_constraint k
		ORDER BY 1`) // CollectRows returns the error
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCheckSchemaRejectsAForeignPath has a session as a pooler in transaction mode
// gives it: with the search path of the login.
func TestCheckSchemaRejectsAForeignPath(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	address := login(t, db, "IN ROLE countersign_worker")
	pooled := func() error {
		t.Helper()
		pool, err := postgres.Open(t.Context(), postgres.Config{URL: address, Pooled: true})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		return postgres.CheckSchema(t.Context(), pool)
	}

	if err := pooled(); !errors.Is(err, fault.Busy) || !strings.Contains(err.Error(), "has schema public") || !strings.Contains(err.Error(), "ALTER ROLE") {
		t.Errorf("CheckSchema = %v, want fault.Busy with the statement to run", err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), "ALTER ROLE "+u.User.Username()+" SET search_path = "+postgres.SearchPath); err != nil {
		t.Fatal(err)
	}
	if err := pooled(); err != nil {
		t.Errorf("CheckSchema with the path of the role = %v, want nil", err)
	}
}
