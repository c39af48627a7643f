-- name: CheckpointAfter :one
-- The position after which events since a time may follow: the end of the
-- checkpoint before the first one with any.
SELECT s.until_txid, s.until_event
FROM checkpoints s
WHERE s.tenant_id = @tenant_id
    AND s.checkpoint_no < coalesce((SELECT min(n.checkpoint_no) FROM checkpoints n WHERE n.tenant_id = @tenant_id AND n.newest_at >= @at::timestamptz), 9223372036854775807)
ORDER BY s.checkpoint_no DESC
LIMIT 1;

-- name: CheckpointBefore :one
-- The position up to which events before a time may precede: the end of the last
-- checkpoint with any, if others follow it.
SELECT s.until_txid, s.until_event
FROM checkpoints s
WHERE s.tenant_id = @tenant_id
    AND s.checkpoint_no = (SELECT max(n.checkpoint_no) FROM checkpoints n WHERE n.tenant_id = @tenant_id AND n.oldest_at < @at::timestamptz)
    AND EXISTS (SELECT 1 FROM checkpoints n WHERE n.tenant_id = @tenant_id AND n.checkpoint_no > s.checkpoint_no);

-- name: CheckpointDue :many
-- The tenants after another one with uncovered events. It goes from tenant to
-- tenant by a few index probes each, regardless of the number of events.
WITH RECURSIVE ring AS (
    (SELECT e.tenant_id FROM events e WHERE e.tenant_id > @after::uuid ORDER BY e.tenant_id LIMIT 1)
    UNION ALL
    SELECT n.tenant_id
    FROM ring r
    CROSS JOIN LATERAL (SELECT e.tenant_id FROM events e WHERE e.tenant_id > r.tenant_id ORDER BY e.tenant_id LIMIT 1) n
)
SELECT r.tenant_id
FROM ring r
LEFT JOIN LATERAL (
    SELECT s.until_txid, s.until_event
    FROM checkpoints s
    WHERE s.tenant_id = r.tenant_id
    ORDER BY s.checkpoint_no DESC
    LIMIT 1
) h ON true
WHERE EXISTS (
    SELECT 1
    FROM events e
    WHERE e.tenant_id = r.tenant_id
        AND (e.txid, e.event_id) > (coalesce(h.until_txid, '0'::xid8), coalesce(h.until_event, 0))
        AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
)
LIMIT @most::bigint;

-- name: CheckpointHead :one
-- The last checkpoint, and the database's time.
SELECT now()::timestamptz AS now, coalesce(h.checkpoint_no, 0)::bigint AS checkpoint_no, coalesce(h.until_txid, '0'::xid8)::xid8 AS until_txid,
    coalesce(h.until_event, 0)::bigint AS until_event, coalesce(h.hash, ''::bytea)::bytea AS hash
FROM (SELECT 1 AS one) o
LEFT JOIN LATERAL (
    SELECT s.checkpoint_no, s.until_txid, s.until_event, s.hash
    FROM checkpoints s
    WHERE s.tenant_id = @tenant_id
    ORDER BY s.checkpoint_no DESC
    LIMIT 1
) h ON true;

-- name: CheckpointInsert :exec
INSERT INTO checkpoints (tenant_id, checkpoint_no, version, from_txid, from_event, until_txid, until_event, oldest_at, newest_at, events, leaves, prev_hash, hash, created_at)
VALUES (@tenant_id, @checkpoint_no, @version, @from_txid, @from_event, @until_txid, @until_event, @oldest_at, @newest_at, @events, @leaves, @prev_hash, @hash, @created_at);

-- name: CheckpointLock :one
-- Locks a tenant's chain until the transaction ends, unless another has locked it.
-- An advisory lock, since the chain may have no row yet.
SELECT pg_try_advisory_xact_lock(hashtextextended('countersign checkpoints ' || (@tenant_id::uuid)::text, 0));

-- name: CheckpointNext :one
-- The next checkpoint of a chain. An infinite time, which only tampering writes, is
-- returned as the year 1.
SELECT s.checkpoint_no, s.version, s.from_txid, s.from_event, s.until_txid, s.until_event,
    coalesce(CASE WHEN isfinite(s.oldest_at) THEN s.oldest_at END, '0001-01-01 00:00:00+00')::timestamptz AS oldest_at,
    coalesce(CASE WHEN isfinite(s.newest_at) THEN s.newest_at END, '0001-01-01 00:00:00+00')::timestamptz AS newest_at,
    s.events, s.leaves, s.prev_hash, s.hash,
    coalesce(CASE WHEN isfinite(s.created_at) THEN s.created_at END, '0001-01-01 00:00:00+00')::timestamptz AS created_at,
    (s.pruned_at IS NOT NULL)::boolean AS pruned
FROM checkpoints s
WHERE s.tenant_id = @tenant_id AND s.checkpoint_no > @after::bigint
ORDER BY s.checkpoint_no
LIMIT 1;

-- name: CheckpointByHash :one
-- The checkpoint with a hash.
SELECT s.checkpoint_no FROM checkpoints s WHERE s.tenant_id = @tenant_id AND s.hash = @hash ORDER BY s.checkpoint_no LIMIT 1;

-- name: CheckpointNote :one
-- Records that a checkpoint was noted as a head, unless its hash differs. The
-- first time is kept.
UPDATE checkpoints s
SET noted_at = coalesce(s.noted_at, now())
WHERE s.tenant_id = @tenant_id AND s.checkpoint_no = @checkpoint_no AND s.hash = @hash
RETURNING s.noted_at::timestamptz AS noted_at;

-- name: CheckpointPrunable :many
-- The oldest checkpoints whose events exist and are all past their retention.
SELECT s.checkpoint_no, s.events
FROM checkpoints s
JOIN retention r ON r.tenant_id = s.tenant_id
WHERE s.tenant_id = @tenant_id
    AND s.pruned_at IS NULL
    AND r.kind = 'events'
    AND r.action = 'delete'
    AND s.newest_at < now() - make_interval(days => r.days)
ORDER BY s.checkpoint_no
LIMIT @most::bigint;

-- name: CheckpointPrune :one
SELECT prune_events(@tenant_id::uuid, @first_no::bigint, @last_no::bigint);

-- name: CheckpointPruned :one
-- The last checkpoint below a number that is marked as pruned, and the expected
-- position of the event that records this.
SELECT s.checkpoint_no, coalesce(s.pruned_txid, '0'::xid8)::xid8 AS txid, coalesce(s.pruned_event, 0)::bigint AS event_id
FROM checkpoints s
WHERE s.tenant_id = @tenant_id AND s.pruned_at IS NOT NULL AND s.checkpoint_no < @below::bigint
ORDER BY s.checkpoint_no DESC
LIMIT 1;
