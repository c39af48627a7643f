-- name: SubscriptionAdvance :exec
UPDATE subscriptions
SET cursor_txid = @cursor_txid::xid8, cursor_event = @cursor_event, cursor_item = @cursor_item, looked_at = clock_timestamp(), held_until = NULL
WHERE tenant_id = @tenant_id AND subscription_id = @subscription_id;

-- name: SubscriptionAutomations :many
-- The properties of subscriptions that policy needs.
SELECT s.subscription_id, s.source_id, s.enabled, s.version
FROM subscriptions s
WHERE s.tenant_id = @tenant_id;

-- name: SubscriptionClaim :one
-- The subscription with events to read that was processed longest ago and whose
-- receiver is not known to be unavailable: meanwhile events are better kept than
-- deliveries. FOR UPDATE SKIP LOCKED: subscriptions of another process are
-- skipped.
SELECT s.tenant_id, s.subscription_id, s.name, s.source_id, s.kinds, s.tool, s.min_risk, coalesce(s.channel, '')::text AS channel,
    coalesce(s.link, '')::text AS link, coalesce(s.rate_bucket, '')::text AS rate_bucket, s.show_mail, s.updated_at, s.cursor_txid, s.cursor_event, s.cursor_item
FROM subscriptions s
WHERE s.enabled
    AND (s.held_until IS NULL OR s.held_until <= now())
    AND NOT EXISTS (
        SELECT 1 FROM breakers b
        WHERE b.tenant_id = s.tenant_id AND b.source_id = s.source_id AND b.state = 'open' AND b.open_until > now())
    AND EXISTS (
        SELECT 1 FROM events e
        WHERE e.tenant_id = s.tenant_id
            AND (e.txid, e.event_id) > (s.cursor_txid, s.cursor_event)
            AND e.txid < pg_snapshot_xmin(pg_current_snapshot()))
ORDER BY s.looked_at
LIMIT 1
FOR NO KEY UPDATE OF s SKIP LOCKED;

-- name: SubscriptionCount :one
SELECT count(1)::bigint FROM subscriptions s WHERE s.tenant_id = @tenant_id AND s.name <> @name;

-- name: SubscriptionDelete :execrows
DELETE FROM subscriptions WHERE tenant_id = @tenant_id AND name = @name;

-- name: SubscriptionDisable :execrows
UPDATE subscriptions
SET enabled = false, disabled_reason = @disabled_reason::text, updated_at = now(), updated_by = @updated_by
WHERE tenant_id = @tenant_id AND subscription_id = @subscription_id AND enabled;

-- name: SubscriptionHold :many
-- Postpones a subscription whose processing failed.
UPDATE subscriptions
SET held_until = now() + make_interval(secs => @seconds::float8)
WHERE tenant_id = @tenant_id AND subscription_id = @subscription_id
RETURNING name;

-- name: SubscriptionList :many
-- All subscriptions of a tenant, or those with the ids. The number of pending
-- events is counted up to a bound.
SELECT s.subscription_id, s.name, s.source_id, s.kinds, s.tool, s.min_risk, coalesce(s.channel, '')::text AS channel,
    coalesce(s.link, '')::text AS link, coalesce(s.rate_bucket, '')::text AS rate_bucket, (s.signing_secret IS NOT NULL)::boolean AS has_signing_secret, s.show_mail,
    s.enabled, coalesce(s.disabled_reason, '')::text AS disabled_reason, s.created_at, s.updated_at, s.updated_by,
    (SELECT count(1) FROM (
        SELECT 1 FROM events e
        WHERE e.tenant_id = s.tenant_id AND (e.txid, e.event_id) > (s.cursor_txid, s.cursor_event)
        LIMIT @bound::bigint) b)::bigint AS behind
FROM subscriptions s
WHERE s.tenant_id = @tenant_id AND (coalesce(cardinality(@names::text[]), 0) = 0 OR s.name = ANY (@names::text[]))
ORDER BY s.name;

-- name: SubscriptionPut :one
-- Inserts a subscription, which begins after the existing events, or updates
-- one, which continues at its position unless it is reset. A missing secret
-- keeps the stored one.
INSERT INTO subscriptions AS s (
    tenant_id, subscription_id, name, source_id, kinds, tool, min_risk, channel, link, rate_bucket, signing_secret, show_mail, enabled,
    cursor_txid, cursor_event, updated_by)
VALUES (
    @tenant_id, @subscription_id, @name, @source_id, @kinds, @tool, @min_risk, nullif(@channel::text, ''), nullif(@link::text, ''),
    nullif(@rate_bucket::text, ''), sqlc.narg(signing_secret), @show_mail, @enabled, @cursor_txid::xid8, @cursor_event, @updated_by)
ON CONFLICT ON CONSTRAINT subscriptions_pkey DO UPDATE
SET source_id = excluded.source_id,
    kinds = excluded.kinds,
    tool = excluded.tool,
    min_risk = excluded.min_risk,
    channel = excluded.channel,
    link = excluded.link,
    rate_bucket = excluded.rate_bucket,
    signing_secret = coalesce(excluded.signing_secret, s.signing_secret),
    show_mail = excluded.show_mail,
    enabled = excluded.enabled,
    disabled_reason = NULL,
    held_until = NULL,
    cursor_txid = CASE WHEN @from_now::boolean THEN excluded.cursor_txid ELSE s.cursor_txid END,
    cursor_event = CASE WHEN @from_now::boolean THEN excluded.cursor_event ELSE s.cursor_event END,
    cursor_item = CASE WHEN @from_now::boolean THEN 0 ELSE s.cursor_item END,
    updated_at = now(),
    updated_by = excluded.updated_by
RETURNING s.subscription_id;
