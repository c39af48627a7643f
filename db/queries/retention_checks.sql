-- name: RetentionCheckBegin :execrows
-- Starts today's check. Of two concurrent checks the second waits, and then
-- finds it done.
INSERT INTO retention_checks (tenant_id, checked_at, actions, events)
VALUES (@tenant_id, now(), 0, 0)
ON CONFLICT ON CONSTRAINT retention_checks_pkey
DO UPDATE SET checked_at = now(), actions = 0, events = 0
WHERE retention_checks.checked_at < date_trunc('day', now(), 'UTC');

-- name: RetentionCheckDue :many
-- Tenants, after one, without a check today.
SELECT t.tenant_id
FROM tenants t
LEFT JOIN retention_checks c ON c.tenant_id = t.tenant_id
WHERE t.tenant_id > @after::uuid AND (c.checked_at IS NULL OR c.checked_at < date_trunc('day', now(), 'UTC'))
ORDER BY t.tenant_id
LIMIT @most::bigint;

-- name: RetentionCheckEnd :exec
UPDATE retention_checks c SET actions = @actions, events = @events WHERE c.tenant_id = @tenant_id;

-- name: RetentionCheckGet :one
SELECT c.checked_at, c.actions, c.events FROM retention_checks c WHERE c.tenant_id = @tenant_id;
