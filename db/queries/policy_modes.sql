-- name: PolicyModeDelete :execrows
DELETE FROM policy_modes WHERE tenant_id = @tenant_id AND automation_id = @automation_id AND key = @key;

-- name: PolicyModeList :many
-- All modes of a tenant, or those with the keys.
SELECT p.automation_id, p.key, p.mode, p.version, p.updated_at, p.updated_by
FROM policy_modes p
WHERE p.tenant_id = @tenant_id AND (coalesce(cardinality(@keys::text[]), 0) = 0 OR p.key = ANY (@keys::text[]))
ORDER BY p.automation_id, p.key;

-- name: PolicyModeUpsert :exec
INSERT INTO policy_modes (tenant_id, automation_id, key, mode, updated_by)
VALUES (@tenant_id, @automation_id, @key, @mode, @updated_by)
ON CONFLICT ON CONSTRAINT policy_modes_pkey DO UPDATE
SET mode = excluded.mode, updated_at = now(), updated_by = excluded.updated_by;
