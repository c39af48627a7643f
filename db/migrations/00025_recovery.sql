-- +goose Up
-- Administrators recover a held database through the API, if it has no other tenant: a
-- recovery concerns all tenants, and those of a shared database take a database login.
ALTER TABLE fence ADD COLUMN recovery_person text NOT NULL DEFAULT '';
COMMENT ON COLUMN fence.recovery_by IS 'The actor who asked for a recovery that a second person has to confirm; empty for none.';
COMMENT ON COLUMN fence.recovery_person IS 'The person of recovery_by, or the database login.';

-- only_tenant reports whether a transaction names no tenant, or there is no other.
CREATE FUNCTION only_tenant() RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$ SELECT current_tenant() IS NULL OR NOT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id <> current_tenant()) $$;

-- +goose StatementBegin
-- recover_fence opens a held fence for the present server, as a database of its own.
-- Proposals since it was held need a person until a time. Without effect it returns NULL.
CREATE FUNCTION recover_fence(until timestamptz) RETURNS uuid
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    UPDATE workers w SET ended = true WHERE only_tenant();
    UPDATE fence f
    SET database_id = gen_random_uuid(), recovered_from = f.database_id, epoch = f.epoch + 1, state = 'open', reason = '', detail = '',
        system_id = s.system_id, database_oid = s.database_oid, timeline = s.timeline, started = s.started, changed_at = now(),
        ask_from = f.changed_at, ask_until = until, recovery_by = '', recovery_person = '', recovery_at = NULL
    FROM server_identity() s
    WHERE f.state = 'held' AND only_tenant()
    RETURNING f.database_id
$$;
-- +goose StatementEnd

ALTER FUNCTION only_tenant() OWNER TO countersign_owner;
ALTER FUNCTION recover_fence(timestamptz) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION only_tenant(), recover_fence(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION only_tenant(), recover_fence(timestamptz), server_identity(), ensure_partitions(integer) TO countersign_api;
GRANT UPDATE (recovery_by, recovery_person, recovery_at) ON fence TO countersign_api;
GRANT SELECT ON workers, worker_commits TO countersign_api;
GRANT INSERT ON dead_letters TO countersign_api;
