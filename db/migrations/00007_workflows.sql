-- +goose Up

-- Workflows: several calls in order, of which later ones may use the results of
-- earlier ones. Each step becomes an action when its turn comes; these tables
-- hold only the order and the state of the steps.
CREATE TABLE batches (
    tenant_id      uuid        NOT NULL CONSTRAINT batches_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    batch_id       uuid        NOT NULL,
    external_id    text        NOT NULL,
    content_digest bytea       NOT NULL,
    atomic         boolean     NOT NULL,
    state          text        NOT NULL CONSTRAINT batches_state_check CHECK (state IN (
        'running', 'reverting', 'stuck', 'compensation_failed', 'completed', 'failed', 'cancelled', 'reverted', 'resolved')),
    code           text,
    message        text,
    stopped_at     integer,
    proposed_by    uuid,
    proposer       text        NOT NULL,
    session_id     text,
    session_bound  boolean     NOT NULL,
    employee_id    uuid,
    automation_id  text,
    tools          text[],
    origin         jsonb,
    cancelled_by   text,
    resolved_by    text,
    note           text,
    waits_for      uuid,
    look_at        timestamptz NOT NULL DEFAULT now(),
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    ended_at       timestamptz,
    CONSTRAINT batches_pkey PRIMARY KEY (tenant_id, batch_id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX batches_external_id_key ON batches (tenant_id, external_id);
CREATE INDEX batches_live ON batches (look_at) WHERE state IN ('running', 'reverting', 'stuck', 'compensation_failed');
CREATE INDEX batches_ended_at ON batches (tenant_id, ended_at) WHERE ended_at IS NOT NULL;
COMMENT ON COLUMN batches.code IS 'Code of the reason why it stopped; NULL while it continues, and when it completed.';
COMMENT ON COLUMN batches.stopped_at IS 'Number of the step at which it stopped.';
COMMENT ON COLUMN batches.session_bound IS 'Whether the session is that of the token, so that the session limits apply to the steps too.';
COMMENT ON COLUMN batches.tools IS 'Patterns of the tools to which the token was restricted; NULL means all tools.';
COMMENT ON COLUMN batches.waits_for IS 'Action whose end lets it continue; NULL if it can continue at once.';
COMMENT ON COLUMN batches.look_at IS 'When a worker checks it next. Moved into the future when a limit delays it.';

CREATE TABLE batch_steps (
    tenant_id       uuid    NOT NULL,
    batch_id        uuid    NOT NULL,
    step            integer NOT NULL,
    state           text    NOT NULL CONSTRAINT batch_steps_state_check CHECK (state IN (
        'planned', 'running', 'done', 'failed', 'skipped', 'kept', 'reverting', 'reverted', 'unreverted', 'resolved')),
    source_id       text    NOT NULL,
    tool_name       text    NOT NULL,
    inputs          jsonb   NOT NULL,
    terms           jsonb   NOT NULL,
    action_id       uuid,
    reversal        jsonb,
    reversal_action uuid,
    reversal_tries  integer NOT NULL DEFAULT 0,
    code            text,
    message         text,
    CONSTRAINT batch_steps_pkey PRIMARY KEY (tenant_id, batch_id, step),
    CONSTRAINT batch_steps_batch_id_fkey FOREIGN KEY (tenant_id, batch_id) REFERENCES batches (tenant_id, batch_id) ON DELETE CASCADE
) WITH (fillfactor = 70);
COMMENT ON COLUMN batch_steps.inputs IS 'Inputs as submitted. References are resolved in the arguments of the action, not here.';
COMMENT ON COLUMN batch_steps.terms IS 'Options of the proposal: risk, approval, constraints.';
COMMENT ON COLUMN batch_steps.reversal IS 'Tool that undoes the step and the template of its arguments, as declared when the workflow was accepted; NULL if there is none.';
COMMENT ON COLUMN batch_steps.reversal_action IS 'Action that undoes the step; the last one, if the reversal was retried.';

-- Row-level security: the same two policies for every table.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['batches', 'batch_steps'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE ON batches, batch_steps TO countersign_api;

GRANT SELECT, UPDATE, DELETE ON batches TO countersign_worker;
GRANT SELECT, UPDATE ON batch_steps TO countersign_worker;
