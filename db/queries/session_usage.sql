-- name: SessionPending :one
-- Counts the envelopes of a session that wait for a decision, up to a bound, and
-- returns the expiry of the first of them, which frees capacity.
SELECT count(1)::bigint AS pending, coalesce(extract(epoch FROM min(w.approval_expires_at) - clock_timestamp()), 0)::float8 AS room_in
FROM (
    SELECT a.approval_expires_at
    FROM actions a
    WHERE a.tenant_id = @tenant_id
        AND a.session_id = @session_id::text
        AND a.approval_state = 'required'
        AND a.approval_expires_at > clock_timestamp()
    ORDER BY a.approval_expires_at DESC
    LIMIT @most::bigint
) w;

-- name: SessionUsagePrune :execrows
-- Deletes the counters of sessions whose minute is long over.
DELETE FROM session_usage u WHERE u.window_from < now() - interval '1 hour';

-- name: SessionUsageSet :exec
UPDATE session_usage SET used = @used WHERE tenant_id = @tenant_id AND session_id = @session_id;

-- name: SessionUsageTake :one
-- Counts envelopes of a session in its current minute, or begins another. The
-- row stays locked until the transaction ends, and the clock is read under the
-- lock, so that minutes follow one another.
INSERT INTO session_usage AS u (tenant_id, session_id, window_from, used)
VALUES (@tenant_id, @session_id, clock_timestamp(), @taken)
ON CONFLICT ON CONSTRAINT session_usage_pkey DO UPDATE
SET (window_from, used) = (
    SELECT
        CASE WHEN u.window_from > c.at - interval '1 minute' THEN u.window_from ELSE c.at END,
        CASE WHEN u.window_from > c.at - interval '1 minute' THEN u.used ELSE 0 END + excluded.used
    FROM (SELECT clock_timestamp() AS at) c
)
RETURNING u.used, extract(epoch FROM u.window_from + interval '1 minute' - clock_timestamp())::float8 AS room_in;
