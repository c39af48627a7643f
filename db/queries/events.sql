-- name: EventExport :many
-- The next events after a position within a time range, each with the checkpoint
-- that covers it; 0 if none does.
SELECT e.event_id, e.txid, e.at, e.kind, e.actor, e.items::text AS items, coalesce(e.digests, ''::bytea)::bytea AS digests, coalesce(s.checkpoint_no, 0)::bigint AS checkpoint_no
FROM events e
LEFT JOIN LATERAL (
    SELECT c.checkpoint_no
    FROM checkpoints c
    WHERE c.tenant_id = e.tenant_id AND (c.until_txid, c.until_event) >= (e.txid, e.event_id)
    ORDER BY c.until_txid, c.until_event
    LIMIT 1
) s ON true
WHERE e.tenant_id = @tenant_id
    AND (e.txid, e.event_id) > (@after_txid::xid8, @after_event::bigint)
    AND (e.txid, e.event_id) <= (@until_txid::xid8, @until_event::bigint)
    AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
    AND e.at >= @from_at::timestamptz
    AND e.at < @until_at::timestamptz
ORDER BY e.txid, e.event_id
LIMIT @most::bigint;

-- name: EventGet :one
SELECT e.kind, e.items
FROM events e
WHERE e.tenant_id = @tenant_id AND e.txid = @txid::xid8 AND e.event_id = @event_id::bigint;

-- name: EventInsertMany :exec
-- One row per tenant and batch.
INSERT INTO events (tenant_id, kind, actor, items, digests)
SELECT e.tenant_id, e.kind, e.actor, e.items, nullif(e.digests, ''::bytea)
FROM (
    SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@kinds::text[]) AS kind, unnest(@actors::text[]) AS actor,
        unnest(@items::jsonb[]) AS items, unnest(@digests::bytea[]) AS digests
) e;

-- name: EventLatest :one
-- The position after which only new events follow.
SELECT e.txid
FROM events e
WHERE e.tenant_id = @tenant_id AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.txid DESC
LIMIT 1;

-- name: EventList :many
-- The next events after a position, in commit order. Events at or after the oldest
-- open transaction are not returned yet, so that no event is skipped.
SELECT e.event_id, e.txid, e.at, e.kind, e.actor, e.items
FROM events e
WHERE e.tenant_id = @tenant_id
    AND (e.txid, e.event_id) > (@txid::xid8, @event_id::bigint)
    AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.txid, e.event_id
LIMIT @most::bigint;

-- name: EventLog :many
-- The events before a position and after another one that match a filter, newest
-- first, with the first items of each, or those about an action. A bounded number
-- of events is read: the last of these is returned even if it does not match.
WITH scanned AS MATERIALIZED (
    SELECT e.event_id, e.txid, e.at, e.kind, e.actor, e.items, row_number() OVER (ORDER BY e.txid DESC, e.event_id DESC) AS n
    FROM events e
    WHERE e.tenant_id = @tenant_id
        AND (e.txid, e.event_id) < (@before_txid::xid8, @before_event::bigint)
        AND (e.txid, e.event_id) > (@after_txid::xid8, @after_event::bigint)
        AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY e.txid DESC, e.event_id DESC
    LIMIT @scan::bigint
), compared AS (
    SELECT s.txid, s.event_id, s.n,
        s.kind = coalesce(nullif(@kind::text, ''), s.kind)
            AND strpos(lower(s.actor), lower(@actor::text)) > 0
            AND s.at >= @from_at::timestamptz AND s.at < @until_at::timestamptz
            AND (@action::text = '' OR s.items @> jsonb_build_array(jsonb_build_object('action_id', @action::text)))
            AND (@subject::text = '' OR EXISTS (
                SELECT 1 FROM jsonb_array_elements(s.items) AS i (item) WHERE strpos(lower(i.item ->> 'subject'), lower(@subject::text)) > 0
            )) AS matches
    FROM scanned s
), found AS (
    SELECT c.txid, c.event_id, c.matches
    FROM compared c
    WHERE c.matches OR c.n = @scan::bigint
    ORDER BY c.n
    LIMIT @most::bigint
)
SELECT e.event_id, e.txid, coalesce(CASE WHEN isfinite(e.at) THEN e.at END, '0001-01-01 00:00:00+00')::timestamptz AS at, e.kind, e.actor,
    f.matches::boolean AS matches, jsonb_array_length(e.items)::bigint AS items_count,
    (SELECT coalesce(jsonb_agg(i.item ORDER BY i.n), '[]') FROM (
        SELECT p.item, p.n FROM jsonb_array_elements(e.items) WITH ORDINALITY AS p (item, n)
        WHERE @action::text = '' OR p.item ->> 'action_id' = @action::text
        ORDER BY p.n LIMIT @most_items::bigint
    ) i)::jsonb AS items
FROM found f
JOIN events e ON e.tenant_id = @tenant_id AND e.txid = f.txid AND e.event_id = f.event_id
ORDER BY e.txid DESC, e.event_id DESC;

-- name: EventRange :many
-- The next events of a range of positions, unverified, in order. An infinite
-- time, which only tampering writes, is returned as the year 1.
SELECT e.event_id, e.txid, coalesce(CASE WHEN isfinite(e.at) THEN e.at END, '0001-01-01 00:00:00+00')::timestamptz AS at, e.kind, e.actor, e.items::text AS items, coalesce(e.digests, ''::bytea)::bytea AS digests
FROM events e
WHERE e.tenant_id = @tenant_id
    AND (e.txid, e.event_id) > (@after_txid::xid8, @after_event::bigint)
    AND (e.txid, e.event_id) <= (@until_txid::xid8, @until_event::bigint)
ORDER BY e.txid, e.event_id
LIMIT @most::bigint;

-- name: EventCoverable :many
-- The next events after a position that no open transaction can precede. An
-- infinite time is returned as in EventRange.
SELECT e.event_id, e.txid, coalesce(CASE WHEN isfinite(e.at) THEN e.at END, '0001-01-01 00:00:00+00')::timestamptz AS at, e.kind, e.actor, e.items::text AS items, coalesce(e.digests, ''::bytea)::bytea AS digests
FROM events e
WHERE e.tenant_id = @tenant_id
    AND (e.txid, e.event_id) > (@after_txid::xid8, @after_event::bigint)
    AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.txid, e.event_id
LIMIT @most::bigint;

-- name: EventUncovered :one
-- Counts the events after the last checkpoint, up to a bound, and returns the
-- time of the oldest.
SELECT count(1)::bigint AS events, coalesce(min(u.at) FILTER (WHERE isfinite(u.at)), '0001-01-01 00:00:00+00')::timestamptz AS since
FROM (
    SELECT e.at
    FROM events e
    WHERE e.tenant_id = @tenant_id AND (e.txid, e.event_id) > (@after_txid::xid8, @after_event::bigint)
    ORDER BY e.txid, e.event_id
    LIMIT @most::bigint
) u;
