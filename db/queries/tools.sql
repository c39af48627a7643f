-- name: ToolAccept :execrows
-- Accepts the definition that the operator saw, and no other.
UPDATE tools
SET accepted_digest = digest,
    accepted = jsonb_build_object('title', title, 'description', description, 'input_schema', input_schema, 'output_schema', output_schema, 'hints', hints)
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name AND digest = @digest AND gone_at IS NULL;

-- name: ToolAcceptedAgain :exec
-- If the definition accepted under an older scheme of digests is the listed one,
-- it is accepted under the current scheme.
UPDATE tools t
SET accepted_digest = t.digest,
    accepted = jsonb_build_object('title', t.title, 'description', t.description, 'input_schema', t.input_schema, 'output_schema', t.output_schema, 'hints', t.hints)
FROM (SELECT unnest(@names::text[]) AS name, unnest(@older::bytea[]) AS older) l
WHERE t.tenant_id = @tenant_id AND t.source_id = @source_id AND t.name = l.name AND t.accepted_digest = l.older;

-- name: ToolConfigure :execrows
UPDATE tools
SET risk_override = sqlc.narg(risk_override), effect_override = sqlc.narg(effect_override), max_attempts = sqlc.narg(max_attempts)
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name;

-- name: ToolDescribe :execrows
UPDATE tools
SET module = sqlc.narg(module), entity = sqlc.narg(entity), action = sqlc.narg(action), side_effects = sqlc.narg(side_effects)::text[],
    reversal = sqlc.narg(reversal), headline = sqlc.narg(headline), headline_digest = CASE WHEN sqlc.narg(headline)::text IS NOT NULL THEN digest END
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name;

-- name: ToolList :many
-- accepted is returned only where it may differ from the listed definition.
SELECT t.source_id, t.name, t.title, t.description, coalesce(t.ordered_schema, t.input_schema::json)::json AS input_schema, t.output_schema, t.hints, t.effect, t.digest, t.accepted_digest,
    (CASE WHEN t.accepted_digest <> t.digest THEN t.accepted END)::jsonb AS accepted,
    t.risk_override, t.effect_override, coalesce(t.retry_max_attempts, t.max_attempts, 0)::integer AS max_attempts,
    t.max_attempts AS max_attempts_override, t.recipients, t.scopes,
    t.retry_base_seconds, t.retry_cap_seconds, t.retry_jitter, t.timeout_seconds, t.module, t.entity, t.action, t.side_effects, t.reversal,
    t.default_reversal, coalesce(CASE WHEN t.headline_digest = t.digest THEN t.headline END, '')::text AS headline
FROM tools t
WHERE t.tenant_id = @tenant_id AND t.gone_at IS NULL
ORDER BY t.source_id, t.name;

-- name: ToolListed :many
-- The stored tools of a source, before a listing.
SELECT t.name, t.digest, (t.gone_at IS NOT NULL)::boolean AS gone
FROM tools t
WHERE t.tenant_id = @tenant_id AND t.source_id = @source_id;

-- name: ToolMissing :exec
-- Marks the tools that a source no longer lists.
UPDATE tools SET gone_at = now()
WHERE tenant_id = @tenant_id AND source_id = @source_id AND gone_at IS NULL AND NOT (name = ANY (@names::text[]));

-- name: ToolPrune :exec
-- Deletes tools that were last listed long ago and were never configured by an
-- operator, so that a source cannot fill the table with names.
DELETE FROM tools t
WHERE t.tenant_id = @tenant_id AND t.source_id = @source_id AND t.gone_at < now() - make_interval(days => @days::integer)
    AND t.risk_override IS NULL AND t.effect_override IS NULL AND t.max_attempts IS NULL AND t.retry_max_attempts IS NULL
    AND t.recipients IS NULL AND t.scopes = '{}' AND t.timeout_seconds IS NULL AND t.reconcile IS NULL AND t.module IS NULL AND t.side_effects IS NULL AND t.reversal IS NULL
    AND t.headline IS NULL;

