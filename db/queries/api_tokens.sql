-- name: AgentSessions :many
-- The sessions among the given ones that belong to an agent.
SELECT agent_sessions(@tenant_id::uuid, @session_ids::text[])::text AS session_id;

-- name: ApiTokenGet :one
SELECT t.token_id, t.name, t.role, t.token_hash, t.employee_id, t.session_id, t.operator_id, t.scopes, t.tools, t.created_at, t.issued_by,
    t.expires_at, t.revoked_at, t.last_used_at, t.rotated_at, t.previous_until, t.automations, t.employees, t.sessions, t.external_id_prefix, t.maker
FROM api_tokens t
WHERE t.tenant_id = @tenant_id AND t.token_id = @token_id;

-- name: ApiTokenInsert :exec
INSERT INTO api_tokens (token_id, tenant_id, name, role, token_hash, employee_id, session_id, expires_at, operator_id, scopes, tools, issued_by, automations, employees,
    sessions, external_id_prefix, maker, shown_to, secret_until)
VALUES (@token_id, @tenant_id, @name, @role, @token_hash, @employee_id, @session_id, @expires_at, @operator_id, @scopes, @tools, @issued_by,
    @automations, @employees, @sessions, sqlc.narg(external_id_prefix), @maker, array_remove(ARRAY[sqlc.narg(shown_to)::uuid], NULL), sqlc.narg(secret_until));

-- name: ApiTokenNarrow :execrows
UPDATE api_tokens t
SET scopes = coalesce(sqlc.narg(scopes)::text[], t.scopes), tools = coalesce(sqlc.narg(tools)::text[], t.tools),
    automations = coalesce(sqlc.narg(automations)::text[], t.automations), employees = coalesce(sqlc.narg(employees)::text[], t.employees),
    sessions = coalesce(sqlc.narg(sessions)::text[], t.sessions), external_id_prefix = coalesce(sqlc.narg(external_id_prefix), t.external_id_prefix),
    expires_at = coalesce(sqlc.narg(expires_at), t.expires_at)
WHERE t.tenant_id = @tenant_id AND t.token_id = @token_id AND t.revoked_at IS NULL;

-- name: ApiTokenRevoke :execrows
UPDATE api_tokens SET revoked_at = now() WHERE tenant_id = @tenant_id AND token_id = @token_id AND revoked_at IS NULL;

-- name: ApiTokenRotate :execrows
-- Replaces only the secret that the caller read: of two concurrent rotations,
-- the second finds another secret and changes nothing. Without an expiry that of
-- the row stays, which a concurrent change may have brought forward.
UPDATE api_tokens t
SET token_hash = @token_hash, previous_hash = @previous_hash, previous_until = @previous_until, rotated_at = now(), expires_at = coalesce(sqlc.narg(expires_at), t.expires_at), secret_until = NULL,
    shown_to = array_remove(array_append(array_remove(t.shown_to, sqlc.narg(shown_to)::uuid), sqlc.narg(shown_to)::uuid), NULL)
WHERE t.tenant_id = @tenant_id AND t.token_id = @token_id AND t.token_hash = @was AND t.revoked_at IS NULL;

-- name: ApiTokens :many
-- Newest first: token ids are UUIDv7, which increase with time.
SELECT t.token_id, t.name, t.role, t.token_hash, t.employee_id, t.session_id, t.operator_id, t.scopes, t.tools, t.created_at, t.issued_by,
    t.expires_at, t.revoked_at, t.last_used_at, t.rotated_at, t.previous_until, t.automations, t.employees, t.sessions, t.external_id_prefix, t.maker
FROM api_tokens t
WHERE t.tenant_id = @tenant_id
    AND (@everything::boolean OR t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now()))
    AND t.token_id < @before
ORDER BY t.token_id DESC
LIMIT @most;

-- name: OwnersCount :one
-- Counts the ways to act as an owner: valid tokens that are not restricted to
-- scopes, and operators who can log in.
SELECT (
    SELECT count(1) FROM api_tokens t
    LEFT JOIN operators o ON o.tenant_id = t.tenant_id AND o.operator_id = coalesce(t.operator_id, t.maker)
    WHERE t.tenant_id = @tenant_id AND t.role = 'owner' AND t.scopes IS NULL AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
        AND (o.operator_id IS NULL OR o.disabled_at IS NULL AND coalesce(o.role_set, o.role) = 'owner')
) + (
    SELECT count(1) FROM operators o
    WHERE o.tenant_id = @tenant_id AND o.disabled_at IS NULL AND coalesce(o.role_set, o.role) = 'owner'
        AND EXISTS (SELECT 1 FROM identity_providers p WHERE p.tenant_id = o.tenant_id AND p.issuer = o.issuer)
) AS owners;

-- name: SessionTaken :one
-- Reports whether a session belongs to a token of the other kind: an agent's, or
-- any other.
SELECT EXISTS (
    SELECT FROM api_tokens t
    WHERE t.tenant_id = @tenant_id AND t.session_id = @session_id::text AND (t.role = 'agent') <> @agent::boolean
)::boolean;
