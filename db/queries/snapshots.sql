-- name: SnapshotInsert :exec
INSERT INTO snapshots (tenant_id, action_id, attempt, stage, tool_name, said, result)
VALUES (@tenant_id, @action_id, @attempt, @stage, @tool_name, nullif(@said::text, ''), @result);

-- name: SnapshotList :many
-- What was seen around one action's calls, oldest first.
SELECT s.attempt, s.stage, s.at, s.tool_name, coalesce(s.said, '')::text AS said, s.result
FROM snapshots s
WHERE s.tenant_id = @tenant_id AND s.action_id = @action_id
ORDER BY s.at, s.stage DESC
LIMIT @most::bigint;
