-- name: BreakerClose :execrows
-- Closes a breaker after a successful call.
UPDATE breakers b
SET state = 'closed', since = now(), openings = 0, worker = @worker
WHERE b.tenant_id = @tenant_id AND b.source_id = @source_id AND b.state <> 'closed';

-- name: BreakerList :many
SELECT b.source_id, b.state, b.cause, b.since, b.open_until, b.openings, b.worker
FROM breakers b
WHERE b.tenant_id = @tenant_id
ORDER BY b.source_id;

-- name: BreakerListNotClosed :many
-- The breakers of some tenants that are open or half-open.
SELECT b.tenant_id, b.source_id, b.state, b.cause, b.since, b.open_until, b.openings
FROM breakers b
WHERE b.tenant_id = ANY (@tenant_ids::uuid[]) AND b.state <> 'closed';

-- name: BreakerOpen :exec
-- Opens a breaker for a time: each opening since the last close doubles the
-- time, up to five minutes, unless the source requested one. Concurrent openings
-- by two workers count as one.
INSERT INTO breakers AS b (tenant_id, source_id, state, cause, open_until, worker)
VALUES (@tenant_id, @source_id, 'open', @cause, now() + make_interval(secs => @seconds::float8), @worker)
ON CONFLICT ON CONSTRAINT breakers_pkey DO UPDATE
SET state = 'open',
    cause = excluded.cause,
    since = CASE WHEN b.state = 'closed' THEN now() ELSE b.since END,
    openings = CASE WHEN b.state = 'open' THEN b.openings ELSE b.openings + 1 END,
    open_until = greatest(
        CASE WHEN b.state = 'open' THEN b.open_until END,
        CASE
            WHEN b.state = 'half-open' AND excluded.cause = 'failures'
                THEN least(now() + (excluded.open_until - now()) * power(2, least(b.openings, 10)), greatest(excluded.open_until, now() + interval '5 minutes'))
            ELSE excluded.open_until
        END),
    worker = excluded.worker;

-- name: BreakerProbe :many
-- Acquires the right to make the probe call by compare-and-set: of two
-- concurrent workers one gets the right. It expires in case that worker is lost.
UPDATE breakers b
SET state = 'half-open', open_until = now() + make_interval(secs => @seconds::float8), worker = @worker
FROM (
    SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@source_ids::text[]) AS source_id
) p
WHERE b.tenant_id = p.tenant_id AND b.source_id = p.source_id AND b.state <> 'closed' AND b.open_until <= now()
RETURNING b.tenant_id, b.source_id;

-- name: BreakerRelease :execrows
-- Releases the right to the probe call, which was not made.
UPDATE breakers b
SET state = 'open', open_until = now()
WHERE b.tenant_id = @tenant_id AND b.source_id = @source_id AND b.state = 'half-open' AND b.worker = @worker;

-- name: BreakerReset :execrows
-- Closes a breaker on behalf of a person.
UPDATE breakers b
SET state = 'closed', cause = @cause, since = now(), open_until = now(), openings = 0
WHERE b.tenant_id = @tenant_id AND b.source_id = @source_id;
