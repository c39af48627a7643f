-- name: GrantCount :one
-- Counts the grants of a tenant that are neither revoked nor expired.
SELECT count(1) FROM grants g
WHERE g.tenant_id = @tenant_id AND g.revoked_at IS NULL AND g.expiry_recorded_at IS NULL AND g.expires_at > now();

-- name: GrantInsert :exec
INSERT INTO grants (tenant_id, grant_id, source_id, tool_name, tool_digest, employee_id, session_id, automation_id, pins, loose, reason, from_action,
    created_by, person, expires_at)
VALUES (@tenant_id, @grant_id, @source_id, @tool_name, @tool_digest, sqlc.narg(employee_id), nullif(@session_id::text, ''),
    nullif(@automation_id::text, ''), @pins, @loose, @reason, sqlc.narg(from_action), @created_by, sqlc.narg(person), now() + make_interval(secs => @seconds::float8));

-- name: GrantExpire :execrows
-- Records which grants of any tenant have expired, which increments the tenant's
-- config_version. SKIP LOCKED: concurrent runs skip each other's rows.
UPDATE grants g SET expiry_recorded_at = now()
WHERE (g.tenant_id, g.grant_id) IN (
    SELECT e.tenant_id, e.grant_id FROM grants e
    WHERE e.revoked_at IS NULL AND e.expiry_recorded_at IS NULL AND e.expires_at <= now()
    ORDER BY e.expires_at
    LIMIT @most
    FOR UPDATE SKIP LOCKED
);

-- name: GrantList :many
-- Grants that are neither revoked nor expired, and whose author may still
-- decide; with ended all grants.
SELECT g.grant_id, g.source_id, g.tool_name, g.tool_digest, g.employee_id, g.session_id, g.automation_id, g.pins, g.loose, g.reason, g.from_action,
    g.created_at, g.created_by, g.person, g.expires_at, g.revoked_at, g.revoked_by, g.version
FROM grants g
WHERE g.tenant_id = @tenant_id
    AND (@ended::boolean OR (g.revoked_at IS NULL AND g.expiry_recorded_at IS NULL AND g.expires_at > now()
        AND grant_holds(g.tenant_id, g.person)))
    AND g.grant_id < @before
ORDER BY g.grant_id DESC
LIMIT @most;

-- name: GrantRevoke :execrows
UPDATE grants SET revoked_at = now(), revoked_by = @revoked_by
WHERE tenant_id = @tenant_id AND grant_id = @grant_id AND revoked_at IS NULL AND expires_at > now();
