-- name: WorkflowStepInsertMany :exec
INSERT INTO workflow_steps (tenant_id, workflow_id, step, state, source_id, tool_name, inputs, options, reversal)
SELECT @tenant_id, @workflow_id, unnest(@steps::integer[]), @state::text, unnest(@source_ids::text[]), unnest(@tool_names::text[]),
    unnest(@inputs::jsonb[]), unnest(@options::jsonb[]), nullif(unnest(@reversals::jsonb[]), 'null'::jsonb);

-- name: WorkflowStepList :many
SELECT s.workflow_id, s.step, s.state, s.source_id, s.tool_name, s.inputs, s.options, s.action_id, s.reversal, s.reversal_action_id, s.reversal_attempts,
    s.code, s.message
FROM workflow_steps s
WHERE s.tenant_id = @tenant_id AND s.workflow_id = ANY (@workflow_ids::uuid[])
ORDER BY s.workflow_id, s.step;

-- name: WorkflowStepSave :exec
UPDATE workflow_steps s
SET state = @state,
    action_id = sqlc.narg(action_id)::uuid,
    reversal = sqlc.narg(reversal)::jsonb,
    reversal_action_id = sqlc.narg(reversal_action_id)::uuid,
    reversal_attempts = @reversal_attempts,
    code = nullif(@code::text, ''),
    message = nullif(@message::text, '')
WHERE s.tenant_id = @tenant_id AND s.workflow_id = @workflow_id AND s.step = @step;
