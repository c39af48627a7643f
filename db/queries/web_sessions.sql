-- name: LoginCodeInsert :exec
INSERT INTO login_codes (tenant_id, code_hash, person, operator_id, token_hash, expires_at)
VALUES (@tenant_id, @code_hash, @person, @operator_id, @token_hash, @expires_at);

-- name: LoginCodesPrune :exec
-- Deletes expired codes, and all but the newest of a person.
DELETE FROM login_codes c
WHERE c.tenant_id = @tenant_id
    AND (c.expires_at <= now() OR c.code_hash IN (
        SELECT o.code_hash FROM login_codes o WHERE o.tenant_id = @tenant_id AND o.person = @person ORDER BY o.created_at DESC OFFSET @keep));

-- name: OpenSessions :many
-- The browser sessions of all people, newest first, or the one with an id. The
-- name and the role are those of the person or the token that it acts as.
SELECT s.session_id, s.via, s.created_at, s.used_at, s.idle_at, s.expires_at, s.address, s.program, s.person, s.operator_id, s.token_id,
    coalesce(o.name, t.name, '')::text AS name, coalesce(o.role_set, o.role, t.role, '')::text AS role
FROM web_sessions s
LEFT JOIN operators o ON o.tenant_id = s.tenant_id AND o.operator_id = s.operator_id
LEFT JOIN api_tokens t ON t.tenant_id = s.tenant_id AND t.token_id = s.token_id
WHERE s.tenant_id = @tenant_id AND s.session_id < @before AND s.idle_at > now() AND s.expires_at > now()
    AND (sqlc.narg(session_id)::uuid IS NULL OR s.session_id = sqlc.narg(session_id)::uuid)
ORDER BY s.session_id DESC
LIMIT @most;

-- name: OperatorSessionsDelete :many
-- Deletes the browser sessions and login codes that act as an operator, and
-- returns the sessions that had not ended.
WITH codes AS (DELETE FROM login_codes c WHERE c.tenant_id = @tenant_id AND c.operator_id = @operator_id::uuid),
deleted AS (
    DELETE FROM web_sessions s WHERE s.tenant_id = @tenant_id AND s.operator_id = @operator_id::uuid
    RETURNING s.session_id, s.idle_at > now() AND s.expires_at > now() AS open
)
SELECT d.session_id FROM deleted d WHERE d.open ORDER BY d.session_id;

-- name: RefusedLoginCount :one
-- Counts a refused login, and returns the count of this hour.
INSERT INTO refused_logins AS r (tenant_id, about) VALUES (@tenant_id, @about)
ON CONFLICT (tenant_id, about) DO UPDATE SET
    logins = CASE WHEN r.since > now() - interval '1 hour' THEN r.logins + 1 ELSE 1 END,
    since = CASE WHEN r.since > now() - interval '1 hour' THEN r.since ELSE now() END
RETURNING r.logins;

-- name: RefusedLoginsPrune :exec
DELETE FROM refused_logins r WHERE r.tenant_id = @tenant_id AND r.since < now() - interval '1 day';

-- name: TokenSessionsDelete :many
-- Deletes the browser sessions that act as a token, and returns those that had
-- not ended.
WITH deleted AS (
    DELETE FROM web_sessions s WHERE s.tenant_id = @tenant_id AND s.token_id = @token_id::uuid
    RETURNING s.session_id, s.idle_at > now() AND s.expires_at > now() AS open
)
SELECT d.session_id FROM deleted d WHERE d.open ORDER BY d.session_id;

-- name: WebSessionDelete :execrows
-- Deletes a session of a person; with a token only if it acts as the token.
DELETE FROM web_sessions s
WHERE s.tenant_id = @tenant_id AND s.session_id = @session_id AND s.person = @person
    AND (sqlc.narg(token_id)::uuid IS NULL OR s.token_id = sqlc.narg(token_id)::uuid);

-- name: WebSessionInsert :exec
INSERT INTO web_sessions (tenant_id, session_id, secret_hash, via, person, operator_id, token_id, token_hash, idle_at, expires_at, address, program)
VALUES (@tenant_id, @session_id, @secret_hash, @via, @person, @operator_id, @token_id, @token_hash, @idle_at, @expires_at, @address, @program);

-- name: WebSessionTouch :one
-- An ended session is not extended.
UPDATE web_sessions s
SET used_at = now(), idle_at = least(now() + make_interval(secs => @idle_seconds::double precision), s.expires_at)
WHERE s.tenant_id = @tenant_id AND s.session_id = @session_id AND s.idle_at > now() AND s.expires_at > now()
RETURNING s.idle_at, s.expires_at;

-- name: WebSessions :many
-- Newest first: session ids are UUIDv7, which increase with time.
SELECT s.session_id, s.via, s.created_at, s.used_at, s.idle_at, s.expires_at, s.address, s.program
FROM web_sessions s
WHERE s.tenant_id = @tenant_id AND s.person = @person AND s.session_id < @before AND s.idle_at > now() AND s.expires_at > now()
    AND (sqlc.narg(token_id)::uuid IS NULL OR s.token_id = sqlc.narg(token_id)::uuid)
ORDER BY s.session_id DESC
LIMIT @most;

-- name: WebSessionsPrune :many
-- Deletes ended sessions, and all but the newest of a person. Returns those that
-- had not ended.
WITH deleted AS (
    DELETE FROM web_sessions s
    WHERE s.tenant_id = @tenant_id
        AND (s.expires_at <= now() OR s.session_id IN (
            SELECT o.session_id FROM web_sessions o WHERE o.tenant_id = @tenant_id AND o.person = @person ORDER BY o.session_id DESC OFFSET @keep))
    RETURNING s.session_id, s.idle_at > now() AND s.expires_at > now() AS open
)
SELECT d.session_id FROM deleted d WHERE d.open ORDER BY d.session_id;
