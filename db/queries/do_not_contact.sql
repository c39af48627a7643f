-- name: DoNotContactDeleteMany :many
DELETE FROM do_not_contact d
USING (SELECT unnest(@kinds::text[]) AS kind, unnest(@values::text[]) AS value) g
WHERE d.tenant_id = @tenant_id AND d.kind = g.kind AND d.value = g.value
RETURNING d.kind, d.value;

-- name: DoNotContactEnds :many
-- The expiry of active entries; NULL means never.
SELECT d.kind, d.value, d.expires_at
FROM do_not_contact d
JOIN (SELECT unnest(@kinds::text[]) AS kind, unnest(@values::text[]) AS value) g ON d.kind = g.kind AND d.value = g.value
WHERE d.tenant_id = @tenant_id AND (d.expires_at IS NULL OR d.expires_at > now());

-- name: DoNotContactList :many
SELECT d.kind, d.value, d.reason, d.source, d.expires_at, d.created_at, d.created_by
FROM do_not_contact d
WHERE d.tenant_id = @tenant_id
    AND (d.kind, d.value) > (@after_kind::text, @after_value::text)
    AND (@kind::text = '' OR d.kind = @kind)
    AND starts_with(d.value, @prefix::text)
    AND (@expired::boolean OR d.expires_at IS NULL OR d.expires_at > now())
ORDER BY d.kind, d.value
LIMIT @most::bigint;

-- name: DoNotContactMatch :many
-- The recipients of a batch that are on their tenant's list. With
-- plus-addressing, addresses that differ only in the suffix are equal.
WITH asked AS (
    SELECT
        unnest(@indexes::integer[]) AS index,
        unnest(@tenant_ids::uuid[]) AS tenant_id,
        unnest(@kinds::text[]) AS kind,
        unnest(@values::text[]) AS value,
        unnest(@bares::text[]) AS bare
)
SELECT a.index::integer AS index, d.kind, d.reason
FROM asked a
JOIN do_not_contact d ON d.tenant_id = a.tenant_id AND d.kind = a.kind AND d.value = a.value
WHERE d.expires_at IS NULL OR d.expires_at > now()
UNION ALL
SELECT a.index::integer AS index, d.kind, d.reason
FROM asked a
JOIN tenants t ON t.tenant_id = a.tenant_id AND t.plus_addressing
JOIN do_not_contact d ON d.tenant_id = a.tenant_id AND d.kind = a.kind AND d.bare = a.bare AND d.value <> a.value
WHERE d.expires_at IS NULL OR d.expires_at > now();

-- name: DoNotContactUpsertMany :many
-- Reports of each entry whether it is new. No entry may occur twice in one
-- statement.
INSERT INTO do_not_contact AS d (tenant_id, kind, value, bare, reason, source, expires_at, created_by)
SELECT @tenant_id, unnest(@kinds::text[]), unnest(@values::text[]), unnest(@bares::text[]), unnest(@reasons::text[]), unnest(@sources::text[]),
    nullif(unnest(@expire_ats::timestamptz[]), '0001-01-01 00:00:00+00'), @created_by
ON CONFLICT ON CONSTRAINT do_not_contact_pkey DO UPDATE
SET bare = excluded.bare, reason = excluded.reason, source = excluded.source, expires_at = excluded.expires_at
RETURNING d.kind, (d.xmax = 0)::boolean AS added;
