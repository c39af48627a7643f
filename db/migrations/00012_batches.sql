-- +goose Up

-- Several calls in order, of which later ones may use what earlier ones
-- answered. Each step is an envelope like any other once its turn has come;
-- these rows say only whose turn it is.
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
COMMENT ON COLUMN batches.code IS 'Why it goes no further, in one word; NULL while it goes on, and when it completed.';
COMMENT ON COLUMN batches.stopped_at IS 'The step at which it went no further.';
COMMENT ON COLUMN batches.session_bound IS 'The session was that of the token, so that its limits hold for the steps too.';
COMMENT ON COLUMN batches.tools IS 'The patterns of the tools that the token was for; NULL is all.';
COMMENT ON COLUMN batches.waits_for IS 'The envelope whose end moves it on; NULL when it can move on at once.';
COMMENT ON COLUMN batches.look_at IS 'Nobody looks at it before. Pushed ahead where a limit is in the way.';

CREATE TABLE batch_steps (
    tenant_id        uuid    NOT NULL,
    batch_id         uuid    NOT NULL,
    step             integer NOT NULL,
    state            text    NOT NULL CONSTRAINT batch_steps_state_check CHECK (state IN (
        'planned', 'running', 'done', 'failed', 'skipped', 'kept', 'reverting', 'reverted', 'unreverted', 'resolved')),
    source_id        text    NOT NULL,
    tool_name        text    NOT NULL,
    inputs           jsonb   NOT NULL,
    terms            jsonb   NOT NULL,
    action_id        uuid,
    reversal         jsonb,
    reversal_action  uuid,
    reversal_tries   integer NOT NULL DEFAULT 0,
    code             text,
    message          text,
    CONSTRAINT batch_steps_pkey PRIMARY KEY (tenant_id, batch_id, step),
    CONSTRAINT batch_steps_batch_id_fkey FOREIGN KEY (tenant_id, batch_id) REFERENCES batches (tenant_id, batch_id) ON DELETE CASCADE
) WITH (fillfactor = 70);
COMMENT ON COLUMN batch_steps.inputs IS 'As they were given: references are not replaced here, but in the envelope.';
COMMENT ON COLUMN batch_steps.terms IS 'What else the proposal says: risk, approval, constraints.';
COMMENT ON COLUMN batch_steps.reversal IS 'The tool that undoes it and the template of its arguments, as declared when the batch was accepted; NULL when nothing does.';
COMMENT ON COLUMN batch_steps.reversal_action IS 'The envelope that undoes it; the last one, if it was tried again.';

-- The fleet proposes the steps, and so may write what intake writes. It may
-- not read tokens, and asks only whether one was taken away, or the person
-- behind it disabled. People come with the next migration, which is why the
-- body is not looked at before it runs.
-- +goose StatementBegin
CREATE FUNCTION token_revoked(tenant uuid, token uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1
        FROM api_tokens t
        WHERE t.tenant_id = tenant AND t.token_id = token
            AND (t.revoked_at IS NOT NULL OR EXISTS (
                SELECT 1 FROM operators o WHERE o.tenant_id = tenant AND o.operator_id = t.operator_id AND o.disabled_at IS NOT NULL)))
        OR EXISTS (SELECT 1 FROM operators o WHERE o.tenant_id = tenant AND o.operator_id = token AND o.disabled_at IS NOT NULL);
END
$$;
-- +goose StatementEnd
ALTER FUNCTION token_revoked(uuid, uuid) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION token_revoked(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION token_revoked(uuid, uuid) TO countersign_worker;

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
GRANT SELECT, UPDATE ON batches, batch_steps TO countersign_worker;
GRANT DELETE ON batches TO countersign_worker;
GRANT INSERT ON actions, decisions TO countersign_worker;
GRANT INSERT, UPDATE ON session_usage TO countersign_worker;
