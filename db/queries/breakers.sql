-- name: BreakerClose :execrows
-- A call went well, so the source is in use again.
UPDATE breakers b
SET state = 'closed', since = now(), trips = 0, worker = @worker
WHERE b.tenant_id = @tenant_id AND b.source_id = @source_id AND b.state <> 'closed';

-- name: BreakerList :many
SELECT b.source_id, b.state, b.cause, b.since, b.open_until, b.trips, b.worker
FROM breakers b
WHERE b.tenant_id = @tenant_id
ORDER BY b.source_id;

-- name: BreakerOpen :exec
-- Leaves a source alone for a time: each opening without a closing between
-- doubles it, up to five minutes, unless the provider said how long. Two
-- workers that open at once count as one.
INSERT INTO breakers AS b (tenant_id, source_id, state, cause, open_until, worker)
VALUES (@tenant_id, @source_id, 'open', @cause, now() + make_interval(secs => @seconds::float8), @worker)
ON CONFLICT ON CONSTRAINT breakers_pkey DO UPDATE
SET state = 'open',
    cause = excluded.cause,
    since = CASE WHEN b.state = 'closed' THEN now() ELSE b.since END,
    trips = CASE WHEN b.state = 'open' THEN b.trips ELSE b.trips + 1 END,
    open_until = greatest(
        CASE WHEN b.state = 'open' THEN b.open_until END,
        CASE
            WHEN b.state = 'half-open' AND excluded.cause = 'failures'
                THEN least(now() + (excluded.open_until - now()) * power(2, least(b.trips, 10)), greatest(excluded.open_until, now() + interval '5 minutes'))
            ELSE excluded.open_until
        END),
    worker = excluded.worker;

-- name: BreakerProbe :many
-- The right to make the one call that shows whether a source is well again.
-- Compare-and-set: of two workers at once one gets it. It lapses, should the
-- worker vanish.
UPDATE breakers b
SET state = 'half-open', open_until = now() + make_interval(secs => @seconds::float8), worker = @worker
FROM (
    SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@source_ids::text[]) AS source_id
) p
WHERE b.tenant_id = p.tenant_id AND b.source_id = p.source_id AND b.state <> 'closed' AND b.open_until <= now()
RETURNING b.tenant_id, b.source_id;

-- name: BreakerRelease :execrows
-- The right was not used: the next one may have it.
UPDATE breakers b
SET state = 'open', open_until = now()
WHERE b.tenant_id = @tenant_id AND b.source_id = @source_id AND b.state = 'half-open' AND b.worker = @worker;

-- name: BreakerReset :execrows
-- Lets calls to a source through at once. Which opening it was, and how many
-- came before it, is forgotten.
UPDATE breakers b
SET state = 'closed', cause = @cause, since = now(), open_until = now(), trips = 0
WHERE b.tenant_id = @tenant_id AND b.source_id = @source_id;

-- name: BreakerStanding :many
-- The sources of some tenants that are not in full use.
SELECT b.tenant_id, b.source_id, b.state, b.cause, b.since, b.open_until, b.trips
FROM breakers b
WHERE b.tenant_id = ANY (@tenant_ids::uuid[]) AND b.state <> 'closed';
