-- +goose Up
-- A worker that remembers a database knows it again under the id of before its first worker
-- or its last recovery: commits are missing there, and nothing may be sent.
ALTER TABLE fence ADD COLUMN earlier_id uuid;
UPDATE fence SET earlier_id = recovered_from;
COMMENT ON COLUMN fence.earlier_id IS 'The database_id before the present one, of before the first worker or the last recovery; NULL for none.';

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION recover_fence(until timestamptz) RETURNS uuid
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    UPDATE workers w SET ended = true WHERE only_tenant();
    UPDATE fence f
    SET database_id = gen_random_uuid(), recovered_from = f.database_id, earlier_id = f.database_id, epoch = f.epoch + 1, state = 'open',
        reason = '', detail = '', system_id = s.system_id, database_oid = s.database_oid, timeline = s.timeline, started = s.started,
        changed_at = now(), ask_from = f.changed_at, ask_until = until, recovery_by = '', recovery_person = '', recovery_at = NULL
    FROM server_identity() s
    WHERE f.state = 'held' AND only_tenant()
    RETURNING f.database_id
$$;
-- +goose StatementEnd
