-- name: WakeDone :exec
-- Marks a wake-up as done, unless it was requested again meanwhile.
DELETE FROM wakes w WHERE w.tenant_id = @tenant_id AND w.waits_for = @waits_for AND w.asked_at = @asked_at;

-- name: WakeList :many
SELECT w.tenant_id, w.waits_for, w.asked_at, (w.asked_at < now() - interval '1 minute')::boolean AS long_asked FROM wakes w ORDER BY w.asked_at LIMIT @most::bigint;

-- name: WakePut :exec
-- Requests a wake-up of the actions that wait for a reason.
INSERT INTO wakes (tenant_id, waits_for) VALUES (@tenant_id, @waits_for)
ON CONFLICT ON CONSTRAINT wakes_pkey DO UPDATE SET asked_at = clock_timestamp();
