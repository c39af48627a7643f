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

-- name: QuietHoursWaiting :one
-- The number of scheduled actions of the tenant, or of one bucket, whose time is
-- in one of the intervals.
SELECT count(*)
FROM (
    SELECT greatest(o.next_attempt_at, now()) AS at
    FROM outbox o
    JOIN buckets b ON b.bucket_id = o.bucket_id AND b.tenant_id = o.tenant_id
    WHERE o.tenant_id = @tenant_id AND (@bucket::text = '' OR b.name = @bucket)
    LIMIT @most::bigint
) w
WHERE EXISTS (
    SELECT FROM (SELECT unnest(@froms::timestamptz[]) AS since, unnest(@untils::timestamptz[]) AS until) i
    WHERE w.at >= i.since AND w.at < i.until
);
