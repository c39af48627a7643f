package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
)

const (
	// Schema is the database schema of Countersign's tables and functions. The
	// schema countersign has the functions that applications call, and no others.
	Schema = "countersign_data"
	// functionSchema is the schema of the functions that applications call.
	functionSchema = "countersign"
	// RiverSchema is the schema of River's tables.
	RiverSchema = "river"

	// SearchPath is the search_path of every transaction, and of the functions of the
	// database. It has no schema in which a login other than the owner may create: an
	// operator, function, cast or type created there could be the best match for one
	// of our expressions, and would then run with a worker's rights.
	SearchPath = "pg_catalog, " + Schema + ", pg_temp"
)

// Exposure is a way in which an untrusted login could replace or add one of
// Countersign's objects. Members of the role countersign_owner and superusers
// are trusted.
type Exposure struct {
	// Schema is the exposed schema, and Grantee the role that may create in it,
	// or that owns it or an object of it.
	Schema, Grantee string
	// Problem describes it in words, and Fix has the statement that ends it.
	Problem, Fix string
}

// ExposedError is the error of a database with exposures.
type ExposedError struct{ Exposures []Exposure }

// Error describes all of them.
func (e *ExposedError) Error() string {
	lines := make([]string, len(e.Exposures))
	for i, x := range e.Exposures {
		lines[i] = x.Problem + "; " + x.Fix
	}
	return "schemas of Countersign are exposed:\n" + strings.Join(lines, "\n")
}

// exposures returns a row for each exposed schema, object and dependency.
// pg_database_owner stands for the database's owner. Members of the role
// countersign_owner are left out, since they may do everything.
const exposures = `
WITH trusted AS (
    SELECT r.oid
    FROM pg_roles r
    LEFT JOIN pg_roles o ON o.rolname = 'countersign_owner'
    -- Before the first migration of the server there is no such role.
    WHERE r.rolsuper OR CASE WHEN o.oid IS NULL THEN r.rolname = current_user ELSE pg_has_role(r.oid, o.oid, 'MEMBER') END
), schemas AS (
    SELECT n.oid, n.nspname, n.nspacl,
        CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END AS owner
    FROM pg_namespace n
    CROSS JOIN pg_database d
    WHERE n.nspname = ANY ($1::name[]) AND d.datname = current_database()
), objects AS (
    SELECT relnamespace AS schema, relowner AS owner, format('%I', relname) AS object, 'TABLE' AS kind FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
    -- The names of all the trusted ones would take a tenth of a second.
    UNION ALL SELECT pronamespace, proowner, oid::regprocedure::text, 'ROUTINE' FROM pg_proc WHERE proowner NOT IN (SELECT t.oid FROM trusted t)
    UNION ALL SELECT oprnamespace, oprowner, oid::regoperator::text, 'OPERATOR' FROM pg_operator WHERE oprowner NOT IN (SELECT t.oid FROM trusted t)
    UNION ALL SELECT typnamespace, typowner, format('%I', typname), 'TYPE' FROM pg_type
), callable AS (
    SELECT 'pg_proc'::regclass AS class, oid, pronamespace AS schema, proowner AS owner, oid::regprocedure::text AS object FROM pg_proc
    UNION ALL SELECT 'pg_operator'::regclass, oid, oprnamespace, oprowner, oid::regoperator::text FROM pg_operator
), found AS (
    SELECT s.nspname AS schema, s.owner AS grantee, 1 AS place,
        format('schema %I belongs to %s', s.nspname, s.owner::regrole) AS problem,
        format('if it is not Countersign''s, ALTER SCHEMA %I RENAME TO another name; else ALTER SCHEMA %1$I OWNER TO countersign_owner;', s.nspname) AS fix
    FROM schemas s
    UNION ALL
    SELECT s.nspname, a.grantee, 2,
        format('%s may create in schema %I', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, s.nspname),
        format('REVOKE CREATE ON SCHEMA %I FROM %s;', s.nspname, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
    FROM schemas s
    CROSS JOIN LATERAL aclexplode(s.nspacl) a
    WHERE a.privilege_type = 'CREATE' AND a.grantee <> s.owner AND a.grantee <> 'pg_database_owner'::regrole
    UNION ALL
    SELECT s.nspname, o.owner, 3,
        format('%s %s in schema %I belongs to %s', lower(o.kind), o.object, s.nspname, o.owner::regrole),
        format('find out who created it, then DROP %s %s;', o.kind, o.object)
    FROM schemas s
    JOIN objects o ON o.schema = s.oid
    WHERE s.owner IN (SELECT t.oid FROM trusted t)
    UNION ALL
    -- A view, a constraint or a function that was created while a schema of others
    -- was searched calls the same operator ever since.
    SELECT n.nspname, c.owner, 4,
        format('%s calls %s of %s', pg_describe_object(d.classid, d.objid, d.objsubid), c.object, c.owner::regrole),
        format('find out who created %s, and restore a backup from before it', c.object)
    FROM callable c
    JOIN pg_depend d ON d.refclassid = c.class AND d.refobjid = c.oid AND d.deptype = 'n'
    JOIN pg_namespace n ON n.oid = c.schema
    CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) i
    WHERE c.owner NOT IN (SELECT t.oid FROM trusted t) AND i.identity ~ ('\m(' || array_to_string($1::name[], '|') || ')\.')
)
SELECT f.schema::text, CASE f.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(f.grantee) END::text, f.problem, f.fix
FROM found f
WHERE f.grantee NOT IN (SELECT t.oid FROM trusted t)
ORDER BY f.schema, f.place, f.problem
LIMIT 100`

// Exposures returns the exposures of Countersign's schemas.
func Exposures(ctx context.Context, tx pgx.Tx) ([]Exposure, error) {
	rows, _ := tx.Query(ctx, exposures, []string{Schema, functionSchema, RiverSchema}) // CollectRows returns the error
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Exposure])
	if err != nil {
		return nil, fmt.Errorf("read who may create in schemas: %w", err)
	}
	return all, nil
}

func checkExposure(ctx context.Context, tx pgx.Tx) error {
	found, err := Exposures(ctx, tx)
	if err != nil || len(found) == 0 {
		return err
	}
	return &ExposedError{found}
}

// checkPath returns a fault.Busy if statements outside transactions, River's
// among them, search other schemas than ours. It is so behind a pooler, where no
// session is ours to set, unless the login has a search_path of its own.
func checkPath(ctx context.Context, db Begins) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// No operator and no unqualified function: the path is not trusted yet.
	var schemas []string
	if err := tx.QueryRow(ctx, "SELECT pg_catalog.current_schemas(false)::pg_catalog.text[]").Scan(&schemas); err != nil {
		return err
	}
	for _, schema := range schemas {
		if schema != "pg_catalog" && schema != Schema {
			return fault.New(fault.Busy, "the search_path of the database login has schema %s, in which others may create; "+
				"run `ALTER ROLE … SET search_path = %s` for the login of DATABASE_URL, and reconnect the pooler", schema, SearchPath)
		}
	}
	return nil
}
