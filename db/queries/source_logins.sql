-- name: SourceClientDelete :exec
DELETE FROM source_clients c WHERE c.tenant_id = @tenant_id AND c.issuer = @issuer AND NOT c.configured;

-- name: SourceClientGet :one
SELECT c.secret, c.configured FROM source_clients c WHERE c.tenant_id = @tenant_id AND c.issuer = @issuer;

-- name: SourceClientPut :exec
INSERT INTO source_clients (tenant_id, issuer, secret, configured) VALUES (@tenant_id, @issuer, @secret, @configured)
ON CONFLICT ON CONSTRAINT source_clients_pkey DO UPDATE SET secret = excluded.secret, configured = excluded.configured, created_at = now();

-- name: SourceLoginClaim :one
-- Begins the renewal of a token, unless another one is under way or has replaced
-- the token.
UPDATE source_logins l
SET renewal = @renewal::uuid, renewing_until = now() + make_interval(secs => @lease_seconds::double precision)
WHERE l.tenant_id = @tenant_id AND l.source_id = @source_id AND l.version = @version AND l.lost_at IS NULL
    AND (l.renewing_until IS NULL OR l.renewing_until < now())
RETURNING l.secret;

-- name: SourceLoginDelete :one
DELETE FROM source_logins l WHERE l.tenant_id = @tenant_id AND l.source_id = @source_id RETURNING l.secret;

-- name: SourceLoginDue :many
-- Logins of any tenant whose token is to be renewed.
SELECT l.tenant_id, l.source_id
FROM source_logins l
JOIN sources s ON s.tenant_id = l.tenant_id AND s.source_id = l.source_id
WHERE l.renew_at <= now() AND l.lost_at IS NULL AND s.enabled AND (l.renewing_until IS NULL OR l.renewing_until < now())
ORDER BY l.renew_at
LIMIT @most::bigint;

-- name: SourceLoginGet :one
-- interrupted reports whether a renewal began and did not end within its lease.
SELECT l.secret, l.version, (l.lost_at IS NOT NULL)::boolean AS lost, (coalesce(l.renewing_until < now(), false))::boolean AS interrupted,
    (l.renewed_at > now() - make_interval(secs => @fresh_seconds::double precision))::boolean AS fresh, l.needed_scopes, l.needed_tools
FROM source_logins l WHERE l.tenant_id = @tenant_id AND l.source_id = @source_id;

-- name: SourceLoginLost :execrows
UPDATE source_logins l
SET lost_at = now(), lost_reason = @reason::text, renewal = NULL, renewing_until = NULL, renew_at = NULL
WHERE l.tenant_id = @tenant_id AND l.source_id = @source_id AND l.lost_at IS NULL
    AND l.renewal = @renewal::uuid;

-- name: SourceLoginNeeds :one
-- Adds scopes that a call lacked, unless the token was replaced meanwhile. Without a
-- tool, or with too many, all calls need them.
UPDATE source_logins l
SET needed_scopes = (SELECT array_agg(DISTINCT s.scope ORDER BY s.scope) FROM unnest(l.needed_scopes || @scopes::text[]) AS s (scope)),
    needed_tools = CASE
        WHEN @tool::text <> '' AND (l.needed_scopes = '{}' OR l.needed_tools <> '{}') AND cardinality(l.needed_tools) < 100
        THEN (SELECT array_agg(DISTINCT t.tool ORDER BY t.tool) FROM unnest(l.needed_tools || @tool::text) AS t (tool))
        ELSE '{}' END
WHERE l.tenant_id = @tenant_id AND l.source_id = @source_id AND l.version = @version AND l.lost_at IS NULL
RETURNING l.needed_scopes;

-- name: SourceLoginPut :exec
INSERT INTO source_logins (tenant_id, source_id, issuer, scope, secret, login_by, expires_at, renew_at)
VALUES (@tenant_id, @source_id, @issuer, @scope, @secret, @login_by, @expires_at, @renew_at)
ON CONFLICT ON CONSTRAINT source_logins_pkey DO UPDATE
SET issuer = excluded.issuer, scope = excluded.scope, secret = excluded.secret, login_by = excluded.login_by, login_at = clock_timestamp(), renewed_at = now(),
    expires_at = excluded.expires_at, renew_at = excluded.renew_at, version = source_logins.version + 1, renewal = NULL, renewing_until = NULL,
    failures = 0, lost_at = NULL, lost_reason = NULL, needed_scopes = '{}', needed_tools = '{}';

-- name: SourceLoginPutOff :exec
-- Ends a renewal that found the authorization server unavailable.
UPDATE source_logins l
SET renewal = NULL, renewing_until = NULL, failures = l.failures + 1,
    renew_at = now() + make_interval(secs => least(300, 5 * power(2, least(l.failures, 10))))
WHERE l.tenant_id = @tenant_id AND l.source_id = @source_id AND l.renewal = @renewal::uuid;

-- name: SourceLoginRenewed :execrows
-- Replaces the token, unless the lease of the renewal ended and another one began.
UPDATE source_logins l
SET secret = @secret, scope = @scope, expires_at = @expires_at, renew_at = @renew_at, renewed_at = now(), version = l.version + 1, renewal = NULL, renewing_until = NULL, failures = 0
WHERE l.tenant_id = @tenant_id AND l.source_id = @source_id AND l.renewal = @renewal::uuid;

-- name: SourceLoginStateGet :one
SELECT s.source_id, s.secret FROM source_login_states s
WHERE s.tenant_id = @tenant_id AND s.state_hash = @state_hash AND s.begun_by = @begun_by AND s.expires_at > now();

-- name: SourceLoginStatePut :exec
-- Stores a begun login, and removes those that ended.
WITH ended AS (
    DELETE FROM source_login_states s WHERE s.tenant_id = @tenant_id AND s.expires_at <= now()
)
INSERT INTO source_login_states (tenant_id, source_id, state_hash, begun_by, secret, expires_at)
VALUES (@tenant_id, @source_id, @state_hash, @begun_by, @secret, @expires_at);

-- name: SourceLoginStateTake :execrows
-- Uses a begun login: of two transactions, the second finds no row.
DELETE FROM source_login_states s
WHERE s.tenant_id = @tenant_id AND s.state_hash = @state_hash AND s.begun_by = @begun_by AND s.expires_at > now();
