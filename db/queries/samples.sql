-- name: SampleBegin :one
-- Begins the sample of this minute, unless there is one, and returns the events
-- that it counts: those of transactions from since until before the horizon. The
-- first sample counts none, and nor does the first after the transactions of the
-- server began again.
WITH last_sample AS (
    SELECT f.horizon FROM fleet_samples f ORDER BY f.at DESC LIMIT 1
), inserted AS (
    INSERT INTO fleet_samples (at, workers, horizon)
    SELECT date_trunc('minute', now()), (SELECT count(1) FROM workers w WHERE NOT w.ended AND w.seen_at BETWEEN now() - w.lease AND now() + w.lease),
        pg_snapshot_xmin(pg_current_snapshot())
    ON CONFLICT ON CONSTRAINT fleet_samples_pkey DO NOTHING
    RETURNING at, horizon
)
SELECT i.at, i.horizon, least(coalesce((SELECT s.horizon FROM last_sample s), i.horizon), i.horizon)::xid8 AS since
FROM inserted i;

-- name: SampleEstimated :exec
-- Marks a sample whose backlogs are estimates.
UPDATE fleet_samples SET estimated = true WHERE at = @at;

-- name: SampleInsert :exec
-- Adds the backlogs of a sample. The actions that wait for people and those that
-- ended are counted up to a bound for each tenant, with one probe of an index each.
INSERT INTO backlog_samples (tenant_id, at, due, scheduled, in_flight, approvals, oldest_due, ended)
SELECT t.tenant_id, @at, coalesce(b.due, 0), coalesce(b.scheduled, 0), coalesce(b.in_flight, 0), p.waiting, coalesce(b.oldest_due, 0), coalesce(s.ended, '{}')
FROM tenants t
LEFT JOIN (
    SELECT unnest(@tenants::text[]) AS name, unnest(@due::bigint[]) AS due, unnest(@scheduled::bigint[]) AS scheduled,
        unnest(@in_flight::bigint[]) AS in_flight, unnest(@oldest_due::float8[]) AS oldest_due
) b ON b.name = t.name
CROSS JOIN LATERAL (
    SELECT count(1) AS waiting
    FROM (SELECT 1 FROM actions a WHERE a.tenant_id = t.tenant_id AND a.approval_state = 'required' LIMIT @most::bigint) w
) p
CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(n.status, n.actions) AS ended
    FROM (
        SELECT i.item ->> 'status' AS status, count(1) AS actions
        FROM (
            SELECT e.items
            FROM events e
            WHERE e.tenant_id = t.tenant_id AND e.txid >= @since::xid8 AND e.txid < @horizon::xid8 AND e.kind IN ('settled', 'killed', 'undone')
            LIMIT @most_events::bigint
        ) e
        CROSS JOIN LATERAL jsonb_array_elements(e.items) AS i (item)
        WHERE i.item ->> 'status' NOT IN ('pending', 'sending')
        GROUP BY i.item ->> 'status'
    ) n
) s
WHERE b.name IS NOT NULL OR p.waiting > 0 OR s.ended IS NOT NULL;

-- name: SampleList :many
-- The samples of a tenant in steps: the fewest workers, the highest of each other
-- number. Steps without a sample are left out.
SELECT
    date_bin(make_interval(secs => @step_seconds::float8), f.at, @from_at::timestamptz)::timestamptz AS at,
    min(f.workers)::bigint AS workers, bool_or(f.estimated)::boolean AS estimated,
    coalesce(max(b.due), 0)::bigint AS due, coalesce(max(b.scheduled), 0)::bigint AS scheduled, coalesce(max(b.in_flight), 0)::bigint AS in_flight,
    coalesce(max(b.approvals), 0)::bigint AS approvals, coalesce(max(b.oldest_due), 0)::float8 AS oldest_due
FROM fleet_samples f
LEFT JOIN backlog_samples b ON b.tenant_id = @tenant_id AND b.at = f.at
WHERE f.at >= @from_at::timestamptz AND f.at < @until_at::timestamptz
GROUP BY 1
ORDER BY 1;

-- name: SampleListEnded :many
-- The actions of a tenant that ended, in steps, by status.
SELECT
    date_bin(make_interval(secs => @step_seconds::float8), b.at, @from_at::timestamptz)::timestamptz AS at,
    n.status::text AS status, sum(n.actions::bigint)::bigint AS actions
FROM backlog_samples b
CROSS JOIN LATERAL jsonb_each_text(b.ended) AS n (status, actions)
WHERE b.tenant_id = @tenant_id AND b.at >= @from_at::timestamptz AND b.at < @until_at::timestamptz
GROUP BY 1, 2
ORDER BY 1, 2;

-- name: SamplePrune :execrows
-- Deletes the samples that are older than a number of days, and those of a time
-- that has not come: the clock was set back.
WITH deleted AS (
    DELETE FROM backlog_samples b
    USING tenants t
    WHERE b.tenant_id = t.tenant_id AND (b.at < now() - make_interval(days => @days::integer) OR b.at > now() + interval '1 day')
)
DELETE FROM fleet_samples f WHERE f.at < now() - make_interval(days => @days::integer) OR f.at > now() + interval '1 day';
