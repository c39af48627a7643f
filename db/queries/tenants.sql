-- name: TenantAudienceAllow :execrows
-- Allows a tenant an issuer and audience, or revokes that unless allowed.
UPDATE tenants t
SET allowed_audiences = array_remove(t.allowed_audiences, @pair::text) || CASE WHEN @allowed::boolean THEN ARRAY[@pair::text] ELSE '{}' END
WHERE t.tenant_id = @tenant_id;

-- name: TenantAudienceAllowed :one
SELECT (@pair::text = ANY (t.allowed_audiences))::boolean FROM tenants t WHERE t.tenant_id = @tenant_id;

-- name: TenantByName :one
SELECT t.tenant_id FROM tenants t WHERE t.name = @name;

-- name: TenantDanger :one
SELECT t.danger_mode FROM tenants t WHERE t.tenant_id = @tenant_id;

-- name: TenantDangerPut :execrows
UPDATE tenants SET danger_mode = @danger_mode WHERE tenant_id = @tenant_id;

-- name: TenantInsert :exec
INSERT INTO tenants (tenant_id, name) VALUES (@tenant_id, @name);

-- name: TenantList :many
SELECT t.tenant_id FROM tenants t ORDER BY t.tenant_id;

-- name: TenantLock :exec
-- Serializes changes of a tenant's settings, so that the changes that each of
-- them reports are correct. Nothing on the hot path waits for this lock.
SELECT t.tenant_id FROM tenants t WHERE t.tenant_id = @tenant_id FOR NO KEY UPDATE;

-- name: TenantName :one
SELECT t.name FROM tenants t WHERE t.tenant_id = @tenant_id;

-- name: TenantSettings :one
SELECT t.timezone, t.phone_region, t.plus_addressing, t.session_pending_max, t.session_minute_max,
    EXISTS (SELECT FROM do_not_contact d WHERE d.tenant_id = t.tenant_id)::boolean AS has_do_not_contact
FROM tenants t
WHERE t.tenant_id = @tenant_id;

-- name: TenantSettingsPut :execrows
UPDATE tenants
SET timezone = @timezone,
    phone_region = @phone_region,
    plus_addressing = @plus_addressing,
    session_pending_max = @session_pending_max,
    session_minute_max = @session_minute_max
WHERE tenant_id = @tenant_id;

-- name: TenantVersions :many
-- breaker_open reports whether any circuit breaker of the tenant is not closed.
SELECT t.tenant_id, t.config_version, now()::timestamptz AS now,
    EXISTS (SELECT 1 FROM breakers b WHERE b.tenant_id = t.tenant_id AND b.state <> 'closed')::boolean AS breaker_open
FROM tenants t
WHERE t.tenant_id = ANY (@tenant_ids::uuid[]);