-- name: ToolRuled :many
-- The settings of tools by operators, in addition to the overrides of risk and effect.
SELECT t.source_id, t.name, t.recipients, t.scopes, t.retry_max_attempts AS max_attempts, t.retry_base_seconds, t.retry_cap_seconds, t.retry_jitter, t.timeout_seconds
FROM tools t
WHERE t.tenant_id = @tenant_id
    AND (t.recipients IS NOT NULL OR t.scopes <> '{}' OR t.retry_max_attempts IS NOT NULL OR t.retry_base_seconds IS NOT NULL OR t.retry_cap_seconds IS NOT NULL
        OR t.retry_jitter IS NOT NULL OR t.timeout_seconds IS NOT NULL)
ORDER BY t.source_id, t.name;

-- name: ToolNames :many
-- The tools of a tenant, also those that their sources no longer list.
SELECT t.source_id, t.name
FROM tools t
WHERE t.tenant_id = @tenant_id;

-- name: ToolRulePut :exec
UPDATE tools
SET recipients = sqlc.narg(recipients)::text[], scopes = @scopes::text[], retry_max_attempts = sqlc.narg(max_attempts),
    retry_base_seconds = sqlc.narg(retry_base_seconds), retry_cap_seconds = sqlc.narg(retry_cap_seconds), retry_jitter = sqlc.narg(retry_jitter),
    timeout_seconds = sqlc.narg(timeout_seconds)
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name;

-- name: ToolUpsertMany :exec
-- A new tool is accepted, unless its source puts new tools into quarantine. The
-- accepted definition of an existing tool is kept.
INSERT INTO tools (tenant_id, source_id, name, title, description, input_schema, ordered_schema, output_schema, hints, effect, default_reversal, digest, accepted_digest, accepted)
SELECT s.tenant_id, s.source_id, l.name, l.title, l.description, l.input_schema::jsonb, l.input_schema, l.output_schema, l.hints, nullif(l.effect, ''), nullif(l.default_reversal, 'null'), l.digest,
    CASE WHEN s.quarantine AND s.known_at IS NOT NULL THEN NULL ELSE l.digest END,
    CASE WHEN s.quarantine AND s.known_at IS NOT NULL THEN NULL ELSE
        jsonb_build_object('title', l.title, 'description', l.description, 'input_schema', l.input_schema, 'output_schema', l.output_schema, 'hints', l.hints) END
FROM sources s
CROSS JOIN (
    SELECT unnest(@names::text[]) AS name, unnest(@titles::text[]) AS title, unnest(@descriptions::text[]) AS description,
        unnest(@input_schemas::json[]) AS input_schema, unnest(@output_schemas::jsonb[]) AS output_schema, unnest(@hints::jsonb[]) AS hints,
        unnest(@effects::text[]) AS effect, unnest(@default_reversals::jsonb[]) AS default_reversal, unnest(@digests::bytea[]) AS digest
) l
WHERE s.tenant_id = @tenant_id AND s.source_id = @source_id
ON CONFLICT ON CONSTRAINT tools_pkey DO UPDATE
SET title = excluded.title, description = excluded.description, input_schema = excluded.input_schema, ordered_schema = excluded.ordered_schema, output_schema = excluded.output_schema,
    hints = excluded.hints, effect = excluded.effect, default_reversal = excluded.default_reversal,
    digest = excluded.digest, listed_at = now(), gone_at = NULL;

-- name: ToolReconcileList :many
-- The tools that have a reconcile rule, or one of them.
SELECT t.source_id, t.name, t.reconcile
FROM tools t
WHERE t.tenant_id = @tenant_id AND t.reconcile IS NOT NULL
    AND (@tool_name::text = '' OR t.source_id = @source_id::text AND t.name = @tool_name::text)
ORDER BY t.source_id, t.name;

-- name: ToolReconcilePut :execrows
UPDATE tools SET reconcile = sqlc.narg(reconcile)
WHERE tenant_id = @tenant_id AND source_id = @source_id AND name = @name;
