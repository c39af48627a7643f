-- name: PartitionDrop :one
SELECT drop_partitions();

-- name: RetentionDeleting :many
-- The tenants, after one, that delete old data of a kind.
SELECT r.tenant_id
FROM retention r
WHERE r.kind = @kind AND r.action = 'delete' AND r.tenant_id > @after::uuid
ORDER BY r.tenant_id
LIMIT @most::bigint;

-- name: RetentionEraseTries :one
SELECT erase_old_tries(@most::bigint)::bigint;

-- name: RetentionList :many
SELECT r.kind, r.days, r.action FROM retention r WHERE r.tenant_id = @tenant_id;

-- name: RetentionOldActions :many
-- Envelopes past the retention of tenants that delete them. The shortest
-- retention of all tenants is a separate parameter, and the tenant's own a
-- sub-select, so that one scan of the index on created_at serves all tenants: a
-- join looks up each tenant's key.
SELECT e.tenant_id, e.action_id
FROM ended_actions e
WHERE e.created_at < now() - make_interval(days => @least_days::integer)
    AND e.created_at < now() - make_interval(days => (
        SELECT r.days FROM retention r WHERE r.tenant_id = e.tenant_id AND r.kind = 'actions' AND r.action = 'delete'))
    AND e.ended_at < now() - make_interval(days => (
        SELECT r.days FROM retention r WHERE r.tenant_id = e.tenant_id AND r.kind = 'actions' AND r.action = 'delete'))
LIMIT @most::bigint;

-- name: RetentionOlderEvents :one
-- A tenant's oldest events, up to a bound, that are past its retention.
SELECT count(1)::bigint
FROM (SELECT e.at FROM events e WHERE e.tenant_id = @tenant_id ORDER BY e.txid, e.event_id LIMIT @most::bigint) o
WHERE o.at < now() - make_interval(days => @days::integer);

-- name: RetentionOlderActions :one
-- A tenant's envelopes with the lowest ids that are past its retention. These
-- are the oldest ones unless the tenant generates its own ids.
SELECT count(1)::bigint
FROM (SELECT a.created_at FROM actions a WHERE a.tenant_id = @tenant_id ORDER BY a.action_id LIMIT @most::bigint) o
WHERE o.created_at < now() - make_interval(days => @days::integer);

-- name: RetentionPruneActions :one
SELECT prune_actions(@tenant_ids::uuid[], @action_ids::uuid[]);

-- name: RetentionPut :exec
INSERT INTO retention (tenant_id, kind, days, action, updated_by)
VALUES (@tenant_id, @kind, @days, @action, @updated_by)
ON CONFLICT ON CONSTRAINT retention_pkey
DO UPDATE SET days = excluded.days, action = excluded.action, updated_by = excluded.updated_by, updated_at = now();

-- name: RetentionShortest :one
-- The shortest retention of actions of any tenant, in days; 0 if none deletes
-- any.
SELECT coalesce(min(r.days), 0)::integer FROM retention r WHERE r.kind = 'actions' AND r.action = 'delete';
