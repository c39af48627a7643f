-- name: OverviewApprovals :one
-- Counts the actions that wait for a person, up to a bound, and returns the
-- start of the oldest wait.
SELECT
    now()::timestamptz AS at,
    count(1)::bigint AS waiting,
    coalesce(min(w.created_at), '0001-01-01 00:00:00+00')::timestamptz AS oldest
FROM (SELECT a.created_at FROM actions a WHERE a.approval_state = 'required' LIMIT @most::bigint) w;

-- name: OverviewBreakers :many
-- The sources whose breaker has ever opened, open ones first.
SELECT t.name AS tenant, b.source_id, b.state, b.cause, b.since, b.open_until, b.openings
FROM breakers b
JOIN tenants t ON t.tenant_id = b.tenant_id
ORDER BY b.state = 'closed', b.since DESC
LIMIT @most::bigint;

-- name: OverviewBuckets :many
-- The usage of limits of the given buckets and of all buckets with limits; -1
-- means no limit.
SELECT
    b.bucket_id, t.name AS tenant, b.name, b.limited,
    (CASE WHEN b.rate_limit IS NOT NULL OR b.calendar IS NOT NULL THEN bucket_tokens(b, now(), t.timezone) ELSE -1 END)::bigint AS permits,
    coalesce(b.concurrency, -1)::integer AS concurrency,
    bucket_in_use(b.bucket_id, now()) AS in_use,
    greatest(0, coalesce(extract(epoch FROM b.opens_at - now()), 0))::float8 AS opens_seconds,
    (CASE WHEN b.closed_until > now() THEN coalesce(b.closed_by, '') ELSE '' END)::text AS closed_by
FROM buckets b
JOIN tenants t ON t.tenant_id = b.tenant_id
WHERE b.bucket_id = ANY (@bucket_ids::bigint[]) OR b.limited
ORDER BY b.bucket_id = ANY (@bucket_ids::bigint[]) DESC, b.bucket_id
LIMIT @most::bigint;

-- name: OverviewDeadLetters :many
-- Dead letters by reason, up to a bound, in the order of the index, which skips
-- dead rows.
SELECT l.reason, count(1)::bigint AS count, extract(epoch FROM now() - min(l.created_at))::float8 AS oldest_seconds
FROM (SELECT d.reason, d.created_at FROM dead_letters d ORDER BY d.tenant_id, d.action_id LIMIT @most::bigint) l
GROUP BY l.reason;

-- name: OverviewDeadLettersSample :many
-- The same for a percentage of the table's pages, always the same ones, so that
-- an estimate changes only with the table.
SELECT d.reason, count(1)::bigint AS count, extract(epoch FROM now() - min(d.created_at))::float8 AS oldest_seconds
FROM dead_letters d TABLESAMPLE SYSTEM (@percent::real) REPEATABLE (1)
GROUP BY d.reason;

-- name: OverviewPastRetention :one
-- Rows older than their tenants' retention, by the last daily check, and whether the
-- database is held.
SELECT
    coalesce(sum(c.actions), 0)::bigint AS actions, coalesce(sum(c.events), 0)::bigint AS events,
    EXISTS (SELECT FROM fence f WHERE f.state = 'held')::boolean AS held
FROM retention_checks c;

-- name: OverviewOldest :one
-- How long the oldest claimable action has been due, in a number of buckets
-- beginning with one, by the rules of counts.startable. The index leads from
-- bucket to bucket: one probe each, regardless of the queues.
WITH RECURSIVE probed_buckets AS (
    (SELECT o.bucket_id, 1 AS n FROM outbox o WHERE o.bucket_id >= @first::bigint ORDER BY o.bucket_id LIMIT 1)
    UNION ALL
    SELECT f.bucket_id, r.n + 1
    FROM probed_buckets r
    CROSS JOIN LATERAL (SELECT o.bucket_id FROM outbox o WHERE o.bucket_id > r.bucket_id ORDER BY o.bucket_id LIMIT 1) f
    WHERE r.n < @most::integer
)
SELECT greatest(0, coalesce(extract(epoch FROM now() - min(greatest(f.next_attempt_at, b.opens_at))), 0))::float8 AS seconds
FROM probed_buckets r
JOIN buckets b ON b.bucket_id = r.bucket_id
CROSS JOIN LATERAL (
    SELECT o.next_attempt_at
    FROM outbox o
    WHERE o.bucket_id = r.bucket_id AND o.lease_until IS NULL
    ORDER BY o.next_attempt_at
    LIMIT 1
) f
WHERE (b.opens_at IS NULL OR b.opens_at <= now()) AND NOT bucket_paused(b.tenant_id, b.name)
    AND NOT EXISTS (SELECT FROM fence f WHERE f.state = 'held')
    AND (b.concurrency IS NULL OR 2 * bucket_in_use(b.bucket_id, now()) < b.concurrency);

