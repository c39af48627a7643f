-- name: ReversalSelect :many
-- A page of the actions that may have had an effect and are not reversals,
-- newest first: completed, of unknown outcome, or not ended.
SELECT v.action_id
FROM envelopes v
WHERE v.tenant_id = @tenant_id
    AND v.action_id < @before
    AND (sqlc.narg(workflow_id)::uuid IS NULL OR v.workflow_id = sqlc.narg(workflow_id))
    AND (sqlc.narg(session_id)::text IS NULL OR v.session_id = sqlc.narg(session_id))
    AND (sqlc.narg(source)::text IS NULL OR v.source_id = sqlc.narg(source))
    AND (sqlc.narg(tool)::text IS NULL OR v.tool_name = sqlc.narg(tool))
    AND (sqlc.narg(since)::timestamptz IS NULL OR v.created_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR v.created_at < sqlc.narg(until))
    AND v.effect <> 'read'
    AND coalesce(v.external_id, '') !~ '^revert:[0-9a-f-]{36}:[0-9]{3}$'
    AND v.phase IN ('pending', 'approved', 'executing', 'completed', 'unknown')
ORDER BY v.action_id DESC
LIMIT @most::bigint;

-- name: ReversalStates :many
-- The facts for and against reverting some actions: an atomic workflow that has
-- not ended and may itself revert them, and the last reversal. The actions must
-- be locked by earlier statements. LIMIT makes the planner use one index probe
-- per name.
SELECT a.action_id,
    coalesce(w.atomic AND w.state IN ('running', 'reverting', 'stuck', 'compensation_failed'), false)::boolean AS workflow_open,
    coalesce(a.workflow_id, '00000000-0000-0000-0000-000000000000')::uuid AS workflow_id,
    coalesce(r.action_id, '00000000-0000-0000-0000-000000000000')::uuid AS reversal_id,
    coalesce(r.external_id, '')::text AS reversal_name,
    coalesce(r.phase, '')::text AS reversal_phase,
    coalesce(r.attempt, 0)::integer AS reversal_attempts,
    EXISTS (SELECT FROM dead_letters d WHERE d.tenant_id = a.tenant_id AND d.action_id = r.action_id)::boolean AS reversal_dead
FROM actions a
LEFT JOIN workflows w ON w.tenant_id = a.tenant_id AND w.workflow_id = a.workflow_id
LEFT JOIN LATERAL (
    SELECT v.action_id, v.external_id, v.phase, v.attempt
    FROM envelopes v
    WHERE v.tenant_id = @tenant_id
        AND v.external_id BETWEEN 'revert:' || a.action_id || ':000' AND 'revert:' || a.action_id || ':999'
    ORDER BY v.external_id DESC
    LIMIT 1
) r ON true
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[]);
