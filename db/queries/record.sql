-- name: RecordActions :many
-- Columns of actions that the audit log covers, by id.
SELECT a.tenant_id, a.action_id, a.external_id, a.content_digest, a.employee_id, a.session_id, a.automation_id, a.proposed_by, a.source_id,
    a.tool_name, a.composio_app, a.args, a.risk, a.effect, a.decision_id, a.config_version, a.tool_digest, a.approval_state,
    a.approval_expires_at, a.decided_at, a.decided_by, a.decision_note, a.bucket_id, a.rate_bucket, a.not_before, a.must_run_before,
    a.max_attempts, a.traceparent, a.created_at, a.urgent, a.approval_digest, a.origin, a.workflow_id, a.person,
    p.proposed_args, p.edits, p.edited_by, p.editors
FROM (SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id) w
JOIN actions a ON a.tenant_id = w.tenant_id AND a.action_id = w.action_id
LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id;

-- name: RecordActionsAfter :many
-- Columns of the next actions of a tenant that the audit log covers, in the
-- order of ids.
SELECT a.tenant_id, a.action_id, a.external_id, a.content_digest, a.employee_id, a.session_id, a.automation_id, a.proposed_by, a.source_id,
    a.tool_name, a.composio_app, a.args, a.risk, a.effect, a.decision_id, a.config_version, a.tool_digest, a.approval_state,
    a.approval_expires_at, a.decided_at, a.decided_by, a.decision_note, a.bucket_id, a.rate_bucket, a.not_before, a.must_run_before,
    a.max_attempts, a.traceparent, a.created_at, a.urgent, a.approval_digest, a.origin, a.workflow_id, a.person,
    p.proposed_args, p.edits, p.edited_by, p.editors
FROM actions a
LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id
WHERE a.tenant_id = @tenant_id AND a.action_id > @after
ORDER BY a.action_id
LIMIT @most::bigint;

-- name: RecordAttempts :many
-- Columns of attempts of actions that the audit log covers, since a time, oldest
-- first. OFFSET 0 has each action looked up separately: with small tables, a join compares
-- each attempt since then with each action.
SELECT e.tenant_id, e.action_id, e.attempt, e.status, e.code, e.message, e.result, e.provider_id, e.worker, e.started_at, e.finished_at
FROM (SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id) w
CROSS JOIN LATERAL (
    SELECT t.tenant_id, t.action_id, t.attempt, t.status, t.code, t.message, t.result, t.provider_id, t.worker, t.started_at, t.finished_at
    FROM tool_executions t
    WHERE t.tenant_id = w.tenant_id AND t.action_id = w.action_id AND t.finished_at >= @since::timestamptz
    OFFSET 0
) e
ORDER BY e.action_id, e.finished_at, e.attempt;

-- name: RecordDecisions :many
-- The next decisions of a tenant, in the order of ids.
SELECT d.decision_id, d.mode, d.mode_source, d.trace
FROM decisions d
WHERE d.tenant_id = @tenant_id AND d.decision_id > @after
ORDER BY d.decision_id
LIMIT @most::bigint;

-- name: RecordNow :one
-- The start of the transaction.
SELECT now()::timestamptz;

-- name: RecordOrphans :many
-- Attempts, approvals and votes of actions that do not exist, and an action without
-- an id, which RecordActionsAfter does not return.
(
    SELECT 'actions'::text AS tab, a.action_id
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.action_id = '00000000-0000-0000-0000-000000000000'
)
UNION ALL
(
    SELECT 'tool_executions'::text AS tab, e.action_id
    FROM tool_executions e
    WHERE e.tenant_id = @tenant_id AND NOT EXISTS (SELECT 1 FROM actions a WHERE a.tenant_id = e.tenant_id AND a.action_id = e.action_id)
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'approvals'::text AS tab, p.action_id
    FROM approvals p
    WHERE p.tenant_id = @tenant_id AND NOT EXISTS (SELECT 1 FROM actions a WHERE a.tenant_id = p.tenant_id AND a.action_id = p.action_id)
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'votes'::text AS tab, v.action_id
    FROM votes v
    WHERE v.tenant_id = @tenant_id AND NOT EXISTS (SELECT 1 FROM actions a WHERE a.tenant_id = v.tenant_id AND a.action_id = v.action_id)
    LIMIT @most::bigint
);

-- name: RecordVotes :many
-- Columns of votes on actions that the audit log covers, since a time, oldest
-- first.
SELECT v.tenant_id, v.action_id, v.round, v.person, v.token, v.actor, v.decision, v.note, v.approval_digest, v.at
FROM (SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id) w
JOIN votes v ON v.tenant_id = w.tenant_id AND v.action_id = w.action_id
WHERE v.at >= @since::timestamptz
ORDER BY v.action_id, v.at, v.person;

-- name: RecordCount :one
SELECT count(1)::bigint FROM actions a WHERE a.tenant_id = @tenant_id;
