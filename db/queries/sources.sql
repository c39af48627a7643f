-- name: SourceAccept :execrows
UPDATE sources SET accepted_address = @address WHERE tenant_id = @tenant_id AND source_id = @source_id;

-- name: SourceDelete :execrows
DELETE FROM sources WHERE tenant_id = @tenant_id AND source_id = @source_id;

-- name: SourceList :many
SELECT s.source_id, s.kind, s.config, s.secret, s.default_risk, s.enabled, s.drift_guard, s.quarantine, s.listed_at, s.list_error, s.left_out, s.left_out_tools, s.unchecked_tools, s.skipped_lines,
    s.accepted_address, s.generation, s.on_lost_login, l.issuer, l.scope, l.login_by, l.login_at, l.expires_at, l.lost_at, l.lost_reason,
    coalesce(l.needed_scopes, '{}')::text[] AS needed_scopes, coalesce(l.needed_tools, '{}')::text[] AS needed_tools
FROM sources s
LEFT JOIN source_logins l ON l.tenant_id = s.tenant_id AND l.source_id = s.source_id
WHERE s.tenant_id = @tenant_id
ORDER BY s.source_id;

-- name: SourceListed :execrows
-- A request with a future time was made before the clock was set back; this
-- listing fulfills it.
UPDATE sources SET listed_at = clock_timestamp(), list_error = NULL, left_out = @left_out, left_out_tools = @left_out_tools, unchecked_tools = @unchecked_tools, list_failures = 0,
    known_at = coalesce(known_at, CASE WHEN @has_tools::boolean THEN now() END),
    refresh_asked_at = CASE WHEN refresh_asked_at <= clock_timestamp() THEN refresh_asked_at END
WHERE tenant_id = @tenant_id AND source_id = @source_id;

-- name: SourceLoggedIn :exec
-- Another login is another generation of credentials, and requests an immediate
-- listing. A caller who may not accept addresses puts the source in quarantine.
UPDATE sources s
SET generation = gen_random_uuid(), list_failures = 0, refresh_asked_at = greatest(clock_timestamp(), s.listed_at + interval '1 microsecond'),
    accepted_address = CASE WHEN NOT @unaccepted::boolean THEN s.accepted_address END
WHERE s.tenant_id = @tenant_id AND s.source_id = @source_id;

-- name: SourceNotListed :exec
UPDATE sources SET listed_at = clock_timestamp(), list_error = @list_error::text, list_failures = list_failures + 1,
    refresh_asked_at = CASE WHEN refresh_asked_at <= clock_timestamp() THEN refresh_asked_at END
WHERE tenant_id = @tenant_id AND source_id = @source_id;

-- name: SourceRefreshAsk :one
-- Requests an immediate listing. The request is later than the last listing, so
-- that its fulfillment differs from an existing listing. A listing time from
-- before the clock was set back is cleared, since it would look like the
-- fulfillment.
UPDATE sources SET listed_at = CASE WHEN listed_at <= clock_timestamp() THEN listed_at END,
    refresh_asked_at = greatest(clock_timestamp(), CASE WHEN listed_at <= clock_timestamp() THEN listed_at + interval '1 microsecond' END)
WHERE tenant_id = @tenant_id AND source_id = @source_id AND enabled
RETURNING refresh_asked_at::timestamptz AS asked_at;

-- name: SourceSkipped :exec
UPDATE sources SET skipped_lines = @skipped_lines
WHERE tenant_id = @tenant_id AND source_id = @source_id AND skipped_lines <> @skipped_lines;

-- name: SourceStale :many
-- Sources of any tenant whose listing is older than allowed or requested. A
-- listing in the future is from before the clock was set back, and its age is
-- unknown. A failed one is retried sooner.
SELECT s.tenant_id, s.source_id
FROM sources s
WHERE s.enabled
    AND (s.listed_at IS NULL OR s.listed_at < now() - make_interval(secs => least(@max_age_seconds::float8,
            CASE WHEN s.list_failures > 0 THEN 5 * power(2, least(s.list_failures, 20) - 1) END))
        OR s.listed_at > now() + interval '1 minute' OR s.refresh_asked_at > s.listed_at)
ORDER BY s.refresh_asked_at > s.listed_at DESC NULLS LAST, s.listed_at NULLS FIRST
LIMIT @most::bigint;

-- name: SourceUpsert :exec
-- The address of a source whose tools were never listed is accepted, because
-- nothing was approved for another one; unless the caller must not accept it.
-- Another address, other credentials, or enabling requests an immediate listing.
INSERT INTO sources AS s (tenant_id, source_id, kind, config, secret, default_risk, enabled, drift_guard, quarantine, on_lost_login, accepted_address)
VALUES (@tenant_id, @source_id, @kind, @config, @secret, @default_risk, @enabled, @drift_guard, @quarantine, @on_lost_login,
    CASE WHEN NOT @unaccepted::boolean THEN @address::bytea END)
ON CONFLICT ON CONSTRAINT sources_pkey DO UPDATE
SET kind = excluded.kind, config = excluded.config, secret = excluded.secret, default_risk = excluded.default_risk, enabled = excluded.enabled,
    drift_guard = excluded.drift_guard, quarantine = excluded.quarantine, on_lost_login = excluded.on_lost_login,
    accepted_address = CASE WHEN @unaccepted::boolean OR s.known_at IS NULL THEN excluded.accepted_address ELSE s.accepted_address END,
    generation = CASE WHEN s.secret IS DISTINCT FROM excluded.secret THEN gen_random_uuid() ELSE s.generation END,
    list_failures = CASE WHEN (s.kind, s.config, s.secret, s.enabled) IS DISTINCT FROM (excluded.kind, excluded.config, excluded.secret, excluded.enabled)
        THEN 0 ELSE s.list_failures END,
    refresh_asked_at = CASE WHEN (s.kind, s.config, s.secret, s.enabled) IS DISTINCT FROM (excluded.kind, excluded.config, excluded.secret, excluded.enabled)
        THEN greatest(clock_timestamp(), s.listed_at + interval '1 microsecond') ELSE s.refresh_asked_at END;
