-- name: PreferenceCount :one
-- Counts the preferences of a tenant, except one.
SELECT count(1) FROM preferences p
WHERE p.tenant_id = @tenant_id AND (p.employee_id, p.key) IS DISTINCT FROM (@employee_id::uuid, @key::text);

-- name: PreferenceDelete :execrows
DELETE FROM preferences WHERE tenant_id = @tenant_id AND employee_id = @employee_id AND key = @key;

-- name: PreferenceList :many
-- All preferences of a tenant, or those with a pattern if it is not empty.
SELECT p.employee_id, p.key, p.version, p.updated_at, p.updated_by, p.set_by
FROM preferences p
WHERE p.tenant_id = @tenant_id
    AND (@key::text = '' OR p.key = @key::text)
ORDER BY p.employee_id, p.key;

-- name: PreferenceUpsert :exec
-- set_by keeps the person who set it first.
INSERT INTO preferences (tenant_id, employee_id, key, enabled, updated_by, set_by)
VALUES (@tenant_id, @employee_id, @key, false, @updated_by, sqlc.narg(set_by))
ON CONFLICT ON CONSTRAINT preferences_pkey DO UPDATE
SET updated_at = now(), updated_by = excluded.updated_by;
