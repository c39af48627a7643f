package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

func TestMigrateBringsAnEmptyDatabaseUpOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)

	first, err := postgres.Migrate(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	before := shape(t, url)
	second, err := postgres.Migrate(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	if first.From != 0 || first.To < 1 || first.River < 1 {
		t.Errorf("Migrate = %+v, want from 0 up", first)
	}
	if diff := cmp.Diff(postgres.Migrated{From: first.To, To: first.To, River: first.River}, second); diff != "" {
		t.Errorf("Migrate again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, shape(t, url)); diff != "" {
		t.Errorf("the second run changed the schema (-before +after):\n%s", diff)
	}
}

// TestMigrateNeedsNoRightToCreateRoles if they exist: a deployment may create
// the roles and the logins first.
func TestMigrateNeedsNoRightToCreateRoles(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t) // a database whose migration created the roles
	login := "migrates_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	exec := func(sql string) {
		if _, err := db.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Error(err)
		}
	}
	exec("CREATE ROLE " + login + " LOGIN PASSWORD '" + login + "' IN ROLE countersign_owner, countersign_api, countersign_worker, countersign_triage")
	t.Cleanup(func() { exec("DROP ROLE " + login) }) // after its database is gone
	u, err := url.Parse(dbtest.EmptyURL(t))
	if err != nil {
		t.Fatal(err)
	}
	exec("ALTER DATABASE " + pgx.Identifier{strings.TrimPrefix(u.Path, "/")}.Sanitize() + " OWNER TO " + login)
	u.User = url.UserPassword(login, login)

	if _, err := postgres.Migrate(t.Context(), u.String()); err != nil {
		t.Error(err)
	}
}

func TestMigrationsTakeTurns(t *testing.T) {
	t.Parallel()
	const processes = 2
	url := dbtest.EmptyURL(t)

	var errs [processes]error
	var got [processes]postgres.Migrated
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() { got[i], errs[i] = postgres.Migrate(t.Context(), url) })
	}
	wg.Wait()

	for i := range processes {
		if errs[i] != nil || got[i].To != got[0].To || got[i].River != got[0].River {
			t.Errorf("Migrate = %+v, %v, want what the others have", got[i], errs[i])
		}
	}
}

func TestMigrateRejectsALaterSchema(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)
	if _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	if _, err := db.Exec(t.Context(), "INSERT INTO countersign_data.goose_db_version (version_id, is_applied) VALUES (99999, true)"); err != nil {
		t.Fatal(err)
	}

	_, err = postgres.Migrate(t.Context(), url)

	if err == nil || !strings.Contains(err.Error(), "schema version 99999") || !strings.Contains(err.Error(), "run the newer program") {
		t.Errorf("Migrate = %v, want an error that names the version and what to do", err)
	}
}

func TestMigrateWithoutADatabase(t *testing.T) {
	t.Parallel()

	if _, err := postgres.Migrate(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=2"); err == nil {
		t.Error("Migrate = nil, want an error")
	}
}

// shape lists every column and constraint of a database.
func shape(t *testing.T, url string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	rows, err := conn.Query(t.Context(), `
		SELECT concat_ws(' ', table_schema, table_name, column_name, data_type) FROM information_schema.columns WHERE table_schema IN ('public', 'countersign_data', 'river')
		UNION ALL SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}
