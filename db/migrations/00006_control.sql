-- +goose Up

-- What the control plane keeps with an envelope. All of it is NULL for most.
ALTER TABLE actions
    ADD COLUMN approval_seal bytea,
    ADD COLUMN origin jsonb,
    ADD COLUMN batch_id uuid;
COMMENT ON COLUMN actions.approval_seal IS 'What a person approved: digests of the arguments, the tool''s definition and the decision of policy. Set with granted, and compared just before the envelope is sent.';
COMMENT ON COLUMN actions.origin IS 'The request that it came with: ip, user_agent, via (api, mcp, ui, webhook, batch, system), request_id. NULL where nobody noted it.';
COMMENT ON COLUMN actions.batch_id IS 'The batch that it is a step of.';

-- An owner is an administrator who may also make owners and administrators; a
-- viewer reads.
ALTER TABLE api_tokens
    DROP CONSTRAINT api_tokens_role_check,
    ADD CONSTRAINT api_tokens_role_check CHECK (role IN ('owner', 'admin', 'operator', 'viewer', 'agent'));

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
    a.origin, a.batch_id
FROM actions a
JOIN decisions d ON d.tenant_id = a.tenant_id AND d.decision_id = a.decision_id
LEFT JOIN outbox o ON o.tenant_id = a.tenant_id AND o.action_id = a.action_id
LEFT JOIN buckets b ON b.bucket_id = o.bucket_id
LEFT JOIN LATERAL (
    SELECT e.status, e.attempt, e.code, e.message, e.result, e.provider_id, e.started_at, e.finished_at
    FROM tool_executions e
    WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id
    ORDER BY e.finished_at DESC, e.attempt DESC
    LIMIT 1
) l ON true;
