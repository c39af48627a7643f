package dbtest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// leftovers is what a test may find of an earlier one.
type leftovers struct {
	Tenants, Jobs, Locks, Temporary int
	NextEvent                       int64
	Fence, TimeZone, SearchPath     string
}

func leftoversOf(t *testing.T, db *pgxpool.Pool) leftovers {
	t.Helper()
	const query = `
SELECT (SELECT count(*) FROM tenants), (SELECT count(*) FROM river.river_job),
	(SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND d.datname = current_database()),
	(SELECT count(*) FROM pg_class WHERE relpersistence = 't'),
	coalesce(pg_sequence_last_value('events_event_id_seq'), 0),
	(SELECT string_agg(to_jsonb(f) ->> 'state', ',') FROM fence f), current_setting('timezone'), current_setting('search_path')`
	var l leftovers
	if err := db.QueryRow(t.Context(), query).Scan(&l.Tenants, &l.Jobs, &l.Locks, &l.Temporary, &l.NextEvent, &l.Fence, &l.TimeZone, &l.SearchPath); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDBIsReused(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO tenants (tenant_id, name) SELECT gen_random_uuid(), n::text FROM generate_series(1, $1) n"
	exec := func(statements ...string) func(*testing.T, *pgxpool.Pool) {
		return func(t *testing.T, db *pgxpool.Pool) {
			t.Helper()
			for _, sql := range statements {
				if _, err := db.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	tests := []struct {
		name   string
		test   func(*testing.T, *pgxpool.Pool)
		reused bool
	}{
		{"nothing", func(*testing.T, *pgxpool.Pool) {}, true},
		{"rows", func(t *testing.T, db *pgxpool.Pool) {
			if _, err := db.Exec(t.Context(), insert, 3); err != nil {
				t.Fatal(err)
			}
			exec("INSERT INTO events (tenant_id, kind, actor, items) SELECT tenant_id, 'settled', 'w', '[]' FROM tenants")(t, db)
		}, true},
		{"the fence", exec("UPDATE fence SET state = 'held', reason = 'copy', detail = 'it''s a copy'"), true},
		{"no fence", exec("DELETE FROM fence"), true},
		{"settings of a session", exec("SET timezone = 'Asia/Tokyo'", "SET search_path = public", "SET ROLE countersign_api"), true},
		{"a lock of a session", exec("SELECT pg_advisory_lock(7)"), true},
		{"a temporary table", exec("CREATE TEMPORARY TABLE kept (n int)"), false},
		{"a listener", exec("LISTEN changed"), false},
		{"a table", exec("CREATE TABLE public.kept (n int)"), false},
		{"a renamed table", exec("ALTER TABLE actions RENAME TO gone"), false},
		{"a trigger that is off", exec("ALTER TABLE triage_proposals DISABLE TRIGGER USER"), false},
		{"a grant", exec("GRANT SELECT (name) ON tenants TO pg_monitor"), false},
		{"a setting of the database", func(t *testing.T, db *pgxpool.Pool) {
			exec("ALTER DATABASE "+pgx.Identifier{db.Config().ConnConfig.Database}.Sanitize()+" SET work_mem = '1MB'")(t, db)
		}, false},
		{"statistics", exec("ANALYZE tenants"), false},
		{"a version", exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"), false},
		{"many rows", func(t *testing.T, db *pgxpool.Pool) {
			if _, err := db.Exec(t.Context(), insert, 3000); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a closed pool", func(_ *testing.T, db *pgxpool.Pool) { db.Close() }, false},
		{"a session that is left", func(t *testing.T, db *pgxpool.Pool) {
			if _, err := pgx.Connect(t.Context(), db.Config().ConnString()); err != nil {
				t.Fatal(err)
			}
		}, false},
	}
	const statements = "-- TestDBIsReused" // databases of this test alone
	var before string
	var fresh leftovers
	reused := true
	for i, test := range append(tests, tests[0]) {
		t.Run(test.name, func(t *testing.T) {
			db := dbtest.DBWith(t, statements)
			name := db.Config().ConnConfig.Database
			if i == 0 {
				fresh = leftoversOf(t, db)
			} else if got := name == before; got != reused {
				t.Errorf("the database was reused: %t, want %t", got, reused)
			}
			if diff := cmp.Diff(fresh, leftoversOf(t, db)); diff != "" {
				t.Errorf("leftovers (-want +got):\n%s", diff)
			}
			before, reused = name, test.reused

			test.test(t, db)
		})
	}
}

func TestDBWithExecutesStatements(t *testing.T) {
	t.Parallel()
	const statements = "CREATE TABLE public.more (n int); INSERT INTO public.more VALUES (1)"

	for range 2 {
		t.Run("again", func(t *testing.T) {
			var n int
			if err := dbtest.DBWith(t, statements).QueryRow(t.Context(), "SELECT sum(n) FROM public.more").Scan(&n); err != nil || n != 1 {
				t.Errorf("sum = %d, %v, want 1", n, err)
			}
		})
	}
}
