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

-- name: TriageActs :many
-- What triage did to the messages of some of its actions, newest first, with the
-- reversal that takes it back. named are the given actions; an edited
-- one is an act of the person who edited it, and free ones are taken back in any
-- order: they changed labels that only triage sets. A draft changes no message.
WITH named AS (
    SELECT v.tenant_id, v.action_id, p.message_id
    FROM envelopes v
    JOIN triage_proposals p ON p.tenant_id = v.tenant_id AND p.external_id = v.external_id AND p.proposal_id = v.action_id
    WHERE v.tenant_id = @tenant_id AND v.action_id = ANY (@action_ids::uuid[])
)
SELECT v.action_id, p.message_id, a.name AS account, coalesce(a.operator_id, '00000000-0000-0000-0000-000000000000')::uuid AS operator_id,
    v.phase, (v.action_id = ANY (@action_ids::uuid[]))::boolean AS named, (v.proposed_args IS NOT NULL)::boolean AS edited,
    (v.phase = 'completed' AND v.status = 'sent' AND coalesce(r.phase, '') <> 'completed' AND p.action <> 'draft')::boolean AS holds,
    (coalesce(r.phase, '') IN ('pending', 'approved', 'executing'))::boolean AS reversing,
    (p.action = 'draft' OR coalesce(a.proposals ->> 'label_prefix', '') <> ''
        AND NOT EXISTS (SELECT FROM jsonb_array_elements(p.parts) t WHERE t ->> 'action' <> 'label'))::boolean AS free
FROM triage_proposals p
JOIN triage_accounts a ON a.tenant_id = p.tenant_id AND a.account_id = p.account_id
JOIN envelopes v ON v.tenant_id = p.tenant_id AND v.action_id = p.proposal_id AND v.external_id = p.external_id
LEFT JOIN LATERAL (
    SELECT w.phase FROM envelopes w
    WHERE w.tenant_id = @tenant_id AND w.external_id BETWEEN 'revert:' || v.action_id || ':000' AND 'revert:' || v.action_id || ':999'
    ORDER BY w.external_id DESC
    LIMIT 1
) r ON true
WHERE p.tenant_id = @tenant_id AND p.message_id IN (SELECT n.message_id FROM named n)
ORDER BY v.finished_at DESC NULLS FIRST, v.action_id DESC;

-- name: TriageActsSelect :many
-- A page of what triage did, or may still do, in the accounts that name an
-- operator, newest first: by when it was done or, until then, proposed. What was
-- proposed too late, or neither proposed nor done since, is left out before the
-- costly view is read.
SELECT v.action_id, w.at::timestamptz AS at
FROM triage_accounts a
JOIN triage_proposals p ON p.tenant_id = a.tenant_id AND p.account_id = a.account_id AND (sqlc.narg(run_id)::uuid IS NULL OR p.run_id = sqlc.narg(run_id))
JOIN envelopes v ON v.tenant_id = p.tenant_id AND v.action_id = p.proposal_id AND v.external_id = p.external_id
CROSS JOIN LATERAL (SELECT CASE WHEN v.phase IN ('completed', 'unknown') THEN coalesce(v.finished_at, v.created_at) ELSE v.created_at END AS at) w
WHERE a.tenant_id = @tenant_id AND a.operator_id = @operator_id AND (sqlc.narg(account)::text IS NULL OR a.name = sqlc.narg(account))
    AND (sqlc.narg(session_id)::text IS NULL OR v.session_id = sqlc.narg(session_id))
    AND (sqlc.narg(since)::timestamptz IS NULL OR p.proposed_at >= sqlc.narg(since) OR EXISTS (
        SELECT FROM tool_executions e WHERE e.tenant_id = p.tenant_id AND e.action_id = p.proposal_id AND e.finished_at >= sqlc.narg(since)
    ))
    AND (sqlc.narg(until)::timestamptz IS NULL OR p.proposed_at < sqlc.narg(until))
    AND (sqlc.narg(since)::timestamptz IS NULL OR w.at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR w.at < sqlc.narg(until))
    AND (sqlc.narg(before_at)::timestamptz IS NULL OR (w.at, v.action_id) < (sqlc.narg(before_at)::timestamptz, sqlc.narg(before_id)::uuid))
    AND v.phase IN ('pending', 'approved', 'executing', 'completed', 'unknown')
ORDER BY w.at DESC, v.action_id DESC
LIMIT @most::bigint;
