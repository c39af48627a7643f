-- name: BucketClose :exec
-- Closes buckets for a time, without shortening an existing one.
UPDATE buckets b
SET closed_by = CASE WHEN b.closed_until > now() + make_interval(secs => c.seconds) THEN b.closed_by ELSE c.cause END,
    closed_until = greatest(b.closed_until, now() + make_interval(secs => c.seconds))
FROM (
    SELECT unnest(@bucket_ids::bigint[]) AS bucket_id, unnest(@seconds::float8[]) AS seconds, @cause::text AS cause
) c
WHERE b.bucket_id = c.bucket_id;

-- name: BucketGrant :many
-- The current number of permits of each bucket, by its rate, its calendar and
-- its concurrency, and whether a claim has to take permits. The rows must be locked by an
-- earlier statement (BucketLock), so that the result cannot change before BucketSpend.
-- Claims without actions are deleted under that lock, and claims whose leases ended long
-- ago: until then a worker that was suspended may renew them.
WITH claims AS MATERIALIZED (
    SELECT c.bucket_id, c.claim_id, sum(c.n) AS n, max(c.lease_until) AS lease_until
    FROM bucket_claims c
    WHERE c.bucket_id = ANY (@bucket_ids::bigint[])
    GROUP BY c.bucket_id, c.claim_id
), deleted AS (
    DELETE FROM bucket_claims c
    USING claims e
    WHERE c.bucket_id = e.bucket_id AND c.claim_id = e.claim_id AND (e.n = 0 OR coalesce(e.lease_until < now() - interval '1 day', true))
)
SELECT
    b.bucket_id,
    c.at::timestamptz AS at,
    greatest(0, least(bucket_tokens(b, c.at, t.timezone), coalesce(b.concurrency - u.n - h.n, 1000000000)))::bigint AS granted,
    (b.rate_limit IS NOT NULL OR b.calendar IS NOT NULL)::boolean AS spends
FROM (SELECT clock_timestamp() AS at) c
CROSS JOIN buckets b
JOIN tenants t ON t.tenant_id = b.tenant_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(k.n), 0) AS n FROM claims k WHERE k.bucket_id = b.bucket_id AND k.lease_until >= c.at
) u
CROSS JOIN LATERAL (
    SELECT count(1) AS n FROM outbox o WHERE o.bucket_id = b.bucket_id AND o.held AND o.lease_until >= c.at AND b.concurrency IS NOT NULL
) h
WHERE b.bucket_id = ANY (@bucket_ids::bigint[]);

-- name: BucketLock :many
-- Locks the rows of buckets with limits, always in the same order. FOR UPDATE:
-- of two concurrent claims one grants. SKIP LOCKED: the other skips the bucket.
SELECT b.bucket_id
FROM buckets b
WHERE b.bucket_id = ANY (@bucket_ids::bigint[]) AND b.limited
ORDER BY b.bucket_id
FOR UPDATE SKIP LOCKED;

-- name: BucketLockAll :many
-- Locks the rows of buckets that are to be closed, or to which permits are to be
-- returned. It waits for at most the duration of a claim.
SELECT b.bucket_id FROM buckets b WHERE b.bucket_id = ANY (@bucket_ids::bigint[]) ORDER BY b.bucket_id FOR UPDATE;

-- name: BucketPut :exec
-- Sets a bucket's limits, and reactivates it if it was retired. The used part of
-- the burst is carried over at the new rate; the calendar's usage is carried
-- over if it falls into the new period.
INSERT INTO buckets AS b (tenant_id, name, rate_limit, rate_seconds, burst, calendar, calendar_limit, timezone, concurrency)
VALUES (
    @tenant_id, @name, sqlc.narg(rate_limit), sqlc.narg(rate_seconds), sqlc.narg(burst),
    sqlc.narg(calendar), sqlc.narg(calendar_limit), sqlc.narg(timezone), sqlc.narg(concurrency))
ON CONFLICT ON CONSTRAINT buckets_tenant_id_name_key DO UPDATE
SET rate_limit = excluded.rate_limit, rate_seconds = excluded.rate_seconds, burst = excluded.burst,
    calendar = excluded.calendar, calendar_limit = excluded.calendar_limit, timezone = excluded.timezone,
    concurrency = excluded.concurrency, retired_at = NULL,
    tat = CASE
        WHEN excluded.rate_limit IS NULL OR b.rate_limit IS NULL THEN NULL
        WHEN b.tat > clock_timestamp() THEN clock_timestamp()
            + (b.tat - clock_timestamp()) * (excluded.rate_seconds / excluded.rate_limit / (b.rate_seconds / b.rate_limit))
        ELSE b.tat
    END,
    calendar_used = CASE
        WHEN excluded.calendar IS NOT NULL AND b.calendar_from >= bucket_period(excluded, clock_timestamp(), @tenant_timezone::text) THEN b.calendar_used
        ELSE 0
    END,
    calendar_from = bucket_period(excluded, clock_timestamp(), @tenant_timezone::text);

