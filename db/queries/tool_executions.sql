-- name: ToolExecutionList :many
-- The attempts of one envelope, oldest first.
SELECT e.attempt, e.status, e.code, e.message, e.result, e.provider_id, e.worker, e.started_at, e.finished_at
FROM tool_executions e
WHERE e.tenant_id = @tenant_id AND e.action_id = @action_id
ORDER BY e.finished_at, e.attempt;

-- name: ToolExecutionNote :exec
-- Stores the outcome that a person recorded for an envelope of unknown outcome.
INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, worker, finished_at)
VALUES (@tenant_id, @action_id, @attempt, @status, @code::text, nullif(@message::text, ''), @worker::text, clock_timestamp());

-- name: PartitionEnsure :one
SELECT ensure_partitions(@months_ahead::integer);
