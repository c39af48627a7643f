-- name: DryRunFloor :one
-- The id at or above which there are n dry runs, from a start on; no row if
-- there are fewer. It uses only the primary key.
SELECT d.execution_id
FROM dry_runs d
WHERE d.tenant_id = @tenant_id AND d.execution_id < @before
ORDER BY d.execution_id DESC
OFFSET @look::bigint
LIMIT 1;

-- name: DryRunInsert :one
INSERT INTO dry_runs (
    tenant_id, execution_id, content_digest, employee_id, session_id, automation_id, proposed_by,
    source_id, tool_name, args, risk, effect, mode, mode_source, trace, preview, origin)
VALUES (
    @tenant_id, @execution_id, @content_digest, nullif(@employee_id::uuid, '00000000-0000-0000-0000-000000000000'),
    nullif(@session_id::text, ''), nullif(@automation_id::text, ''), nullif(@proposed_by::uuid, '00000000-0000-0000-0000-000000000000'),
    @source_id, @tool_name, @args, @risk, @effect, @mode, @mode_source, @trace, @preview, sqlc.narg(origin)::jsonb)
RETURNING at;

-- name: DryRunList :many
-- Dry runs between two ids, newest first. The caller bounds the ids, so that a
-- selective filter scans a bounded number of rows.
SELECT
    d.execution_id, d.at, d.employee_id, d.session_id, d.automation_id, d.proposed_by, coalesce(t.name, '')::text AS proposer, t.operator_id AS proposer_operator,
    d.source_id, d.tool_name, d.args, d.risk, d.effect, d.mode, d.mode_source, d.trace, d.preview, d.origin
FROM dry_runs d
LEFT JOIN proposers t ON t.proposer_id = d.proposed_by AND t.tenant_id = d.tenant_id
WHERE d.tenant_id = @tenant_id
    AND d.execution_id < @before
    AND d.execution_id >= @floor
    AND (sqlc.narg(tool)::text IS NULL OR d.tool_name = sqlc.narg(tool))
    AND (sqlc.narg(source)::text IS NULL OR d.source_id = sqlc.narg(source))
    AND (sqlc.narg(session)::text IS NULL OR d.session_id = sqlc.narg(session))
    AND (sqlc.narg(employee)::uuid IS NULL OR d.employee_id = sqlc.narg(employee))
    AND (sqlc.narg(proposer)::uuid IS NULL OR d.proposed_by = sqlc.narg(proposer))
    AND (sqlc.narg(proposer_name)::text IS NULL OR t.name = sqlc.narg(proposer_name))
    AND (sqlc.narg(automation)::text IS NULL OR d.automation_id = sqlc.narg(automation))
    AND (sqlc.narg(via)::text IS NULL OR d.origin ->> 'via' = sqlc.narg(via))
    AND (sqlc.narg(ip)::text IS NULL OR d.origin ->> 'ip' = sqlc.narg(ip))
    AND (sqlc.narg(since)::timestamptz IS NULL OR d.at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR d.at < sqlc.narg(until))
ORDER BY d.execution_id DESC
LIMIT @most::bigint;

-- name: DryRunPerDigest :many
-- The dry runs of a later proposal, newest first.
SELECT d.execution_id, d.at, d.source_id, d.tool_name
FROM dry_runs d
WHERE d.tenant_id = @tenant_id AND d.content_digest = @content_digest
ORDER BY d.execution_id DESC
LIMIT @most::bigint;

-- name: DryRunPrune :execrows
-- Deletes a batch of old dry runs of all tenants.
DELETE FROM dry_runs d
WHERE (d.tenant_id, d.execution_id) IN (
    SELECT o.tenant_id, o.execution_id
    FROM dry_runs o
    WHERE o.at < now() - make_interval(days => @days::integer)
    LIMIT @most::bigint
);
