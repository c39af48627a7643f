-- +goose Up

-- Workflows: several calls in order, of which later ones may use the results of
-- earlier ones. Each step becomes an action when its turn comes; these tables
-- hold only the order and the state of the steps.
CREATE TABLE workflows (
    tenant_id      uuid        NOT NULL CONSTRAINT workflows_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    workflow_id       uuid        NOT NULL,
    external_id    text        NOT NULL,
    content_digest bytea       NOT NULL,
    atomic         boolean     NOT NULL,
    state          text        NOT NULL CONSTRAINT workflows_state_check CHECK (state IN (
        'running', 'reverting', 'stuck', 'compensation_failed', 'completed', 'failed', 'cancelled', 'reverted', 'resolved')),
    code           text,
    message        text,
    stopped_at     integer,
    proposed_by    uuid,
    person         uuid,
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
    check_at        timestamptz NOT NULL DEFAULT now(),
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    ended_at       timestamptz,
    CONSTRAINT workflows_pkey PRIMARY KEY (tenant_id, workflow_id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX workflows_external_id_key ON workflows (tenant_id, external_id);
CREATE INDEX workflows_live ON workflows (check_at) WHERE state IN ('running', 'reverting', 'stuck', 'compensation_failed');
CREATE INDEX workflows_ended_at ON workflows (tenant_id, ended_at) WHERE ended_at IS NOT NULL;
COMMENT ON COLUMN workflows.person IS 'Person who proposed it, as in actions.person.';
COMMENT ON COLUMN workflows.code IS 'Code of the reason why it stopped; NULL while it continues, and when it completed.';
COMMENT ON COLUMN workflows.stopped_at IS 'Number of the step at which it stopped.';
COMMENT ON COLUMN workflows.session_bound IS 'Whether the session is that of the token, so that the session limits apply to the steps too.';
COMMENT ON COLUMN workflows.tools IS 'Patterns of the tools to which the token was restricted; NULL means all tools.';
COMMENT ON COLUMN workflows.waits_for IS 'Action whose end lets it continue; NULL if it can continue at once.';
COMMENT ON COLUMN workflows.check_at IS 'When a worker checks it next. Moved into the future when a limit delays it.';

CREATE TABLE workflow_steps (
    tenant_id       uuid    NOT NULL,
    workflow_id        uuid    NOT NULL,
    step            integer NOT NULL,
    state           text    NOT NULL CONSTRAINT workflow_steps_state_check CHECK (state IN (
        'planned', 'running', 'done', 'failed', 'skipped', 'kept', 'reverting', 'reverted', 'revert_failed', 'resolved')),
    source_id       text    NOT NULL,
    tool_name       text    NOT NULL,
    inputs          jsonb   NOT NULL,
    options           jsonb   NOT NULL,
    action_id       uuid,
    reversal        jsonb,
    reversal_action_id uuid,
    reversal_attempts  integer NOT NULL DEFAULT 0,
    code            text,
    message         text,
    CONSTRAINT workflow_steps_pkey PRIMARY KEY (tenant_id, workflow_id, step),
    CONSTRAINT workflow_steps_workflow_id_fkey FOREIGN KEY (tenant_id, workflow_id) REFERENCES workflows (tenant_id, workflow_id) ON DELETE CASCADE
) WITH (fillfactor = 70);
COMMENT ON COLUMN workflow_steps.inputs IS 'Inputs as submitted. References are resolved in the arguments of the action, not here.';
COMMENT ON COLUMN workflow_steps.options IS 'Options of the proposal: risk, approval, constraints.';
COMMENT ON COLUMN workflow_steps.reversal IS 'Tool that reverts the step and the template of its arguments, as declared when the workflow was accepted; NULL if there is none.';
COMMENT ON COLUMN workflow_steps.reversal_action_id IS 'Action that reverts the step; the last one, if the reversal was retried.';

-- Row-level security: the same two policies for every table.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['workflows', 'workflow_steps'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE ON workflows, workflow_steps TO countersign_api;

GRANT SELECT, UPDATE, DELETE ON workflows TO countersign_worker;
GRANT SELECT, UPDATE ON workflow_steps TO countersign_worker;