-- name: BucketReopen :execrows
-- Ends the closing of a bucket by a provider's Retry-After or an operator.
UPDATE buckets b SET closed_until = NULL, closed_by = NULL WHERE b.tenant_id = @tenant_id AND b.name = @name;

-- name: BucketRetire :exec
UPDATE buckets b SET retired_at = now() WHERE b.tenant_id = @tenant_id AND b.name = @name AND b.retired_at IS NULL;

-- name: BucketReturn :exec
-- Returns unused permits: to the rate only if nothing was granted since, so that
-- the bucket is as if they had never been taken (later it may have counted the
-- time as idle, and they could exceed the limit); to the calendar within its
-- period. Permits granted under other limits are not returned.
WITH unused AS (
    SELECT unnest(@bucket_ids::bigint[]) AS bucket_id, unnest(@granted_at::timestamptz[]) AS at, unnest(@counts::bigint[]) AS n
), returned AS (
    SELECT
        b.bucket_id,
        sum(CASE WHEN u.at = b.granted_at THEN u.n ELSE 0 END) AS permits,
        sum(CASE WHEN u.at >= b.calendar_from THEN u.n ELSE 0 END) AS used
    FROM unused u
    JOIN buckets b ON b.bucket_id = u.bucket_id
    WHERE u.at > b.updated_at
    GROUP BY b.bucket_id
)
UPDATE buckets b
SET tat = coalesce(b.tat - returned.permits * bucket_interval(b), b.tat),
    calendar_used = greatest(0, b.calendar_used - returned.used)
FROM returned
WHERE b.bucket_id = returned.bucket_id;

-- name: BucketSettingsList :many
SELECT b.bucket_id, b.name, b.rate_limit, b.rate_seconds, b.burst, b.calendar, b.calendar_limit, b.timezone, b.concurrency, b.retired_at
FROM buckets b
WHERE b.tenant_id = @tenant_id
ORDER BY b.name;

-- name: BucketSpend :exec
-- Takes the permits of the claimed actions, by the time of the grant.
UPDATE buckets b
SET tat = CASE WHEN b.rate_limit IS NULL THEN NULL ELSE greatest(b.tat, s.at) + s.n * bucket_interval(b) END,
    calendar_from = CASE WHEN b.calendar IS NULL THEN NULL ELSE greatest(b.calendar_from, bucket_period(b, s.at, t.timezone)) END,
    calendar_used = CASE
        WHEN b.calendar IS NULL THEN 0
        WHEN b.calendar_from >= bucket_period(b, s.at, t.timezone) THEN b.calendar_used + s.n
        ELSE s.n
    END,
    granted_at = s.at
FROM (
    SELECT unnest(@bucket_ids::bigint[]) AS bucket_id, unnest(@granted_at::timestamptz[]) AS at, unnest(@counts::integer[]) AS n
) s, tenants t
WHERE b.bucket_id = s.bucket_id AND t.tenant_id = b.tenant_id;

-- name: BucketStateList :many
-- The current usage of each bucket's limits; -1, '' and the zero time mean none.
-- The counts of rows stop at @most, so that a long queue costs no more.
SELECT
    b.name, b.limited,
    (CASE WHEN b.rate_limit IS NOT NULL OR b.calendar IS NOT NULL THEN bucket_tokens(b, c.at, t.timezone) ELSE -1 END)::bigint AS permits,
    (CASE
        WHEN b.calendar IS NULL THEN -1
        WHEN b.calendar_from >= bucket_period(b, c.at, t.timezone) THEN b.calendar_used
        ELSE 0
    END)::bigint AS calendar_used,
    (CASE WHEN b.opens_at > c.at THEN b.opens_at ELSE '0001-01-01 00:00:00+00' END)::timestamptz AS opens_at,
    (CASE WHEN b.closed_until > c.at THEN b.closed_until ELSE '0001-01-01 00:00:00+00' END)::timestamptz AS closed_until,
    (CASE WHEN b.closed_until > c.at THEN coalesce(b.closed_by, '') ELSE '' END)::text AS closed_by,
    bucket_paused(b.tenant_id, b.name)::boolean AS paused,
    bucket_in_use(b.bucket_id, c.at) AS in_use, d.n::bigint AS due, w.n::bigint AS waiting
FROM (SELECT clock_timestamp() AS at) c
CROSS JOIN buckets b
JOIN tenants t ON t.tenant_id = b.tenant_id
CROSS JOIN LATERAL (
    SELECT count(1) AS n
    FROM (
        SELECT FROM outbox o
        WHERE o.bucket_id = b.bucket_id AND o.next_attempt_at <= c.at AND (o.lease_until IS NULL OR o.lease_until < c.at)
        LIMIT @most::bigint
    ) x
) d
CROSS JOIN LATERAL (
    SELECT count(1) AS n
    FROM (
        SELECT FROM outbox o
        WHERE o.bucket_id = b.bucket_id AND o.next_attempt_at > c.at AND (o.lease_until IS NULL OR o.lease_until < c.at)
        LIMIT @most::bigint
    ) x
) w
WHERE b.tenant_id = @tenant_id AND (cardinality(@names::text[]) = 0 OR b.name = ANY (@names::text[]))
ORDER BY b.name;
