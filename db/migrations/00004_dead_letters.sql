-- +goose Up

-- How to find out whether a call of the tool happened: a tool of the same
-- source that reads, its arguments, and where its answer says so.
ALTER TABLE tools ADD COLUMN verify jsonb;
COMMENT ON COLUMN tools.verify IS 'How a read of the same source tells whether a call of this tool happened; NULL when nothing does.';

ALTER TABLE dead_letters
    ADD COLUMN verify_tries integer NOT NULL DEFAULT 0,
    ADD COLUMN verify_after timestamptz,
    ADD COLUMN verify_said  text;
COMMENT ON COLUMN dead_letters.verify_after IS 'When a verifying read is due; NULL when none is. Who takes one on moves it ahead, so that nobody else does, and so that it is due again if they vanish.';
COMMENT ON COLUMN dead_letters.verify_tries IS 'Verifying reads that were begun. What one found counts only while the number is still that of its begin.';
COMMENT ON COLUMN dead_letters.verify_said IS 'What the last verifying read came to, in one word; NULL when there was none.';
CREATE INDEX dead_letters_verify_after ON dead_letters (verify_after) WHERE verify_after IS NOT NULL;

-- A letter of unknown outcome is looked into by itself if its tool says how.
-- A trigger, so that no statement that writes letters can forget it.
-- +goose StatementBegin
CREATE FUNCTION plan_verifying() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.verify_tries := 0;
    NEW.verify_said := NULL;
    NEW.verify_after := NULL;
    IF NEW.reason = 'unknown' AND EXISTS (
        SELECT 1
        FROM actions a
        JOIN tools t ON t.tenant_id = a.tenant_id AND t.source_id = a.source_id AND t.name = a.tool_name
        WHERE a.tenant_id = NEW.tenant_id AND a.action_id = NEW.action_id AND t.verify IS NOT NULL
    ) THEN
        NEW.verify_after := now() + interval '10 seconds';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION plan_verifying() OWNER TO countersign_owner;
CREATE TRIGGER dead_letters_plan_verifying BEFORE INSERT OR UPDATE OF reason ON dead_letters
    FOR EACH ROW EXECUTE FUNCTION plan_verifying();

-- Where the replays of one selection, paced over time, have got to. A run
-- that is stopped and taken up again goes on behind what it has scheduled.
CREATE TABLE replay_schedules (
    tenant_id uuid        NOT NULL,
    selection text        NOT NULL,
    next_at   timestamptz NOT NULL,
    CONSTRAINT replay_schedules_pkey PRIMARY KEY (tenant_id, selection)
);
COMMENT ON COLUMN replay_schedules.selection IS 'The filter in one line, or ids.';
COMMENT ON COLUMN replay_schedules.next_at IS 'When the next envelope of the selection may become due. A past time means nothing, and the row may go.';

ALTER TABLE replay_schedules OWNER TO countersign_owner;
ALTER TABLE replay_schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE replay_schedules FORCE ROW LEVEL SECURITY;
CREATE POLICY replay_schedules_api ON replay_schedules TO countersign_api
    USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY replay_schedules_worker ON replay_schedules TO countersign_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON replay_schedules TO countersign_api;
