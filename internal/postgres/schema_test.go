package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// open opens a pool until the end of the test.
func open(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// login makes a database login and returns the address with it.
func login(t *testing.T, db *pgxpool.Pool, grants string) string {
	t.Helper()
	name := "schema_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := db.Exec(t.Context(), "CREATE ROLE "+name+" LOGIN PASSWORD '"+name+"' "+grants); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec(context.WithoutCancel(t.Context()), "DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, name)
	return u.String()
}

func TestCheckSchema(t *testing.T) {
	t.Parallel()
	const last = "(SELECT max(version_id) FROM goose_db_version)"

	for name, test := range map[string]struct{ statement, grants, want string }{
		"as it is":             {"", "SUPERUSER", ""},
		"newer":                {"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)", "SUPERUSER", ""},
		"older":                {"DELETE FROM goose_db_version WHERE version_id = " + last, "SUPERUSER", "and this program needs"},
		"taken back":           {"UPDATE goose_db_version SET is_applied = false WHERE version_id = " + last, "SUPERUSER", "and this program needs"},
		"not migrated":         {"DROP TABLE goose_db_version", "SUPERUSER", "is not migrated; run `countersign migrate`"},
		"a login of the API":   {"", "IN ROLE countersign_api", ""},
		"a login of a worker":  {"", "IN ROLE countersign_worker", ""},
		"a login of triage":    {"", "IN ROLE countersign_triage", ""},
		"a login without role": {"", "", "grant the user its role"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := dbtest.DB(t)
			if _, err := db.Exec(t.Context(), test.statement); err != nil {
				t.Fatal(err)
			}

			err := postgres.CheckSchema(t.Context(), open(t, login(t, db, test.grants)))

			if test.want == "" && err != nil {
				t.Errorf("CheckSchema = %v, want nil", err)
			}
			if shown, ok := errors.AsType[*fault.Error](err); test.want != "" && (!ok || !strings.Contains(shown.Text, test.want) || !errors.Is(err, fault.Busy)) {
				t.Errorf("CheckSchema = %v, want fault.Busy with %q", err, test.want)
			}
		})
	}
}

func TestAwaitSchema(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	if _, err := db.Exec(t.Context(), "UPDATE goose_db_version SET is_applied = false"); err != nil {
		t.Fatal(err)
	}
	// The migration runs when AwaitSchema logs that it waits.
	waits := migrating{func(record slog.Record) error {
		if record.Level != slog.LevelWarn {
			return nil
		}
		_, err := db.Exec(t.Context(), "UPDATE goose_db_version SET is_applied = true")
		return err
	}}

	if err := postgres.AwaitSchema(t.Context(), db, slog.New(waits)); err != nil {
		t.Errorf("AwaitSchema = %v", err)
	}
	if err := postgres.CheckSchema(t.Context(), db); err != nil {
		t.Errorf("AwaitSchema returned before the migration: %v", err)
	}
}

// migrating is a handler that does something at each record.
type migrating struct{ do func(slog.Record) error }

func (migrating) Enabled(context.Context, slog.Level) bool             { return true }
func (m migrating) Handle(_ context.Context, record slog.Record) error { return m.do(record) }
func (m migrating) WithAttrs([]slog.Attr) slog.Handler                 { return m }
func (m migrating) WithGroup(string) slog.Handler                      { return m }

func TestAwaitSchemaEndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	if _, err := db.Exec(t.Context(), "UPDATE goose_db_version SET is_applied = false"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := migrating{func(slog.Record) error { cancel(); return nil }}

	if err := postgres.AwaitSchema(ctx, db, slog.New(waits)); !errors.Is(err, context.Canceled) {
		t.Errorf("AwaitSchema = %v, want that its context ended", err)
	}
}

func TestAwaitSchemaDoesNotWaitForADatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	db.Close()

	if err := postgres.AwaitSchema(t.Context(), db, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("AwaitSchema = %v, want that the database does not answer", err)
	}
}
