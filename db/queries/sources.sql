-- name: SourceDelete :execrows
DELETE FROM sources WHERE tenant_id = @tenant_id AND source_id = @source_id;

-- name: SourceList :many
SELECT s.source_id, s.kind, s.config, s.secret, s.default_risk, s.enabled, s.listed_at, s.list_error
FROM sources s
WHERE s.tenant_id = @tenant_id
ORDER BY s.source_id;

-- name: SourceListed :exec
UPDATE sources SET listed_at = now(), list_error = nullif(@list_error::text, '')
WHERE tenant_id = @tenant_id AND source_id = @source_id;

-- name: SourceStale :many
-- Sources of any tenant whose listing is older than allowed.
SELECT s.tenant_id, s.source_id
FROM sources s
WHERE s.enabled AND (s.listed_at IS NULL OR s.listed_at < now() - make_interval(secs => @max_age_seconds::float8))
ORDER BY s.listed_at NULLS FIRST
LIMIT @most::bigint;

-- name: SourceUpsert :exec
INSERT INTO sources (tenant_id, source_id, kind, config, secret, default_risk, enabled)
VALUES (@tenant_id, @source_id, @kind, @config, @secret, @default_risk, @enabled)
ON CONFLICT ON CONSTRAINT sources_pkey DO UPDATE
SET kind = excluded.kind, config = excluded.config, secret = excluded.secret, default_risk = excluded.default_risk, enabled = excluded.enabled;
