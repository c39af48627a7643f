-- name: ApiTokenInsert :exec
INSERT INTO api_tokens (token_id, tenant_id, name, role, token_hash, employee_id, session_id, expires_at)
VALUES (@token_id, @tenant_id, @name, @role, @token_hash, @employee_id, @session_id, @expires_at);

-- name: ApiTokenRevoke :execrows
UPDATE api_tokens SET revoked_at = now() WHERE tenant_id = @tenant_id AND token_id = @token_id AND revoked_at IS NULL;

-- name: TenantByName :one
SELECT t.tenant_id, t.config_version FROM tenants t WHERE t.name = @name;

-- name: TenantInsert :exec
INSERT INTO tenants (tenant_id, name) VALUES (@tenant_id, @name);

-- name: TenantVersions :many
SELECT t.tenant_id, t.config_version FROM tenants t WHERE t.tenant_id = ANY (@tenant_ids::uuid[]);
