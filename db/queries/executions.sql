-- name: ExecutionBatchEnds :many
-- The first and the last step of a batch below an id, by the index on workflows
-- alone.
(
    SELECT a.action_id
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.workflow_id = @workflow_id AND a.action_id < @before
    ORDER BY a.action_id
    LIMIT 1
)
UNION ALL
(
    SELECT a.action_id
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.workflow_id = @workflow_id AND a.action_id < @before
    ORDER BY a.action_id DESC
    LIMIT 1
);

-- name: ExecutionContentDigest :one
SELECT a.content_digest FROM actions a WHERE a.tenant_id = @tenant_id AND a.action_id = @action_id;

-- name: ExecutionFloor :one
-- The id at or above which there are n actions, from a start on; no row if there
-- are fewer. It uses only the primary key.
SELECT a.action_id
FROM actions a
WHERE a.tenant_id = @tenant_id AND a.action_id < @before
ORDER BY a.action_id DESC
OFFSET @look::bigint
LIMIT 1;

-- name: ExecutionList :many
-- Actions between two ids, newest first, as in the execution log. The caller
-- bounds the ids, so that a selective filter scans a bounded number of rows.
SELECT
    v.action_id, v.external_id, v.employee_id, v.session_id, v.automation_id, v.proposed_by, coalesce(t.name, '')::text AS proposer, t.operator_id AS proposer_operator,
    v.source_id, v.tool_name, v.args, v.risk, v.effect, v.mode, v.mode_source, v.trace,
    v.approval_state, v.decided_at, v.decided_by, v.decision_note, v.created_at,
    v.status, v.attempt, v.code, v.message, v.result, v.provider_id, v.started_at, v.finished_at, v.origin, v.workflow_id,
    v.proposed_args, coalesce(v.edited_by, '')::text AS edited_by
FROM envelopes v
LEFT JOIN proposers t ON t.proposer_id = v.proposed_by AND t.tenant_id = v.tenant_id
WHERE v.tenant_id = @tenant_id
    AND v.action_id < @before
    AND v.action_id >= @floor
    AND (sqlc.narg(tool)::text IS NULL OR v.tool_name = sqlc.narg(tool))
    AND (sqlc.narg(source)::text IS NULL OR v.source_id = sqlc.narg(source))
    AND (sqlc.narg(session)::text IS NULL OR v.session_id = sqlc.narg(session))
    AND (sqlc.narg(employee)::uuid IS NULL OR v.employee_id = sqlc.narg(employee))
    AND (sqlc.narg(proposer)::uuid IS NULL OR v.proposed_by = sqlc.narg(proposer))
    AND (sqlc.narg(proposer_name)::text IS NULL OR t.name = sqlc.narg(proposer_name))
    AND (sqlc.narg(automation)::text IS NULL OR v.automation_id = sqlc.narg(automation))
    AND (sqlc.narg(workflow)::uuid IS NULL OR v.workflow_id = sqlc.narg(workflow))
    AND (sqlc.narg(via)::text IS NULL OR v.origin ->> 'via' = sqlc.narg(via))
    AND (sqlc.narg(ip)::text IS NULL OR v.origin ->> 'ip' = sqlc.narg(ip))
    AND (sqlc.narg(since)::timestamptz IS NULL OR v.created_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR v.created_at < sqlc.narg(until))
    AND (sqlc.narg(code)::text IS NULL OR v.code = sqlc.narg(code))
    AND (cardinality(@statuses::text[]) = 0 OR v.status = ANY (@statuses::text[]))
    AND (cardinality(@approvals::text[]) = 0 OR v.approval_state = ANY (@approvals::text[]))
ORDER BY v.action_id DESC
LIMIT @most::bigint;

-- name: ExecutionOfBatch :many
-- The steps of a batch, in the order of their proposal.
SELECT a.action_id, coalesce(a.external_id, '')::text AS external_id, a.source_id, a.tool_name, a.created_at
FROM actions a
WHERE a.tenant_id = @tenant_id AND a.workflow_id = @workflow_id
ORDER BY a.action_id
LIMIT @most::bigint;

-- name: ExecutionPerExternalID :many
-- Actions by id, and actions with external ids between two bounds.
SELECT a.action_id, coalesce(a.external_id, '')::text AS external_id, a.source_id, a.tool_name, a.created_at
FROM actions a
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[])
UNION
SELECT g.action_id, g.external_id, g.source_id, g.tool_name, g.created_at
FROM (SELECT unnest(@firsts::text[]) AS first_name, unnest(@lasts::text[]) AS last_name) k
CROSS JOIN LATERAL (
    SELECT a.action_id, coalesce(a.external_id, '')::text AS external_id, a.source_id, a.tool_name, a.created_at
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.external_id BETWEEN k.first_name AND k.last_name
    ORDER BY a.external_id DESC
    LIMIT @most::bigint
) g;
