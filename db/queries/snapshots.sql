-- name: SnapshotInsert :exec
INSERT INTO snapshots (tenant_id, action_id, attempt, stage, tool_name, code, result)
VALUES (@tenant_id, @action_id, @attempt, @stage, @tool_name, nullif(@code::text, ''), @result);

-- name: SnapshotList :many
-- The snapshots around one action's calls, oldest first.
SELECT s.attempt, s.stage, s.at, s.tool_name, coalesce(s.code, '')::text AS code, s.result
FROM snapshots s
WHERE s.tenant_id = @tenant_id AND s.action_id = @action_id
ORDER BY s.at, s.stage DESC
LIMIT @most::bigint;
