-- name: FenceAskRecovery :exec
-- Records who asked for a recovery.
UPDATE fence f SET recovery_by = @by_actor, recovery_person = @person, recovery_at = now();

-- name: FenceCountLost :exec
-- Counts the lost calls whose actions this database does not have.
UPDATE fence f SET lost = (SELECT count(1) FROM lost_calls l WHERE NOT l.known AND l.outcome <> 'pending');

-- name: FenceLock :exec
-- Locks the fence: its next state follows from the one before. Claims do not wait.
SELECT f.one FROM fence f FOR UPDATE;

-- name: FenceRecover :one
-- Opens a held fence, and returns the database's new id.
SELECT recover_fence(sqlc.narg(ask_until)::timestamptz) AS database_id;

-- name: FenceRecoveryClasses :many
-- Counts by class of effect what a recovery does: unsure are calls of class once that may
-- have been made, later those that cannot have been because they are for later or were
-- proposed while the database was held. Of the unsure ones, reconcilable are those of
-- tools with a reconcile rule; open_at_head are the actions of the tenant of a noted head
-- that were proposed before it: their ends would be here.
WITH open_actions AS MATERIALIZED (
    SELECT a.effect, o.lease_until >= now() AS running, a.effect = 'once' AND (o.status = 'sending' OR s.reached) AS unsure,
        a.tenant_id = @tenant_id AND a.created_at <= h.newest_at AS open_at_head,
        EXISTS (
            SELECT 1 FROM tools t
            WHERE t.tenant_id = a.tenant_id AND t.source_id = a.source_id AND t.name = a.tool_name AND t.reconcile IS NOT NULL
        ) AS reconcilable
    FROM outbox o
    JOIN actions a ON a.tenant_id = o.tenant_id AND a.action_id = o.action_id
    CROSS JOIN LATERAL (
        SELECT (a.not_before IS NULL OR a.not_before <= now()) AND a.created_at <= f.changed_at AS reached FROM fence f
    ) s
    LEFT JOIN checkpoints h ON h.tenant_id = @tenant_id AND h.checkpoint_no = @head_no AND h.hash = @head_hash
)
SELECT e.effect::text AS effect, o.unsure, o.later, o.others, o.running, o.reconcilable, o.open_at_head, l.recorded, l.lost
FROM unnest('{once,keyed,idempotent,read}'::text[]) WITH ORDINALITY e (effect, n)
CROSS JOIN LATERAL (
    SELECT count(1) FILTER (WHERE o.unsure) AS unsure, count(1) FILTER (WHERE o.effect = 'once' AND NOT o.unsure) AS later,
        count(1) FILTER (WHERE o.effect <> 'once') AS others, count(1) FILTER (WHERE o.running) AS running,
        count(1) FILTER (WHERE o.unsure AND o.reconcilable) AS reconcilable, count(1) FILTER (WHERE o.open_at_head) AS open_at_head
    FROM open_actions o
    WHERE o.effect = e.effect
) o
CROSS JOIN LATERAL (
    SELECT count(1) FILTER (WHERE l.known) AS recorded, count(1) FILTER (WHERE NOT l.known AND l.outcome <> 'pending') AS lost
    FROM lost_calls l
    WHERE l.effect = e.effect
) l
ORDER BY e.n;

-- name: FenceRecoveryPlan :one
-- Reads what a recovery finds apart from actions. The head of a tenant's chain is that of
-- before. noted_until is the time of the newest event up to a head that was noted; the
-- year 1 if that checkpoint is not here with the same hash.
--
-- A worker counts if it may have committed after the last commit P that is here. One that
-- reaches the database is recorded every third of its lease, and f.point, when any was
-- recorded last, is not later than P. So one that ran at P was recorded less than a lease
-- before f.point, or later; with four, a slow database costs no worker. One that was
-- recorded earlier had crashed, or was cut off; all its leases had expired at P. It can
-- only have sent if it came back after P, which no row here shows, as of a worker that
-- started after P: a memory outside shows both.
WITH head AS (
    SELECT c.checkpoint_no, c.hash
    FROM checkpoints c, fence f
    WHERE c.tenant_id = @tenant_id AND c.created_at < f.changed_at
    ORDER BY c.checkpoint_no DESC
    LIMIT 1
), last_workers AS (
    SELECT w.reported
    FROM workers w, fence f
    WHERE NOT w.ended AND (f.point IS NULL OR w.seen_at + 4 * w.lease >= f.point)
)
SELECT
    (SELECT count(1) FROM actions w WHERE w.approval_state = 'required' AND w.effect = 'once')::bigint AS approvals,
    (SELECT count(1) FROM last_workers)::bigint AS workers,
    (SELECT count(1) FROM last_workers l WHERE NOT l.reported)::bigint AS silent,
    (SELECT coalesce(max(r.approvals_needed), 1) FROM reviews r)::bigint AS people,
    coalesce((
        SELECT max(e.at) FROM events e, fence f WHERE e.at < f.changed_at AND NOT (e.kind = 'configured' AND e.items @> '[{"code": "held"}]')
    ), '0001-01-01 00:00:00+00')::timestamptz AS newest,
    coalesce((SELECT h.checkpoint_no FROM head h), 0)::bigint AS checkpoint_no,
    coalesce((SELECT encode(h.hash, 'hex') FROM head h), '')::text AS checkpoint_hash,
    (SELECT CASE WHEN f.recovery_at > now() - interval '1 hour' THEN f.recovery_by ELSE '' END FROM fence f)::text AS asked_by,
    (SELECT f.recovery_person FROM fence f)::text AS asked_person,
    only_tenant() AS only_tenant,
    coalesce((
        SELECT c.newest_at FROM checkpoints c WHERE c.tenant_id = @tenant_id AND c.checkpoint_no = @head_no AND c.hash = @head_hash
    ), '0001-01-01 00:00:00+00')::timestamptz AS noted_until,
    session_user::text AS login;

-- name: FenceSet :one
-- Changes the state of the fence. An open fence is that of the present server. A new
-- database gets an id of its own when it opens, since it may be made from a template; if it
-- is held, workers know it as their database of before the first of them. The first worker
-- on a changed server is here before any is recorded there. On the same server it is not
-- known when commits went missing.
UPDATE fence f
SET database_id = CASE WHEN f.state = 'new' AND @state::text = 'open' THEN gen_random_uuid() ELSE f.database_id END,
    earlier_id = CASE WHEN f.state = 'new' AND @state::text = 'open' THEN f.database_id ELSE f.earlier_id END,
    state = @state, reason = @reason, detail = @detail, epoch = @epoch, changed_at = now(),
    started = CASE WHEN @state::text = 'held' THEN f.started ELSE s.started END,
    point = CASE
        WHEN @state::text = 'open' THEN NULL
        WHEN @reason::text = 'moved' THEN now()
        WHEN f.state <> 'open' THEN f.point
        WHEN f.started <> s.started THEN (SELECT max(w.seen_at) FROM workers w WHERE NOT w.ended AND w.refuses = '')
    END,
    system_id = CASE WHEN @state::text = 'open' THEN s.system_id ELSE f.system_id END,
    database_oid = CASE WHEN @state::text = 'open' THEN s.database_oid ELSE f.database_oid END,
    timeline = CASE WHEN @state::text = 'open' AND s.timeline > 0 THEN s.timeline ELSE f.timeline END
FROM server_identity() s
RETURNING f.database_id;

-- name: FenceTenants :many
SELECT t.tenant_id FROM tenants t ORDER BY t.tenant_id;
