-- name: OutboxInFlightCount :one
-- Counts the actions that workers hold a lease on.
SELECT count(1) FROM outbox o WHERE o.lease_until > now();

-- name: PauseCount :exec
-- Adds to the number of actions that a kill has ended.
UPDATE pauses SET cancelled = cancelled + @more::integer WHERE pause_id = @pause_id;

-- name: PauseForecast :one
-- Counts the actions that a pause of a target would hold, and a kill would end:
-- those that wait in the outbox or for people, and those that workers have. Read
-- are the first @most rows of either table; cut reports whether there are more.
WITH outbox_rows AS (
    SELECT o.tenant_id, o.action_id, o.bucket_id, o.lease_until >= now() AS in_flight
    FROM outbox o
    WHERE o.tenant_id = @tenant_id
    ORDER BY o.tenant_id, o.action_id
    LIMIT @most::bigint
), undecided AS (
    SELECT a.tenant_id, a.action_id, a.bucket_id
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.approval_state = 'required'
    ORDER BY a.tenant_id, a.action_id
    LIMIT @most::bigint
), waiting_rows AS (
    SELECT o.tenant_id, o.action_id, o.bucket_id, coalesce(o.in_flight, false) AS in_flight, false AS undecided FROM outbox_rows o
    UNION ALL
    SELECT u.tenant_id, u.action_id, u.bucket_id, false, true FROM undecided u
), covered AS (
    SELECT w.in_flight, w.undecided
    FROM waiting_rows w
    JOIN actions a ON a.tenant_id = w.tenant_id AND a.action_id = w.action_id
    JOIN buckets b ON b.bucket_id = w.bucket_id
    WHERE CASE WHEN @scope::text = 'automation' THEN automation_covers(@subject::text, a.tenant_id, a.automation_id, a.external_id)
        ELSE pause_covers(@scope::text, @subject::text, a.employee_id, a.source_id, a.tool_name, b.name) END
)
SELECT
    (count(1) FILTER (WHERE NOT c.in_flight AND NOT c.undecided))::bigint AS pending,
    (count(1) FILTER (WHERE c.undecided))::bigint AS undecided,
    (count(1) FILTER (WHERE c.in_flight))::bigint AS in_flight,
    ((SELECT count(1) FROM outbox_rows) >= @most::bigint OR (SELECT count(1) FROM undecided) >= @most::bigint)::boolean AS cut
FROM covered c;

-- name: PauseLift :execrows
-- Ends an active pause. tenant_id is NULL for the pause of everything.
UPDATE pauses p
SET lifted_at = now(), lifted_by = @lifted_by
WHERE p.tenant_id IS NOT DISTINCT FROM sqlc.narg(tenant_id)::uuid AND p.scope = @scope AND p.subject = @subject AND p.lifted_at IS NULL;

-- name: PauseList :many
-- The pauses of a tenant, newest first, including pauses of everything.
SELECT p.pause_id, p.scope, p.subject, p.kill, p.reason, p.paused_at, p.paused_by, p.killed_at, p.cancelled, p.swept_at,
    p.lifted_at, p.lifted_by, p.woken_at, p.needs_policy_write, p.travelling
FROM pauses p
WHERE (p.tenant_id = @tenant_id OR p.tenant_id IS NULL)
    AND (p.lifted_at IS NULL OR NOT @active_only::boolean)
    AND p.pause_id < @before
ORDER BY p.pause_id DESC
LIMIT @most::bigint;

-- name: PauseSet :one
-- Creates a pause or, with kill, turns an active pause into a kill. A kill stays
-- a kill; killing again also ends actions that were proposed since. Travelling
-- becomes a pause or a kill, and never the other way. A pause that
-- needs policy:write to be lifted keeps that; reason and paused_by are those of
-- the last order that made the pause stronger. tenant_id is NULL for everything.
INSERT INTO pauses AS p (pause_id, tenant_id, scope, subject, kill, reason, paused_by, killed_at, needs_policy_write, travelling)
VALUES (@pause_id, sqlc.narg(tenant_id)::uuid, @scope, @subject, @kill::boolean, @reason, @paused_by, CASE WHEN @kill::boolean THEN now() END,
    @needs_policy_write, @travelling)
ON CONFLICT (tenant_id, scope, subject) WHERE lifted_at IS NULL DO UPDATE
SET kill = p.kill OR excluded.kill,
    travelling = p.travelling AND excluded.travelling,
    killed_at = coalesce(excluded.killed_at, p.killed_at),
    swept_at = CASE WHEN excluded.kill THEN NULL ELSE p.swept_at END,
    txid = pg_current_xact_id(),
    needs_policy_write = p.needs_policy_write OR excluded.needs_policy_write,
    reason = CASE WHEN excluded.kill OR p.travelling AND NOT excluded.travelling OR excluded.needs_policy_write AND NOT p.needs_policy_write THEN excluded.reason ELSE p.reason END,
    paused_by = CASE WHEN excluded.kill OR p.travelling AND NOT excluded.travelling OR excluded.needs_policy_write AND NOT p.needs_policy_write THEN excluded.paused_by ELSE p.paused_by END
RETURNING p.pause_id, p.scope, p.subject, p.kill, p.reason, p.paused_at, p.paused_by, p.killed_at, p.cancelled, p.swept_at,
    p.lifted_at, p.lifted_by, p.woken_at, p.needs_policy_write, p.travelling;

-- name: PauseActiveList :many
-- The active pauses that are checked per action, just before sending.
SELECT p.pause_id, p.scope, p.subject, p.kill, p.reason, p.paused_at, p.paused_by, p.killed_at, p.travelling
FROM pauses p
WHERE p.tenant_id = @tenant_id AND p.lifted_at IS NULL AND p.scope IN ('employee', 'source', 'tool', 'automation');

-- name: PauseSwept :exec
-- Marks a kill as complete, unless it was repeated meanwhile.
UPDATE pauses SET swept_at = now() WHERE pause_id = @pause_id AND killed_at = @killed_at;

-- name: PauseUnfinished :many
-- Pauses with remaining work: kills that are not swept, and lifted pauses whose
-- actions are not yet scheduled again. settled reports whether every transaction
-- that was open at the time of the kill has ended, so that a sweep that begins
-- now sees all actions that the kill must end. A transaction that had written by
-- then is visible in the snapshot; one that had not gets five seconds; and no
-- submission is open for longer than a minute.
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
-- Records that all actions that waited for the lifted pause are scheduled again.
UPDATE pauses SET woken_at = now() WHERE pause_id = @pause_id AND lifted_at IS NOT NULL;

-- name: TriageAccountExists :one
SELECT EXISTS (SELECT FROM triage_accounts a WHERE a.tenant_id = @tenant_id AND a.name = @name);
