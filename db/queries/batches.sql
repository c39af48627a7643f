-- name: BatchCancel :one
-- Notes that somebody wants no more of a batch, and has it looked at now. One
-- that was cancelled before is left as it is.
UPDATE batches b
SET cancelled_by = coalesce(b.cancelled_by, @cancelled_by::text), waits_for = NULL, look_at = now(), updated_at = now()
WHERE b.tenant_id = @tenant_id AND b.batch_id = @batch_id AND b.code IS NULL AND b.state IN ('running', 'stuck')
RETURNING b.batch_id;

-- name: BatchGet :many
SELECT b.batch_id, b.external_id, b.content_digest, b.atomic, b.state, b.code, b.message, b.stopped_at, b.proposed_by, b.proposer,
    b.session_id, b.session_bound, b.employee_id, b.automation_id, b.tools, b.origin, b.cancelled_by, b.resolved_by, b.note,
    b.waits_for, b.created_at, b.updated_at, b.ended_at
FROM batches b
WHERE b.tenant_id = @tenant_id AND b.batch_id = @batch_id;

-- name: BatchHold :many
-- Takes a batch for a change that waits for its turn.
SELECT b.batch_id FROM batches b WHERE b.tenant_id = @tenant_id AND b.batch_id = @batch_id FOR UPDATE;

-- name: BatchInbox :many
-- Steps that were done and could not be taken back, oldest first, after one.
SELECT
    s.action_id::uuid AS action_id, s.batch_id, a.source_id, a.tool_name, a.args, a.risk, a.session_id, a.automation_id, a.employee_id,
    b.updated_at, s.code, s.message
FROM batches b
JOIN batch_steps s ON s.tenant_id = b.tenant_id AND s.batch_id = b.batch_id AND s.state = 'unreverted'
JOIN actions a ON a.tenant_id = s.tenant_id AND a.action_id = s.action_id
WHERE b.tenant_id = @tenant_id AND b.state = 'compensation_failed' AND s.action_id > @after::uuid
ORDER BY s.action_id
LIMIT @most::bigint;

-- name: BatchInsert :exec
INSERT INTO batches (
    tenant_id, batch_id, external_id, content_digest, atomic, state, proposed_by, proposer, session_id, session_bound, employee_id,
    automation_id, tools, origin)
VALUES (
    @tenant_id, @batch_id, @external_id, @content_digest, @atomic, @state, sqlc.narg(proposed_by), @proposer, nullif(@session_id::text, ''),
    @session_bound, sqlc.narg(employee_id), nullif(@automation_id::text, ''), sqlc.narg(tools)::text[], sqlc.narg(origin)::jsonb);

-- name: BatchKnown :many
SELECT b.batch_id, b.content_digest, b.session_id
FROM batches b
WHERE b.tenant_id = @tenant_id AND b.external_id = @external_id;

-- name: BatchList :many
-- A page, the newest first.
SELECT b.batch_id, b.external_id, b.content_digest, b.atomic, b.state, b.code, b.message, b.stopped_at, b.proposed_by, b.proposer,
    b.session_id, b.session_bound, b.employee_id, b.automation_id, b.tools, b.origin, b.cancelled_by, b.resolved_by, b.note,
    b.waits_for, b.created_at, b.updated_at, b.ended_at
FROM batches b
WHERE b.tenant_id = @tenant_id
    AND b.batch_id < @before
    AND (sqlc.narg(state)::text IS NULL OR b.state = sqlc.narg(state))
    AND (sqlc.narg(session_id)::text IS NULL OR b.session_id = sqlc.narg(session_id))
    AND (sqlc.narg(external_id)::text IS NULL OR b.external_id = sqlc.narg(external_id))
    AND (NOT @troubled::boolean OR b.state IN ('stuck', 'compensation_failed'))
ORDER BY b.batch_id DESC
LIMIT @most::bigint;

-- name: BatchLive :one
-- Whether any are under way, which for most of the time none are.
SELECT EXISTS (
    SELECT 1 FROM batches b WHERE b.state IN ('running', 'reverting', 'stuck', 'compensation_failed') AND b.look_at IS NOT NULL
)::boolean;

-- name: BatchPostpone :exec
-- Has nobody look at a batch for some time.
UPDATE batches b
SET look_at = now() + make_interval(secs => @wait_seconds::float8)
WHERE b.tenant_id = @tenant_id AND b.batch_id = @batch_id;

-- name: BatchPrune :one
-- Forgets batches that ended before what their tenants keep of the ledger.
WITH gone AS (
    DELETE FROM batches b
    WHERE (b.tenant_id, b.batch_id) IN (
        SELECT o.tenant_id, o.batch_id
        FROM batches o
        JOIN retention r ON r.tenant_id = o.tenant_id AND r.kind = 'ledger' AND r.action = 'delete'
        WHERE o.ended_at < now() - make_interval(days => r.days)
        LIMIT @most::bigint)
    RETURNING b.batch_id
)
SELECT count(1)::bigint FROM gone;

-- name: BatchReady :many
-- Batches that can move on: those that wait for nothing, and those whose
-- envelope has ended, which is when it is neither on the schedule nor before a
-- person. What is stuck, or could not be taken back, moves on when somebody
-- has resolved or replayed its envelope; there are few of those, and they are
-- asked about by the view.
SELECT b.tenant_id, b.batch_id, b.look_at
FROM batches b
LEFT JOIN actions a ON a.tenant_id = b.tenant_id AND a.action_id = b.waits_for
WHERE b.state IN ('running', 'reverting')
    AND b.look_at <= now()
    AND (a.action_id IS NULL OR a.approval_state <> 'required'
        AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.tenant_id = b.tenant_id AND o.action_id = b.waits_for))
UNION ALL
SELECT b.tenant_id, b.batch_id, b.look_at
FROM batches b
LEFT JOIN envelopes v ON v.tenant_id = b.tenant_id AND v.action_id = b.waits_for
WHERE b.state IN ('stuck', 'compensation_failed')
    AND b.look_at <= now()
    AND (b.state = 'stuck' AND coalesce(v.status, '') <> 'unknown'
        OR b.state = 'compensation_failed' AND v.status IN ('pending', 'sending', 'sent', 'conflict', 'unknown'))
ORDER BY look_at
LIMIT @most::bigint;

-- name: BatchSave :exec
UPDATE batches b
SET state = @state,
    code = nullif(@code::text, ''),
    message = nullif(@message::text, ''),
    stopped_at = sqlc.narg(stopped_at)::integer,
    resolved_by = nullif(@resolved_by::text, ''),
    note = nullif(@note::text, ''),
    waits_for = sqlc.narg(waits_for)::uuid,
    look_at = now() + make_interval(secs => @wait_seconds::float8),
    updated_at = now(),
    ended_at = CASE WHEN @ended::boolean THEN coalesce(b.ended_at, now()) END
WHERE b.tenant_id = @tenant_id AND b.batch_id = @batch_id;

-- name: BatchTake :many
-- Takes a batch to move it on. SKIP LOCKED: somebody else is at it then.
SELECT b.batch_id FROM batches b WHERE b.tenant_id = @tenant_id AND b.batch_id = @batch_id FOR UPDATE SKIP LOCKED;

-- name: TokenRevoked :one
SELECT token_revoked(@tenant_id::uuid, @token_id::uuid)::boolean;
