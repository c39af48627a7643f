-- Runs before the migrations, in one transaction, whatever the version of the
-- database: the roles, the schema of Countersign's tables, and the move of the
-- objects that versions before 12 created in schema public. It changes nothing
-- where that is done.

-- Roles belong to the PostgreSQL cluster, so a migration of another database may
-- have created them, or may be creating them concurrently. 00001 describes them.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['countersign_owner', 'countersign_api', 'countersign_worker', 'countersign_triage'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
        IF NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
        END IF;
    END LOOP;
END
$$;

-- Only the owner may create in it: an operator, a function or a type that another
-- login created there could be chosen by a statement of the API or of a worker.
CREATE SCHEMA IF NOT EXISTS countersign_data AUTHORIZATION countersign_owner;
GRANT USAGE ON SCHEMA countersign_data TO countersign_api, countersign_worker, countersign_triage;

-- ALTER … SET SCHEMA locks each table in ACCESS EXCLUSIVE mode until the commit:
-- processes of an older version find no tables afterwards, and have to end first.
DO $$
DECLARE
    moved record;
BEGIN
    FOR moved IN
        SELECT c.oid::regclass AS name, c.relkind AS kind
        FROM pg_class c
        WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'p', 'v')
            AND (c.relowner = 'countersign_owner'::regrole
                OR c.relname = 'goose_db_version' AND pg_has_role(c.relowner, 'countersign_owner', 'MEMBER'))
            -- Without our tables, goose_db_version is an application's own.
            AND EXISTS (
                SELECT FROM pg_class a
                WHERE a.relnamespace = c.relnamespace AND a.relname = 'actions' AND a.relowner = 'countersign_owner'::regrole)
            AND to_regclass('countersign_data.goose_db_version') IS NULL
        ORDER BY c.oid
    LOOP
        EXECUTE format('ALTER %s %s SET SCHEMA countersign_data', CASE moved.kind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, moved.name);
    END LOOP;
    FOR moved IN
        SELECT f.oid::regprocedure AS name
        FROM pg_proc f
        WHERE f.pronamespace = to_regnamespace('public') AND f.proowner = 'countersign_owner'::regrole
        ORDER BY f.oid
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET SCHEMA countersign_data', moved.name);
    END LOOP;
    FOR moved IN
        SELECT f.oid::regprocedure AS name
        FROM pg_proc f
        WHERE f.proowner = 'countersign_owner'::regrole AND 'search_path=public, pg_temp' = ANY (f.proconfig)
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, countersign_data, pg_temp', moved.name);
    END LOOP;
END
$$;
