-- name: BatchStepInsertMany :exec
INSERT INTO batch_steps (tenant_id, batch_id, step, state, source_id, tool_name, inputs, terms, reversal)
SELECT @tenant_id, @batch_id, unnest(@steps::integer[]), @state::text, unnest(@source_ids::text[]), unnest(@tool_names::text[]),
    unnest(@inputs::jsonb[]), unnest(@terms::jsonb[]), nullif(unnest(@reversals::jsonb[]), 'null'::jsonb);

-- name: BatchStepList :many
SELECT s.batch_id, s.step, s.state, s.source_id, s.tool_name, s.inputs, s.terms, s.action_id, s.reversal, s.reversal_action, s.reversal_tries,
    s.code, s.message
FROM batch_steps s
WHERE s.tenant_id = @tenant_id AND s.batch_id = ANY (@batch_ids::uuid[])
ORDER BY s.batch_id, s.step;

-- name: BatchStepSave :exec
UPDATE batch_steps s
SET state = @state,
    action_id = sqlc.narg(action_id)::uuid,
    reversal = sqlc.narg(reversal)::jsonb,
    reversal_action = sqlc.narg(reversal_action)::uuid,
    reversal_tries = @reversal_tries,
    code = nullif(@code::text, ''),
    message = nullif(@message::text, '')
WHERE s.tenant_id = @tenant_id AND s.batch_id = @batch_id AND s.step = @step;