-- name: OverviewPauses :many
-- The active pauses. The tenant is empty for everything.
SELECT coalesce(t.name, '')::text AS tenant, p.scope, p.subject, p.kill, p.reason, p.paused_at, p.paused_by
FROM pauses p
LEFT JOIN tenants t ON t.tenant_id = p.tenant_id
WHERE p.lifted_at IS NULL
ORDER BY p.paused_at
LIMIT @most::bigint;

-- name: OverviewProposals :one
-- Counts waiting proposals, up to a bound, and returns the age of the oldest,
-- for a number of logins drawn at random.
SELECT
    (SELECT count(1) FROM (SELECT 1 FROM proposals p WHERE p.answered_at IS NULL LIMIT @most::bigint) w)::bigint AS waiting,
    coalesce((
        SELECT max(extract(epoch FROM now() - f.proposed_at))
        FROM (SELECT l.login_id FROM db_logins l ORDER BY random() LIMIT @logins::bigint) l
        CROSS JOIN LATERAL (
            SELECT p.proposed_at FROM proposals p WHERE p.login_id = l.login_id AND p.answered_at IS NULL ORDER BY p.proposal_no LIMIT 1
        ) f
    ), 0)::float8 AS seconds;

-- name: OverviewThroughput :many
-- Ended actions of the last five minutes by tool. The execution log has no index
-- on time, but a tenant's events have the same data in the order of time. The
-- query reads the newest events, up to a number of events and of actions; cut
-- reports whether there were more. OFFSET 0: one probe per envelope, since the
-- planner cannot know how few there are.
WITH recent AS MATERIALIZED (
    SELECT e.txid, e.event_id, e.at, e.kind, e.items
    FROM events e
    WHERE e.tenant_id = @tenant_id
    ORDER BY e.txid DESC, e.event_id DESC
    LIMIT @events::bigint
), bounded AS MATERIALIZED (
    SELECT r.at, r.items, sum(jsonb_array_length(r.items)) OVER (ORDER BY r.txid DESC, r.event_id DESC) AS so_far
    FROM recent r
    WHERE r.kind IN ('settled', 'killed', 'undone') AND r.at > now() - interval '5 minutes'
), ended AS (
    SELECT b.at, (i.item ->> 'action_id')::uuid AS action_id, i.item ->> 'status' AS status
    FROM bounded b
    CROSS JOIN LATERAL jsonb_array_elements(b.items) AS i (item)
    WHERE b.so_far <= @envelopes::bigint
)
SELECT
    a.source_id, a.tool_name, e.status::text AS status,
    (count(1) FILTER (WHERE e.at > now() - interval '1 minute'))::bigint AS last_minute,
    count(1)::bigint AS last_five_minutes,
    extract(epoch FROM now() - min(e.at))::float8 AS oldest_seconds,
    (EXISTS (SELECT FROM bounded b WHERE b.so_far > @envelopes::bigint)
        OR (SELECT count(1) = @events::bigint AND min(r.at) > now() - interval '5 minutes' FROM recent r))::boolean AS cut
FROM ended e
CROSS JOIN LATERAL (
    SELECT k.source_id, k.tool_name FROM actions k WHERE k.tenant_id = @tenant_id AND k.action_id = e.action_id OFFSET 0
) a
WHERE e.status IS NOT NULL
GROUP BY a.source_id, a.tool_name, e.status
ORDER BY last_five_minutes DESC, a.source_id, a.tool_name, e.status;

-- name: OverviewCheckpointLag :one
-- The age of the oldest uncovered event, for a number of tenants drawn at
-- random, so that a stopped job is visible even with more tenants.
SELECT coalesce(max(extract(epoch FROM now() - u.at)), 0)::float8 AS seconds
FROM (SELECT t.tenant_id FROM tenants t ORDER BY random() LIMIT @most::bigint) t
LEFT JOIN LATERAL (
    SELECT s.until_txid, s.until_event FROM checkpoints s WHERE s.tenant_id = t.tenant_id ORDER BY s.checkpoint_no DESC LIMIT 1
) h ON true
CROSS JOIN LATERAL (
    SELECT e.at
    FROM events e
    WHERE e.tenant_id = t.tenant_id AND (e.txid, e.event_id) > (coalesce(h.until_txid, '0'::xid8), coalesce(h.until_event, 0))
    ORDER BY e.txid, e.event_id
    LIMIT 1
) u;

