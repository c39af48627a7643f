-- name: DeadLetterDiscard :many
-- Takes letters out for good; the ledger keeps what happened.
DELETE FROM dead_letters d
WHERE d.tenant_id = @tenant_id AND d.action_id = ANY (@action_ids::uuid[])
RETURNING d.action_id;

-- name: DeadLetterList :many
SELECT d.action_id, d.reason, d.attempt, d.code, d.message, d.created_at, a.source_id, a.tool_name, a.external_id
FROM dead_letters d
JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
WHERE d.tenant_id = @tenant_id
    AND d.action_id < @before
    AND (sqlc.narg(reason)::text IS NULL OR d.reason = sqlc.narg(reason))
    AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
ORDER BY d.action_id DESC
LIMIT @most::bigint;

-- name: DeadLetterPerID :many
SELECT d.action_id, d.reason, d.attempt, d.code, d.message, d.created_at, a.source_id, a.tool_name, a.external_id
FROM dead_letters d
JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
WHERE d.tenant_id = @tenant_id AND d.action_id = ANY (@action_ids::uuid[]);

-- name: DeadLetterTake :many
-- Takes letters out to be replayed. Of two replays at once one gets the row.
DELETE FROM dead_letters d
WHERE d.tenant_id = @tenant_id AND d.action_id = ANY (@action_ids::uuid[])
RETURNING d.action_id, d.attempt, d.reason;
