-- name: ReplayScheduleAdvance :one
-- Reserves the next part of a selection's schedule, which begins now or at the
-- end of the previous one. The row lock delays a concurrent run of the same
-- selection until this one is committed.
INSERT INTO replay_schedules (tenant_id, selection, next_at)
VALUES (@tenant_id, @selection, now() + make_interval(secs => @stretch_seconds::float8))
ON CONFLICT ON CONSTRAINT replay_schedules_pkey DO UPDATE
SET next_at = greatest(replay_schedules.next_at, now()) + make_interval(secs => @stretch_seconds::float8)
RETURNING
    (next_at - make_interval(secs => @stretch_seconds::float8))::timestamptz AS starts_at,
    extract(epoch FROM next_at - now())::float8 AS ahead_seconds;

-- name: ReplayScheduleForget :exec
-- Deletes past schedules, except one that is locked by another transaction.
DELETE FROM replay_schedules r
WHERE (r.tenant_id, r.selection) IN (
    SELECT s.tenant_id, s.selection
    FROM replay_schedules s
    WHERE s.tenant_id = @tenant_id AND s.next_at < now() - interval '1 day'
    FOR UPDATE SKIP LOCKED
);
