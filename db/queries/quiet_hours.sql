-- name: QuietHoursDelete :exec
DELETE FROM quiet_hours WHERE tenant_id = @tenant_id AND scope = @scope AND subject = @subject;

-- name: QuietHoursList :many
SELECT q.scope, q.subject, q.timezone, q.windows, q.spread_seconds
FROM quiet_hours q
WHERE q.tenant_id = @tenant_id
ORDER BY q.scope, q.subject;

-- name: QuietHoursUpsert :exec
INSERT INTO quiet_hours (tenant_id, scope, subject, timezone, windows, spread_seconds, updated_by)
VALUES (@tenant_id, @scope, @subject, @timezone, @windows, @spread_seconds, @updated_by)
ON CONFLICT ON CONSTRAINT quiet_hours_pkey DO UPDATE
SET timezone = excluded.timezone, windows = excluded.windows, spread_seconds = excluded.spread_seconds,
    updated_at = now(), updated_by = excluded.updated_by;
