-- +goose Up

-- What somebody asked about and nobody did. It is a row of the forensic log
-- like any other, and nothing is ever done because of it.
CREATE TABLE dry_runs (
    tenant_id      uuid        NOT NULL CONSTRAINT dry_runs_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    execution_id   uuid        NOT NULL,
    at             timestamptz NOT NULL DEFAULT now(),
    content_digest bytea       NOT NULL,
    employee_id    uuid,
    session_id     text,
    automation_id  text,
    proposed_by    uuid,
    source_id      text        NOT NULL,
    tool_name      text        NOT NULL,
    args           jsonb       NOT NULL,
    risk           text        NOT NULL CONSTRAINT dry_runs_risk_check CHECK (risk IN ('low', 'medium', 'high')),
    effect         text        NOT NULL CONSTRAINT dry_runs_effect_check CHECK (effect IN ('read', 'idempotent', 'keyed', 'once')),
    mode           text        NOT NULL CONSTRAINT dry_runs_mode_check CHECK (mode IN ('allow', 'require_approval', 'deny')),
    mode_source    text        NOT NULL,
    trace          jsonb       NOT NULL,
    outlook        jsonb       NOT NULL,
    origin         jsonb,
    CONSTRAINT dry_runs_pkey PRIMARY KEY (tenant_id, execution_id)
);
CREATE INDEX dry_runs_content_digest ON dry_runs (tenant_id, content_digest, execution_id);
CREATE INDEX dry_runs_at ON dry_runs USING brin (at);
COMMENT ON COLUMN dry_runs.execution_id IS 'A UUIDv7, so that it sorts among the ids of actions by time.';
COMMENT ON COLUMN dry_runs.outlook IS 'What the gates said, and when it would have gone out.';

-- How things stood right before and after a call, as a read of the same source
-- tells. attempt is that of the call.
CREATE TABLE snapshots (
    tenant_id uuid        NOT NULL,
    action_id uuid        NOT NULL,
    attempt   integer     NOT NULL,
    stage     text        NOT NULL CONSTRAINT snapshots_stage_check CHECK (stage IN ('before', 'after')),
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    tool_name text        NOT NULL,
    said      text,
    result    json,
    CONSTRAINT snapshots_pkey PRIMARY KEY (tenant_id, action_id, at, stage)
);
COMMENT ON COLUMN snapshots.said IS 'Why there is no result, in one word; NULL when there is one.';
COMMENT ON COLUMN snapshots.result IS 'Redacted, then truncated to valid JSON, before it comes here.';

-- Which read shows how things stand before and after a call of a tool.
CREATE TABLE snapshot_rules (
    tenant_id uuid  NOT NULL,
    source_id text  NOT NULL,
    tool_name text  NOT NULL,
    rule      jsonb NOT NULL,
    CONSTRAINT snapshot_rules_pkey PRIMARY KEY (tenant_id, source_id, tool_name),
    CONSTRAINT snapshot_rules_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE
);
COMMENT ON TABLE snapshot_rules IS 'Apart from tools: a rule outlives a listing in which the tool was missing.';
CREATE TRIGGER snapshot_rules_bump_insert AFTER INSERT ON snapshot_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER snapshot_rules_bump_update AFTER UPDATE ON snapshot_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER snapshot_rules_bump_delete AFTER DELETE ON snapshot_rules REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- The steps of a batch find each other. What is no step has no row in it.
CREATE INDEX actions_batch_id ON actions (tenant_id, batch_id, action_id) WHERE batch_id IS NOT NULL;

-- Snapshots go with their action, whichever statement deletes it.
-- +goose StatementBegin
CREATE FUNCTION drop_snapshots() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    DELETE FROM snapshots s USING gone g WHERE s.tenant_id = g.tenant_id AND s.action_id = g.action_id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER actions_drop_snapshots AFTER DELETE ON actions REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_snapshots();
ALTER FUNCTION drop_snapshots() OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION drop_snapshots() FROM PUBLIC;

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['dry_runs', 'snapshots', 'snapshot_rules'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
-- drop_snapshots runs as the owner, whom FORCE would otherwise blind.
CREATE POLICY snapshots_owner_drop ON snapshots TO countersign_owner USING (true);

GRANT SELECT, INSERT ON dry_runs TO countersign_api;
GRANT SELECT, DELETE ON dry_runs TO countersign_worker;
GRANT SELECT ON snapshots TO countersign_api;
GRANT SELECT, INSERT ON snapshots TO countersign_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON snapshot_rules TO countersign_api;
GRANT SELECT ON snapshot_rules TO countersign_worker;
