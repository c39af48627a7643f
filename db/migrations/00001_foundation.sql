-- +goose Up

-- Roles belong to the PostgreSQL cluster, not to this database, so a migration
-- of another database in the cluster may have created them already or may be
-- creating them concurrently. No role can log in: a deployment grants them to
-- its own login users, and every transaction switches to one with SET LOCAL
-- ROLE.
--
--   countersign_owner   owns the tables and the SECURITY DEFINER functions
--   countersign_api     sees the rows of one tenant, the one set for the transaction
--   countersign_worker  sees the rows of all tenants
--   countersign_triage  has the tables of triage and proposes, and nothing else
-- +goose StatementBegin
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['countersign_owner', 'countersign_api', 'countersign_worker', 'countersign_triage'] LOOP
        -- Roles that are there already need no right to create roles.
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
    -- The owner needs CREATE because ensure_partitions() adds tables at run time.
    EXECUTE format('GRANT CREATE, USAGE ON SCHEMA %I TO countersign_owner', current_schema());
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO countersign_api, countersign_worker, countersign_triage', current_schema());
END
$$;
-- +goose StatementEnd

-- current_tenant returns the tenant that is set for the transaction. It is NULL
-- if none is set, so that the row-level security policies match no row.
CREATE FUNCTION current_tenant() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('countersign.tenant_id', true), '')::uuid;
ALTER FUNCTION current_tenant() OWNER TO countersign_owner;

-- PostgreSQL lets everyone execute a new function. Ours are for those who call
-- them; a trigger function is for nobody, since a trigger that exists needs no
-- right of whoever fires it, and a new one could be set on a temporary table.
REVOKE EXECUTE ON FUNCTION current_tenant() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION current_tenant() TO countersign_api, countersign_worker;
