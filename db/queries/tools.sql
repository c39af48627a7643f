-- name: ToolAccept :execrows
-- Accepts the definition that the operator saw, and only that one.
UPDATE tools SET accepted_digest = digest
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name AND digest = @digest;

-- name: ToolConfigure :execrows
UPDATE tools
SET risk_override = sqlc.narg(risk_override), effect_override = sqlc.narg(effect_override), max_attempts = sqlc.narg(max_attempts)
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name;

-- name: ToolDeleteMissing :execrows
DELETE FROM tools WHERE tenant_id = @tenant_id AND source_id = @source_id AND NOT (name = ANY (@names::text[]));

-- name: ToolList :many
SELECT t.source_id, t.name, t.title, t.description, t.input_schema, t.output_schema, t.hints, t.effect, t.digest, t.accepted_digest,
    t.risk_override, t.effect_override, t.max_attempts, t.recipients, t.scopes, t.retry_base_seconds, t.retry_cap_seconds, t.retry_jitter
FROM tools t
WHERE t.tenant_id = @tenant_id
ORDER BY t.source_id, t.name;

-- name: ToolRuleList :many
-- What operators say about tools, beside their overrides of risk and effect.
SELECT t.source_id, t.name, t.recipients, t.scopes, t.max_attempts, t.retry_base_seconds, t.retry_cap_seconds, t.retry_jitter
FROM tools t
WHERE t.tenant_id = @tenant_id
ORDER BY t.source_id, t.name;

-- name: ToolRulePut :execrows
UPDATE tools
SET recipients = sqlc.narg(recipients)::text[], scopes = @scopes::text[], max_attempts = sqlc.narg(max_attempts),
    retry_base_seconds = sqlc.narg(retry_base_seconds), retry_cap_seconds = sqlc.narg(retry_cap_seconds), retry_jitter = sqlc.narg(retry_jitter)
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name;

-- name: ToolUpsertMany :exec
INSERT INTO tools (tenant_id, source_id, name, title, description, input_schema, output_schema, hints, effect, digest, accepted_digest)
SELECT @tenant_id, @source_id, unnest(@names::text[]), unnest(@titles::text[]), unnest(@descriptions::text[]), unnest(@input_schemas::jsonb[]),
    unnest(@output_schemas::jsonb[]), unnest(@hints::jsonb[]), nullif(unnest(@effects::text[]), ''), unnest(@digests::bytea[]), unnest(@digests::bytea[])
ON CONFLICT ON CONSTRAINT tools_pkey DO UPDATE
SET title = excluded.title, description = excluded.description, input_schema = excluded.input_schema, output_schema = excluded.output_schema,
    hints = excluded.hints, effect = excluded.effect, digest = excluded.digest, listed_at = now();

-- name: ToolVerifyList :many
-- The tools that have a verifying read.
SELECT t.source_id, t.name, t.verify
FROM tools t
WHERE t.tenant_id = @tenant_id AND t.verify IS NOT NULL
ORDER BY t.source_id, t.name;

-- name: ToolVerifyPut :execrows
UPDATE tools SET verify = sqlc.narg(verify)
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name;

-- name: PolicyModeDelete :execrows
DELETE FROM policy_modes WHERE tenant_id = @tenant_id AND automation_id = @automation_id AND key = @key;

-- name: PolicyModeList :many
SELECT p.automation_id, p.key, p.mode FROM policy_modes p WHERE p.tenant_id = @tenant_id ORDER BY p.automation_id, p.key;

-- name: PolicyModeUpsert :exec
INSERT INTO policy_modes (tenant_id, automation_id, key, mode, updated_by)
VALUES (@tenant_id, @automation_id, @key, @mode, @updated_by)
ON CONFLICT ON CONSTRAINT policy_modes_pkey DO UPDATE
SET mode = excluded.mode, updated_at = now(), updated_by = excluded.updated_by;
