-- +goose Up

-- An action's bucket is looked up by its key. A plan made while the table was small read
-- all buckets of the tenant, with their dead versions, for as long as it was kept.
CREATE OR REPLACE VIEW envelopes WITH (security_invoker = true) AS
SELECT
    a.tenant_id, a.action_id, a.external_id, a.employee_id, a.session_id, a.automation_id, a.proposed_by,
    a.source_id, a.tool_name, a.composio_app, a.args, a.risk, a.effect, d.mode, d.mode_source, d.trace,
    a.config_version, a.tool_digest, a.approval_state, a.approval_expires_at, a.decided_at, a.decided_by, a.decision_note,
    a.rate_bucket, a.not_before, a.must_run_before, a.traceparent, a.created_at,
    s.status,
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
        WHEN o.action_id IS NOT NULL AND (SELECT f.state FROM fence f) = 'held' THEN 'held'
        WHEN o.action_id IS NOT NULL THEN 'turn'
    END AS waits_for,
    CASE WHEN o.lease_until > now() THEN NULL ELSE greatest(o.next_attempt_at, b.opens_at) END AS waits_until,
    a.origin, a.workflow_id,
    p.proposed_args, p.needed AS approvals_needed, p.given AS approvals_given, p.edited_by, p.edits, p.round AS approval_round,
    a.decision_id,
    action_phase(a.approval_state, s.status, l.code) AS phase
FROM actions a
JOIN decisions d ON d.tenant_id = a.tenant_id AND d.decision_id = a.decision_id
LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id
LEFT JOIN outbox o ON o.tenant_id = a.tenant_id AND o.action_id = a.action_id
LEFT JOIN LATERAL (
    SELECT k.name, k.opens_at, k.closed_until, k.closed_by
    FROM buckets k
    WHERE k.bucket_id = o.bucket_id
    LIMIT 1
) b ON true
LEFT JOIN LATERAL (
    SELECT e.status, e.attempt, e.code, e.message, e.result, e.provider_id, e.started_at, e.finished_at
    FROM tool_executions e
    WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id
    ORDER BY e.finished_at DESC, e.attempt DESC
    LIMIT 1
) l ON true
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN o.action_id IS NOT NULL THEN
                CASE WHEN o.status = 'sending' OR (a.effect <> 'once' AND o.lease_until > now()) THEN 'sending' ELSE 'pending' END
            -- These come before the last attempt: an action that waits for approval,
            -- or was denied, may have ended earlier and been replayed, and its last
            -- attempt is then from before the replay.
            WHEN a.approval_state = 'required' THEN 'pending'
            WHEN a.approval_state IN ('denied', 'expired') THEN 'skipped'
            WHEN l.status IS NOT NULL THEN l.status
            ELSE 'pending'
        END AS status
) s;
