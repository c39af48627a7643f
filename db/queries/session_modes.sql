-- name: SessionModeCount :one
-- Counts the unexpired modes of sessions of a tenant, except one.
SELECT count(1) FROM session_modes s
WHERE s.tenant_id = @tenant_id AND s.expires_at > now() AND (s.session_id, s.key) IS DISTINCT FROM (@session_id::text, @key::text);

-- name: SessionModeDelete :execrows
DELETE FROM session_modes WHERE tenant_id = @tenant_id AND session_id = @session_id AND key = @key;

-- name: SessionModeList :many
-- Unexpired modes; of one session, if it is given.
SELECT s.session_id, s.key, s.mode, s.expires_at, s.version, s.updated_at, s.updated_by
FROM session_modes s
WHERE s.tenant_id = @tenant_id AND s.expires_at > now() AND (@session_id::text = '' OR s.session_id = @session_id)
ORDER BY s.session_id, s.key;

-- name: SessionModePrune :execrows
-- Deletes expired modes of any tenant. Of two concurrent runs, one waits for the
-- other.
DELETE FROM session_modes s
WHERE (s.tenant_id, s.session_id, s.key) IN (
    SELECT e.tenant_id, e.session_id, e.key FROM session_modes e
    WHERE e.expires_at <= now()
    ORDER BY e.expires_at
    LIMIT @most
);

-- name: SessionModeUpsert :one
-- Returns the expiry, by the database's clock.
INSERT INTO session_modes AS s (tenant_id, session_id, key, mode, expires_at, updated_by)
VALUES (@tenant_id, @session_id, @key, @mode, now() + make_interval(secs => @seconds::float8), @updated_by)
ON CONFLICT ON CONSTRAINT session_modes_pkey DO UPDATE
SET mode = excluded.mode, expires_at = excluded.expires_at, updated_at = now(), updated_by = excluded.updated_by
RETURNING s.expires_at;
