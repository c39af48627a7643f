-- name: ProgramLoginDelete :exec
-- Deletes the login of a token with its refresh tokens; the token stays.
DELETE FROM program_logins p WHERE p.tenant_id = @tenant_id AND p.token_id = @token_id;

-- name: ProgramLoginGet :one
SELECT p.client_id, p.program, p.redirect_uri, p.resource, p.code_hash, p.code_challenge, p.code_used_at
FROM program_logins p
WHERE p.tenant_id = @tenant_id AND p.token_id = @token_id;

-- name: ProgramLoginInsert :exec
INSERT INTO program_logins (tenant_id, token_id, client_id, program, redirect_uri, resource, code_hash, code_challenge, code_expires_at)
VALUES (@tenant_id, @token_id, @client_id, @program, @redirect_uri, @resource, @code_hash, @code_challenge, @code_expires_at);

-- name: ProgramLoginRedeem :execrows
-- Uses a code once: of two transactions, the second waits for the row and then
-- finds the code used.
UPDATE program_logins p SET code_used_at = now()
WHERE p.tenant_id = @tenant_id AND p.code_hash = @code_hash AND p.code_used_at IS NULL AND p.code_expires_at > now();

-- name: ProgramLoginsPrune :exec
-- Revokes the tokens of consents whose code was not used in time.
WITH unused AS (
    DELETE FROM program_logins p
    WHERE p.tenant_id = @tenant_id AND p.code_used_at IS NULL AND p.code_expires_at < now() - interval '1 minute'
    RETURNING p.token_id
)
UPDATE api_tokens t SET revoked_at = now()
FROM unused u
WHERE t.tenant_id = @tenant_id AND t.token_id = u.token_id AND t.revoked_at IS NULL;

-- name: RefreshTokenGet :one
SELECT r.salt, coalesce(r.used_at > now() - make_interval(secs => @grace_seconds::double precision), false)::boolean AS recent
FROM refresh_tokens r
WHERE r.tenant_id = @tenant_id AND r.refresh_hash = @refresh_hash;

-- name: RefreshTokenInsert :exec
INSERT INTO refresh_tokens (tenant_id, token_id, refresh_hash) VALUES (@tenant_id, @token_id, @refresh_hash);

-- name: RefreshTokenUse :execrows
-- Uses a refresh token once: of two transactions, the second waits for the row and
-- then finds it used.
UPDATE refresh_tokens r SET used_at = now(), salt = @salt
WHERE r.tenant_id = @tenant_id AND r.refresh_hash = @refresh_hash AND r.used_at IS NULL;

-- name: SecretRenew :one
-- Gives a login another secret. The one before is valid for a while longer, for
-- requests that are under way.
UPDATE api_tokens t
SET previous_hash = CASE WHEN t.secret_until > now() THEN t.token_hash END,
    previous_until = CASE WHEN t.secret_until > now() THEN least(t.secret_until, now() + make_interval(secs => @overlap_seconds::double precision)) END,
    token_hash = @token_hash, secret_until = least(now() + make_interval(secs => @seconds::double precision), t.expires_at), rotated_at = now()
WHERE t.tenant_id = @tenant_id AND t.token_id = @token_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
RETURNING t.secret_until;

-- name: SecretSeconds :one
-- How long the secret of a valid login is valid.
SELECT extract(epoch FROM t.secret_until - now())::double precision AS seconds
FROM api_tokens t
WHERE t.tenant_id = @tenant_id AND t.token_id = @token_id AND t.token_hash = @token_hash AND t.secret_until > now()
    AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now());