-- name: OverviewWaiting :many
-- The outbox by bucket and reason for waiting, up to a bound. The order of the
-- index skips the empty pages left by a burst. The reasons are those of the view
-- envelopes; the caller adds pauses of the bucket, and gated marks the reasons
-- that take precedence over that. An action in a bucket that was closed is
-- startable since the bucket opened.
WITH first_rows AS (
    SELECT o.bucket_id, o.next_attempt_at, o.lease_until, o.waits_for
    FROM outbox o
    ORDER BY o.tenant_id, o.action_id
    LIMIT @most::bigint
), reasons AS (
    SELECT
        l.bucket_id,
        CASE
            WHEN l.lease_until >= now() THEN 'in_flight'
            WHEN l.lease_until IS NOT NULL THEN 'overdue'
            WHEN l.waits_for IS NOT NULL AND l.next_attempt_at > now() THEN l.waits_for
            WHEN b.opens_at > greatest(now(), l.next_attempt_at) THEN coalesce(CASE WHEN b.closed_until = b.opens_at THEN b.closed_by END, 'bucket')
            WHEN l.next_attempt_at > now() THEN 'not_before'
            WHEN (SELECT f.state FROM fence f) = 'held' THEN 'held'
            ELSE 'turn'
        END AS reason,
        l.lease_until IS NOT NULL OR (l.waits_for IS NOT NULL AND l.next_attempt_at > now()) AS gated,
        l.next_attempt_at, greatest(l.next_attempt_at, b.opens_at) AS startable_at
    FROM first_rows l
    JOIN buckets b ON b.bucket_id = l.bucket_id
), counted AS (
    SELECT w.bucket_id, w.reason, w.gated, count(1) AS envelopes, count(1) FILTER (WHERE w.next_attempt_at <= now()) AS due,
        min(w.next_attempt_at) AS first_at, min(w.startable_at) AS first_startable_at
    FROM reasons w
    GROUP BY w.bucket_id, w.reason, w.gated
)
SELECT
    c.bucket_id, t.name AS tenant, b.name AS bucket, b.limited, c.reason::text AS reason, c.gated::boolean AS gated,
    c.envelopes::bigint AS envelopes, c.due::bigint AS due, extract(epoch FROM now() - c.first_at)::float8 AS first_seconds,
    extract(epoch FROM now() - c.first_startable_at)::float8 AS startable_seconds
FROM counted c
JOIN buckets b ON b.bucket_id = c.bucket_id
JOIN tenants t ON t.tenant_id = b.tenant_id;

-- name: OverviewWaitingSample :many
-- The same for a percentage of the table's pages, always the same ones, so that
-- an estimate changes only with the table. Only a part of their rows counts:
-- many pages are more representative than the same number of rows in few pages,
-- which were written together.
WITH reasons AS (
    SELECT
        l.bucket_id,
        CASE
            WHEN l.lease_until >= now() THEN 'in_flight'
            WHEN l.lease_until IS NOT NULL THEN 'overdue'
            WHEN l.waits_for IS NOT NULL AND l.next_attempt_at > now() THEN l.waits_for
            WHEN b.opens_at > greatest(now(), l.next_attempt_at) THEN coalesce(CASE WHEN b.closed_until = b.opens_at THEN b.closed_by END, 'bucket')
            WHEN l.next_attempt_at > now() THEN 'not_before'
            WHEN (SELECT f.state FROM fence f) = 'held' THEN 'held'
            ELSE 'turn'
        END AS reason,
        l.lease_until IS NOT NULL OR (l.waits_for IS NOT NULL AND l.next_attempt_at > now()) AS gated,
        l.next_attempt_at, greatest(l.next_attempt_at, b.opens_at) AS startable_at
    FROM outbox l TABLESAMPLE SYSTEM (@percent::real) REPEATABLE (1)
    JOIN buckets b ON b.bucket_id = l.bucket_id
    WHERE uuid_hash(l.action_id) & @mask::integer = 0
), counted AS (
    SELECT w.bucket_id, w.reason, w.gated, count(1) AS envelopes, count(1) FILTER (WHERE w.next_attempt_at <= now()) AS due,
        min(w.next_attempt_at) AS first_at, min(w.startable_at) AS first_startable_at
    FROM reasons w
    GROUP BY w.bucket_id, w.reason, w.gated
)
SELECT
    c.bucket_id, t.name AS tenant, b.name AS bucket, b.limited, c.reason::text AS reason, c.gated::boolean AS gated,
    c.envelopes::bigint AS envelopes, c.due::bigint AS due, extract(epoch FROM now() - c.first_at)::float8 AS first_seconds,
    extract(epoch FROM now() - c.first_startable_at)::float8 AS startable_seconds
FROM counted c
JOIN buckets b ON b.bucket_id = c.bucket_id
JOIN tenants t ON t.tenant_id = b.tenant_id;
