-- +goose Up

-- Which envelopes need more than one person, and how long they are waited
-- for. Of the rules that cover an envelope the largest number holds; each time
-- comes from the most particular rule that sets it.
CREATE TABLE reviews (
    tenant_id        uuid        NOT NULL CONSTRAINT reviews_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    key              text        NOT NULL,
    risk             text        NOT NULL DEFAULT 'low' CONSTRAINT reviews_risk_check CHECK (risk IN ('low', 'medium', 'high')),
    approvals_needed integer     NOT NULL DEFAULT 1 CONSTRAINT reviews_approvals_needed_check CHECK (approvals_needed BETWEEN 1 AND 5),
    wait_seconds     integer     CONSTRAINT reviews_wait_seconds_check CHECK (wait_seconds BETWEEN 1 AND 2592000),
    warn_seconds     integer     CONSTRAINT reviews_warn_seconds_check CHECK (warn_seconds BETWEEN 0 AND 2592000),
    escalate_seconds integer     CONSTRAINT reviews_escalate_seconds_check CHECK (escalate_seconds BETWEEN 0 AND 2592000),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    updated_by       text        NOT NULL DEFAULT '',
    CONSTRAINT reviews_pkey PRIMARY KEY (tenant_id, key, risk)
);
COMMENT ON COLUMN reviews.risk IS 'The lowest risk of an envelope that the rule covers; low covers all.';
COMMENT ON COLUMN reviews.wait_seconds IS 'How long a decision is waited for; NULL leaves it to others.';
COMMENT ON COLUMN reviews.warn_seconds IS 'How long before the end of the wait a warning is given; 0 is never.';
COMMENT ON COLUMN reviews.escalate_seconds IS 'After how much of the wait more people are told; 0 is never.';
CREATE TRIGGER reviews_bump_insert AFTER INSERT ON reviews REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER reviews_bump_update AFTER UPDATE ON reviews REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER reviews_bump_delete AFTER DELETE ON reviews REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- How far people have got with an envelope that needs them. There is a row for
-- those alone; it is written, like everything about a decision, under the lock
-- of the envelope's row in actions.
CREATE TABLE approvals (
    tenant_id     uuid        NOT NULL,
    action_id     uuid        NOT NULL,
    round         integer     NOT NULL DEFAULT 1,
    needed        integer     NOT NULL CONSTRAINT approvals_needed_check CHECK (needed BETWEEN 1 AND 5),
    given         integer     NOT NULL DEFAULT 0,
    seal          bytea,
    asked         boolean     NOT NULL DEFAULT false,
    warn_at       timestamptz,
    warned_at     timestamptz,
    escalate_at   timestamptz,
    escalated_at  timestamptz,
    proposed_args jsonb,
    edits         jsonb       NOT NULL DEFAULT '[]',
    edited_by     text,
    CONSTRAINT approvals_pkey PRIMARY KEY (tenant_id, action_id),
    CONSTRAINT approvals_action_id_fkey FOREIGN KEY (tenant_id, action_id) REFERENCES actions (tenant_id, action_id) ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX approvals_warn_at ON approvals (warn_at) WHERE warn_at IS NOT NULL;
CREATE INDEX approvals_escalate_at ON approvals (escalate_at) WHERE escalate_at IS NOT NULL;
COMMENT ON COLUMN approvals.round IS 'Goes up when what is voted on changes; votes of earlier rounds are void.';
COMMENT ON COLUMN approvals.seal IS 'What the votes of this round are for; NULL while there is none.';
COMMENT ON COLUMN approvals.asked IS 'The agent asked for a person, whatever policy says.';
COMMENT ON COLUMN approvals.warn_at IS 'When the warning is due; NULL when none is.';
COMMENT ON COLUMN approvals.escalate_at IS 'When the escalation is due; NULL when none is.';
COMMENT ON COLUMN approvals.proposed_args IS 'What the agent proposed, if somebody edited it; actions.args is what will be sent.';
COMMENT ON COLUMN approvals.edits IS 'Every edit, oldest first: by, at, and the JSON Pointers of what it changed.';

CREATE TABLE votes (
    tenant_id uuid        NOT NULL,
    action_id uuid        NOT NULL,
    round     integer     NOT NULL,
    person    uuid        NOT NULL,
    token     uuid        NOT NULL,
    name      text        NOT NULL,
    decision  text        NOT NULL CONSTRAINT votes_decision_check CHECK (decision IN ('grant', 'deny')),
    note      text,
    seal      bytea,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT votes_pkey PRIMARY KEY (tenant_id, action_id, round, person, decision),
    CONSTRAINT votes_action_id_fkey FOREIGN KEY (tenant_id, action_id) REFERENCES approvals (tenant_id, action_id) ON DELETE CASCADE
);
COMMENT ON TABLE votes IS 'What each person said. Whoever agreed may still deny, which ends it.';
COMMENT ON COLUMN votes.person IS 'The operator, or the token where nobody said who holds it.';

-- The inbox goes through what waits, oldest first.
CREATE INDEX actions_inbox ON actions (tenant_id, action_id) WHERE approval_state = 'required';

-- What waits at this moment.
INSERT INTO approvals (tenant_id, action_id, needed)
SELECT a.tenant_id, a.action_id, 1 FROM actions a WHERE a.approval_state = 'required';

CREATE OR REPLACE VIEW envelopes WITH (security_invoker = true) AS
SELECT
    a.tenant_id, a.action_id, a.external_id, a.employee_id, a.session_id, a.automation_id, a.proposed_by,
    a.source_id, a.tool_name, a.composio_app, a.args, a.risk, a.effect, d.mode, d.mode_source, d.trace,
    a.config_version, a.tool_digest, a.approval_state, a.approval_expires_at, a.decided_at, a.decided_by, a.decision_note,
    a.rate_bucket, a.not_before, a.must_run_before, a.traceparent, a.created_at,
    CASE
        WHEN o.action_id IS NOT NULL THEN
            CASE WHEN o.status = 'sending' OR (a.effect <> 'once' AND o.lease_until > now()) THEN 'sending' ELSE 'pending' END
        -- What waits for a decision, or was refused, may have ended before
        -- and been replayed: the ledger's last row is of then.
        WHEN a.approval_state = 'required' THEN 'pending'
        WHEN a.approval_state IN ('denied', 'expired') THEN 'skipped'
        WHEN l.status IS NOT NULL THEN l.status
        ELSE 'pending'
    END AS status,
    coalesce(o.attempt, l.attempt, 0) AS attempt,
    o.next_attempt_at,
    l.code, l.message, l.result, l.provider_id, l.started_at, l.finished_at,
    a.urgent,
    CASE
        WHEN a.approval_state = 'required' THEN 'approval'
        WHEN o.status = 'sending' OR o.lease_until > now() THEN NULL
        WHEN o.waits_for IS NOT NULL AND o.next_attempt_at > now() THEN o.waits_for
        WHEN o.action_id IS NOT NULL AND bucket_paused(o.tenant_id, b.name) THEN 'paused'
        WHEN b.opens_at > greatest(now(), o.next_attempt_at) THEN coalesce(CASE WHEN b.closed_until = b.opens_at THEN b.closed_by END, 'bucket')
        WHEN o.next_attempt_at > now() THEN 'not_before'
        WHEN o.action_id IS NOT NULL THEN 'turn'
    END AS waits_for,
    CASE WHEN o.lease_until > now() THEN NULL ELSE greatest(o.next_attempt_at, b.opens_at) END AS waits_until,
    a.origin, a.batch_id,
    p.proposed_args, p.needed AS approvals_needed, p.given AS approvals_given, p.edited_by, p.edits, p.round AS approval_round,
    a.decision_id
FROM actions a
JOIN decisions d ON d.tenant_id = a.tenant_id AND d.decision_id = a.decision_id
LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id
LEFT JOIN outbox o ON o.tenant_id = a.tenant_id AND o.action_id = a.action_id
LEFT JOIN buckets b ON b.bucket_id = o.bucket_id
LEFT JOIN LATERAL (
    SELECT e.status, e.attempt, e.code, e.message, e.result, e.provider_id, e.started_at, e.finished_at
    FROM tool_executions e
    WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id
    ORDER BY e.finished_at DESC, e.attempt DESC
    LIMIT 1
) l ON true;

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['reviews', 'approvals', 'votes'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
GRANT SELECT, INSERT, UPDATE, DELETE ON reviews TO countersign_api;
GRANT SELECT ON reviews TO countersign_worker;
GRANT SELECT, INSERT, UPDATE ON approvals TO countersign_api, countersign_worker;
GRANT SELECT, INSERT ON votes TO countersign_api;
GRANT SELECT ON votes TO countersign_worker;
-- An envelope that needs a person after all is kept with the decision that
-- says so.
GRANT INSERT ON decisions TO countersign_worker;
