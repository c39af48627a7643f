package dev_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/db"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// names returns the names that statements of the product call as functions.
func names(t *testing.T) []string {
	t.Helper()
	call := regexp.MustCompile(`\b([a-z_][a-z0-9_]{2,})\(`)
	found := make(map[string]bool)
	collect := func(text []byte) {
		for _, match := range call.FindAllSubmatch(text, -1) {
			found[string(match[1])] = true
		}
	}
	err := fs.WalkDir(db.Migrations, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := db.Migrations.ReadFile(path)
		collect(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"../../db/queries/*.sql", "../*/*/store*.go", "../*/store*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			collect(text)
		}
	}
	all := make([]string, 0, len(found))
	for name := range found {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// plant creates in a schema objects that a statement searching it could choose:
// operators and functions of all names that statements use, for arguments without
// a match in pg_catalog, and types, casts and tables. Each counts its calls in
// the sequence planted.calls.
const plant = `
DO $plant$
DECLARE
    name text; arg text; other text;
    types text[] := '{int4,int8,float8,numeric,text,name,jsonb,uuid,timestamptz,interval,bool,bytea}';
BEGIN
    FOREACH arg IN ARRAY types LOOP
        FOREACH other IN ARRAY types LOOP
            EXECUTE format('CREATE FUNCTION %s.planted_pair(pg_catalog.%I, pg_catalog.%I) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval(''planted.calls''); RETURN true; END $$', SCHEMA, arg, other);
            FOREACH name IN ARRAY string_to_array('= <> < > <= >= + - * / % || -> ->> #> #>> @> <@ ? ?| && ~ ~* !~ ~~ !~~ ^ -|-', ' ') LOOP
                IF NOT EXISTS (
                    SELECT FROM pg_operator o
                    WHERE o.oprname = name AND o.oprleft = to_regtype('pg_catalog.' || quote_ident(arg)) AND o.oprright = to_regtype('pg_catalog.' || quote_ident(other))
                ) AND NOT (arg = 'bool' AND name IN ('=', '<>')) THEN
                    EXECUTE format('CREATE OPERATOR %s.%s (LEFTARG = pg_catalog.%I, RIGHTARG = pg_catalog.%I, FUNCTION = %1$s.planted_pair)', SCHEMA, name, arg, other);
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
    FOR name IN SELECT DISTINCT p.proname FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY (NAMES) LOOP
        FOREACH arg IN ARRAY types LOOP
            EXECUTE format('CREATE FUNCTION %s.%I(pg_catalog.%I) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval(''planted.calls''); RETURN ''''; END $$', SCHEMA, name, arg);
            FOREACH other IN ARRAY ARRAY['int4', 'text', arg] LOOP
                EXECUTE format('CREATE OR REPLACE FUNCTION %s.%I(pg_catalog.%I, pg_catalog.%I) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval(''planted.calls''); RETURN ''''; END $$', SCHEMA, name, arg, other);
            END LOOP;
        END LOOP;
    END LOOP;
    FOREACH name IN ARRAY types LOOP
        EXECUTE format('CREATE DOMAIN %s.%I AS pg_catalog.bool CHECK (pg_catalog.nextval(''planted.calls'') > 0)', SCHEMA, name);
    END LOOP;
    EXECUTE format('CREATE TYPE %s.mood AS ENUM (''ok'')', SCHEMA);
    EXECUTE format('CREATE FUNCTION %s.planted_cast(%1$s.mood) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval(''planted.calls''); RETURN ''''; END $$', SCHEMA);
    EXECUTE format('CREATE CAST (%s.mood AS pg_catalog.text) WITH FUNCTION %1$s.planted_cast(%1$s.mood) AS IMPLICIT', SCHEMA);
    -- An application may use the names of tables, and goose.
    FOREACH name IN ARRAY '{actions,outbox,tenants,events,tools,api_tokens,goose_db_version}'::text[] LOOP
        EXECUTE format('CREATE TABLE %s.%I (id pg_catalog.int4)', SCHEMA, name);
    END LOOP;
END
$plant$`

// TestNothingPlantedRuns lets a whole environment migrate and work on a database
// whose owner is an application that planted objects in public and in its own
// schema, and that may propose.
func TestNothingPlantedRuns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := dbtest.DB(t)
	login := "planter_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := server.Exec(ctx, "CREATE ROLE "+login+" LOGIN"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Its database was dropped before, and with it the objects that it owned.
		if _, err := server.Exec(context.WithoutCancel(ctx), "DROP ROLE "+login); err != nil {
			t.Error(err)
		}
	})
	address := dbtest.EmptyURL(t)
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	exec := func(statements ...string) {
		t.Helper()
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatalf("%.200s: %v", sql, err)
			}
		}
	}
	calls := func() (n int64) {
		t.Helper()
		if err := conn.QueryRow(ctx, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM planted.calls").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	exec("ALTER DATABASE "+conn.Config().Database+" OWNER TO "+login, "SET ROLE "+login,
		"CREATE SCHEMA planted", "GRANT USAGE ON SCHEMA planted TO PUBLIC", "CREATE SEQUENCE planted.calls", "GRANT ALL ON SEQUENCE planted.calls TO PUBLIC",
		"CREATE SCHEMA "+login, "GRANT USAGE ON SCHEMA "+login+" TO PUBLIC")
	called := "'{" + strings.Join(names(t), ",") + "}'::text[]"
	for _, schema := range []string{"public", login} {
		exec(strings.NewReplacer("SCHEMA,", "'"+schema+"',", "SCHEMA)", "'"+schema+"')", "NAMES", called).Replace(plant))
	}
	// The objects are chosen where their schema is searched.
	exec("SET search_path = public", "SELECT 1.5::float8 * 2::int4, left(1::int4, 'a'::text)")
	if calls() == 0 {
		t.Fatal("no planted object was called where its schema is searched")
	}
	exec("RESET search_path", "ALTER SEQUENCE planted.calls RESTART", "RESET ROLE")

	h := open(t, address, t.TempDir())
	demonstrate(t, h)
	exec("INSERT INTO countersign_data.db_logins (tenant_id, login_id, login) SELECT t.tenant_id, '"+uuid.NewString()+"', '"+login+"' FROM countersign_data.tenants t LIMIT 1",
		"SET SESSION AUTHORIZATION "+login)
	for _, path := range []string{"public", login, login + ", public, countersign", "countersign, public"} {
		exec("SET search_path = " + path)
		rows, err := conn.Query(ctx, `SELECT s.state FROM pg_catalog.unnest(countersign.propose_many(ARRAY['{"type": "mcp.exec", "tool": {"source": "notes", "name": "create_note"}, "args": {}}'::pg_catalog.jsonb])) u (id),
			LATERAL countersign.proposal_status(u.id) s`)
		if err != nil {
			t.Fatal(err)
		}
		if states, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Errorf("proposals with the path %s are %q, %v", path, states, err)
		}
		for range 40 { // a call counts waiting proposals at random
			exec(`SELECT countersign.propose('{"type": "mcp.exec", "tool": {"source": "notes", "name": "create_note"}, "args": {}}')`)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	if n := calls(); n > 0 {
		t.Errorf("%d calls of planted objects, want none", n)
	}
}
