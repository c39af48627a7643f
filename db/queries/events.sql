-- name: EventInsertMany :exec
-- One row per tenant and batch.
INSERT INTO events (tenant_id, kind, actor, items)
SELECT unnest(@tenant_ids::uuid[]), unnest(@kinds::text[]), unnest(@actors::text[]), unnest(@items::jsonb[]);

-- name: EventLatest :one
-- Where a stream that wants only what is new begins.
SELECT e.txid
FROM events e
WHERE e.tenant_id = @tenant_id AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.txid DESC
LIMIT 1;

-- name: EventList :many
-- The next events after a place, in commit order. Nothing at or after the
-- oldest open transaction is shown yet, so that no event is passed over.
SELECT e.event_id, e.txid, e.at, e.kind, e.actor, e.items
FROM events e
WHERE e.tenant_id = @tenant_id
    AND (e.txid, e.event_id) > (@txid::xid8, @event_id::bigint)
    AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.txid, e.event_id
LIMIT @most::bigint;
