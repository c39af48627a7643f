-- name: OutboxFlightCount :one
-- How many envelopes workers hold at this moment.
SELECT count(1) FROM outbox o WHERE o.lease_until > now();

-- name: PauseCount :exec
-- How much a kill has ended so far.
UPDATE pauses SET cancelled = cancelled + @more::integer WHERE pause_id = @pause_id;

-- name: PauseLift :many
-- Ends what stands. tenant_id is NULL for the pause of everything.
UPDATE pauses p
SET lifted_at = now(), lifted_by = @lifted_by
WHERE p.tenant_id IS NOT DISTINCT FROM sqlc.narg(tenant_id)::uuid AND p.scope = @scope AND p.subject = @subject AND p.lifted_at IS NULL
RETURNING p.pause_id, p.kill;

-- name: PauseList :many
-- The newest first. The pause of everything is among them.
SELECT p.pause_id, p.scope, p.subject, p.kill, p.reason, p.paused_at, p.paused_by, p.killed_at, p.cancelled, p.swept_at,
    p.lifted_at, p.lifted_by, p.woken_at
FROM pauses p
WHERE (p.tenant_id = @tenant_id OR p.tenant_id IS NULL)
    AND (p.lifted_at IS NULL OR NOT @standing_only::boolean)
    AND p.pause_id < @before
ORDER BY p.pause_id DESC
LIMIT @most::bigint;

-- name: PauseOfEverything :many
SELECT p.pause_id, p.scope, p.subject, p.kill, p.reason, p.paused_at, p.paused_by, p.killed_at, p.cancelled, p.swept_at,
    p.lifted_at, p.lifted_by, p.woken_at
FROM pauses p
WHERE p.tenant_id IS NULL AND p.lifted_at IS NULL;

-- name: PauseSet :one
-- Pauses, or makes a kill of a pause that stands; a kill stays one, and kills
-- anew. tenant_id is NULL for everything.
INSERT INTO pauses AS p (pause_id, tenant_id, scope, subject, kill, reason, paused_by, killed_at)
VALUES (@pause_id, sqlc.narg(tenant_id)::uuid, @scope, @subject, @kill::boolean, @reason, @paused_by, CASE WHEN @kill::boolean THEN now() END)
ON CONFLICT (tenant_id, scope, subject) WHERE lifted_at IS NULL DO UPDATE
SET kill = p.kill OR excluded.kill,
    killed_at = coalesce(excluded.killed_at, p.killed_at),
    swept_at = CASE WHEN excluded.kill THEN NULL ELSE p.swept_at END,
    txid = pg_current_xact_id(),
    reason = CASE WHEN excluded.kill THEN excluded.reason ELSE p.reason END,
    paused_by = CASE WHEN excluded.kill THEN excluded.paused_by ELSE p.paused_by END
RETURNING p.pause_id, p.scope, p.subject, p.kill, p.reason, p.paused_at, p.paused_by, p.killed_at, p.cancelled, p.swept_at,
    p.lifted_at, p.lifted_by, p.woken_at;

-- name: PauseStanding :many
-- What the judge looks at, envelope by envelope.
SELECT p.pause_id, p.scope, p.subject, p.kill, p.reason, p.paused_at, p.paused_by, p.killed_at
FROM pauses p
WHERE p.tenant_id = @tenant_id AND p.lifted_at IS NULL AND p.scope IN ('employee', 'source', 'tool');

-- name: PauseSwept :exec
-- The kill has ended all that it hit, unless it was used again meanwhile.
UPDATE pauses SET swept_at = now() WHERE pause_id = @pause_id AND killed_at = @killed_at;

-- name: PauseUnfinished :many
-- What has work left: a kill that is not swept, a lifted pause that has not
-- woken what it held. settled says that whatever was under way when the kill
-- was given has ended, so that a sweep which begins now sees all that it hit:
-- a transaction that had written by then shows in the snapshot, one that had
-- only begun gets some seconds, and one older than a minute is no submission's.
SELECT p.pause_id, p.tenant_id, p.scope, p.subject, p.reason, p.paused_by, p.lifted_at, p.woken_at,
    (p.kill AND p.swept_at IS NULL)::boolean AS killing,
    (p.txid < pg_snapshot_xmin(pg_current_snapshot()) AND coalesce(p.killed_at, p.paused_at) < now() - interval '5 seconds'
        OR coalesce(p.killed_at, p.paused_at) < now() - interval '1 minute')::boolean AS settled,
    coalesce(p.lifted_at < now() - interval '1 minute', false)::boolean AS long_lifted,
    coalesce(p.killed_at, p.paused_at)::timestamptz AS killed_at
FROM pauses p
WHERE p.kill AND p.swept_at IS NULL OR p.lifted_at IS NOT NULL AND p.woken_at IS NULL
ORDER BY p.paused_at
LIMIT @most::bigint;

-- name: PauseWoken :exec
-- All that the lifted pause held is on the schedule again.
UPDATE pauses SET woken_at = now() WHERE pause_id = @pause_id AND lifted_at IS NOT NULL;
