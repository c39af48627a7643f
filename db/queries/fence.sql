-- name: FenceAskRecovery :exec
-- Records that a login asked for a recovery.
UPDATE fence f SET recovery_by = session_user, recovery_at = now();

-- name: FenceCountLost :exec
-- Counts the lost calls whose actions this database does not have.
UPDATE fence f SET lost = (SELECT count(1) FROM lost_calls l WHERE NOT l.known AND l.outcome <> 'pending');

-- name: FenceLock :exec
-- Locks the fence: its next state follows from the one before. Claims do not wait.
SELECT f.one FROM fence f FOR UPDATE;

-- name: FenceRecover :one
-- Opens the fence for the present server, as a database of its own.
UPDATE fence f
SET database_id = gen_random_uuid(), recovered_from = f.database_id, epoch = f.epoch + 1, state = 'open', reason = '', detail = '',
    system_id = s.system_id, database_oid = s.database_oid, timeline = s.timeline, started = s.started, changed_at = now(),
    ask_from = now(), ask_until = sqlc.narg(ask_until)::timestamptz, recovery_by = '', recovery_at = NULL
FROM server_identity() s
RETURNING f.database_id;

-- name: FenceRecoveryPlan :one
-- Counts what a recovery does: calls of class once that may have been made, those that
-- cannot have been because they are for later, all other actions on the schedule, and
-- approvals that may have been given.
SELECT
    count(1) FILTER (WHERE a.effect = 'once' AND (o.status = 'sending' OR a.not_before IS NULL OR a.not_before <= now()))::bigint AS unsure,
    count(1) FILTER (WHERE a.effect = 'once' AND o.status = 'pending' AND a.not_before > now())::bigint AS later,
    count(1) FILTER (WHERE a.effect <> 'once')::bigint AS repeatable,
    count(1) FILTER (WHERE o.lease_until >= now())::bigint AS running,
    (SELECT count(1) FROM actions w WHERE w.approval_state = 'required' AND w.effect = 'once')::bigint AS approvals,
    (SELECT count(1) FROM lost_calls l WHERE l.known)::bigint AS recorded,
    (SELECT count(1) FROM lost_calls l WHERE NOT l.known AND l.outcome <> 'pending')::bigint AS lost,
    (SELECT count(1) FROM workers w WHERE NOT w.ended)::bigint AS workers,
    (SELECT count(1) FROM workers w WHERE NOT w.ended AND NOT w.reported)::bigint AS silent,
    (SELECT coalesce(max(r.approvals_needed), 1) FROM reviews r)::bigint AS people,
    coalesce((SELECT max(e.at) FROM events e WHERE NOT (e.kind = 'configured' AND e.items @> '[{"code": "held"}]')), '0001-01-01 00:00:00+00')::timestamptz AS newest,
    (SELECT CASE WHEN f.recovery_at > now() - interval '1 hour' THEN f.recovery_by ELSE '' END FROM fence f)::text AS asked_by,
    session_user::text AS login
FROM outbox o
JOIN actions a ON a.tenant_id = o.tenant_id AND a.action_id = o.action_id;

-- name: FenceSet :one
-- Changes the state of the fence. An open fence is that of the present server. A new
-- database gets an id of its own, since it may be made from a template.
UPDATE fence f
SET database_id = CASE WHEN f.state = 'new' THEN gen_random_uuid() ELSE f.database_id END,
    state = @state, reason = @reason, detail = @detail, epoch = @epoch, changed_at = now(),
    started = CASE WHEN @state::text = 'held' THEN f.started ELSE s.started END,
    system_id = CASE WHEN @state::text = 'open' THEN s.system_id ELSE f.system_id END,
    database_oid = CASE WHEN @state::text = 'open' THEN s.database_oid ELSE f.database_oid END,
    timeline = CASE WHEN @state::text = 'open' AND s.timeline > 0 THEN s.timeline ELSE f.timeline END
FROM server_identity() s
RETURNING f.database_id;

-- name: FenceTenants :many
SELECT t.tenant_id FROM tenants t ORDER BY t.tenant_id;
