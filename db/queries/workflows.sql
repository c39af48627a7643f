-- name: WorkflowCancel :one
-- Records the cancellation of a workflow, and makes it due. It has no effect on
-- a workflow that was already cancelled.
UPDATE workflows w
SET cancelled_by = coalesce(w.cancelled_by, @cancelled_by::text), waits_for = NULL, check_at = now(), updated_at = now()
WHERE w.tenant_id = @tenant_id AND w.workflow_id = @workflow_id AND w.code IS NULL AND w.state IN ('running', 'stuck')
RETURNING w.workflow_id;

-- name: WorkflowGet :many
SELECT w.workflow_id, w.external_id, w.content_digest, w.atomic, w.state, w.code, w.message, w.stopped_at, w.proposed_by, w.person, w.proposer,
    w.session_id, w.session_bound, w.employee_id, w.automation_id, w.tools, w.origin, w.cancelled_by, w.resolved_by, w.note,
    w.waits_for, w.created_at, w.updated_at, w.ended_at
FROM workflows w
WHERE w.tenant_id = @tenant_id AND w.workflow_id = @workflow_id;

-- name: WorkflowHold :many
-- Locks a workflow for a change, in order.
SELECT w.workflow_id FROM workflows w WHERE w.tenant_id = @tenant_id AND w.workflow_id = @workflow_id FOR UPDATE;

-- name: WorkflowInsert :exec
INSERT INTO workflows (
    tenant_id, workflow_id, external_id, content_digest, atomic, state, proposed_by, proposer, session_id, session_bound, employee_id,
    automation_id, tools, origin, person)
VALUES (
    @tenant_id, @workflow_id, @external_id, @content_digest, @atomic, @state, sqlc.narg(proposed_by), @proposer, nullif(@session_id::text, ''),
    @session_bound, sqlc.narg(employee_id), nullif(@automation_id::text, ''), sqlc.narg(tools)::text[], sqlc.narg(origin)::jsonb, sqlc.narg(person));

-- name: WorkflowKnown :many
SELECT w.workflow_id, w.content_digest, w.session_id, w.proposed_by
FROM workflows w
WHERE w.tenant_id = @tenant_id AND w.external_id = @external_id;

-- name: WorkflowList :many
-- A page of workflows, newest first.
SELECT w.workflow_id, w.external_id, w.content_digest, w.atomic, w.state, w.code, w.message, w.stopped_at, w.proposed_by, w.person, w.proposer,
    w.session_id, w.session_bound, w.employee_id, w.automation_id, w.tools, w.origin, w.cancelled_by, w.resolved_by, w.note,
    w.waits_for, w.created_at, w.updated_at, w.ended_at
FROM workflows w
WHERE w.tenant_id = @tenant_id
    AND w.workflow_id < @before
    AND (sqlc.narg(state)::text IS NULL OR w.state = sqlc.narg(state))
    AND (sqlc.narg(session_id)::text IS NULL OR w.session_id = sqlc.narg(session_id))
    AND (sqlc.narg(external_id)::text IS NULL OR w.external_id = sqlc.narg(external_id))
    AND (NOT @needs_operator::boolean OR w.state IN ('stuck', 'compensation_failed'))
ORDER BY w.workflow_id DESC
LIMIT @most::bigint;

-- name: WorkflowLive :one
-- Reports whether any workflow is running; most of the time none is.
SELECT EXISTS (
    SELECT 1 FROM workflows w WHERE w.state IN ('running', 'reverting', 'stuck', 'compensation_failed') AND w.check_at IS NOT NULL
)::boolean;

-- name: WorkflowPostpone :exec
-- Postpones a workflow.
UPDATE workflows w
SET check_at = now() + make_interval(secs => @wait_seconds::float8)
WHERE w.tenant_id = @tenant_id AND w.workflow_id = @workflow_id;

-- name: WorkflowPrune :one
-- Deletes workflows that ended before the retention of their tenants.
WITH gone AS (
    DELETE FROM workflows w
    WHERE (w.tenant_id, w.workflow_id) IN (
        SELECT o.tenant_id, o.workflow_id
        FROM workflows o
        JOIN retention r ON r.tenant_id = o.tenant_id AND r.kind = 'actions' AND r.action = 'delete'
        WHERE o.ended_at < now() - make_interval(days => r.days)
        LIMIT @most::bigint)
    RETURNING w.workflow_id
)
SELECT count(1)::bigint FROM gone;

-- name: WorkflowReady :many
-- Workflows that can advance: those that wait for nothing, and those whose
-- envelope has ended, which is when it is neither scheduled nor waiting for a
-- person. A stuck workflow, or one with a failed reversal, advances after a
-- person has resolved or replayed its envelope; these are few, and are read
-- through the view.
SELECT w.tenant_id, w.workflow_id, w.check_at
FROM workflows w
LEFT JOIN actions a ON a.tenant_id = w.tenant_id AND a.action_id = w.waits_for
WHERE w.state IN ('running', 'reverting')
    AND w.check_at <= now()
    AND (a.action_id IS NULL OR a.approval_state <> 'required'
        AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.tenant_id = w.tenant_id AND o.action_id = w.waits_for))
UNION ALL
SELECT w.tenant_id, w.workflow_id, w.check_at
FROM workflows w
LEFT JOIN envelopes v ON v.tenant_id = w.tenant_id AND v.action_id = w.waits_for
WHERE w.state IN ('stuck', 'compensation_failed')
    AND w.check_at <= now()
    AND (w.state = 'stuck' AND coalesce(v.status, '') <> 'unknown'
        OR w.state = 'compensation_failed' AND v.status IN ('pending', 'sending', 'sent', 'conflict', 'unknown'))
ORDER BY check_at
LIMIT @most::bigint;

-- name: WorkflowSave :exec
UPDATE workflows w
SET state = @state,
    code = nullif(@code::text, ''),
    message = nullif(@message::text, ''),
    stopped_at = sqlc.narg(stopped_at)::integer,
    resolved_by = nullif(@resolved_by::text, ''),
    note = nullif(@note::text, ''),
    waits_for = sqlc.narg(waits_for)::uuid,
    check_at = now() + make_interval(secs => @wait_seconds::float8),
    updated_at = now(),
    ended_at = CASE WHEN @ended::boolean THEN coalesce(w.ended_at, now()) END
WHERE w.tenant_id = @tenant_id AND w.workflow_id = @workflow_id;

-- name: WorkflowTake :many
-- Locks a workflow to advance it. SKIP LOCKED: another worker is advancing it.
SELECT w.workflow_id FROM workflows w WHERE w.tenant_id = @tenant_id AND w.workflow_id = @workflow_id FOR UPDATE SKIP LOCKED;

-- name: TokenRevoked :one
SELECT token_revoked(@tenant_id::uuid, @token_id::uuid)::boolean;
