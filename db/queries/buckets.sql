-- name: BucketEnsure :many
-- The ids of buckets by name; unknown ones are made.
WITH wanted AS (
    SELECT unnest(@names::text[]) AS name
), made AS (
    INSERT INTO buckets (tenant_id, name)
    SELECT @tenant_id, w.name FROM wanted w
    ON CONFLICT ON CONSTRAINT buckets_tenant_id_name_key DO NOTHING
    RETURNING bucket_id, name
)
SELECT m.bucket_id, m.name FROM made m
UNION ALL
SELECT b.bucket_id, b.name FROM buckets b JOIN wanted w ON w.name = b.name WHERE b.tenant_id = @tenant_id;
