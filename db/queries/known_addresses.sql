-- name: KnownAddressesMatch :many
-- The known names with one of some keys, the people of the tenant, and those of some
-- addresses and domains that are on the do-not-contact list.
(
    SELECT k.key, k.name, ''::text AS kind
    FROM (SELECT unnest(@keys::text[]) AS key) g
    JOIN known_addresses k ON k.tenant_id = @tenant_id AND k.key = g.key
    LIMIT 10000
)
UNION ALL
(
    SELECT '', o.email, 'person'
    FROM operators o
    WHERE o.tenant_id = @tenant_id AND o.email <> '' AND o.disabled_at IS NULL
    LIMIT 1000
)
UNION ALL
SELECT '', d.value, 'blocked'
FROM (SELECT unnest(@kinds::text[]) AS kind, unnest(@values::text[]) AS value) g
JOIN do_not_contact d ON d.tenant_id = @tenant_id AND d.kind = g.kind AND d.value = g.value
WHERE d.expires_at IS NULL OR d.expires_at > now();

-- name: KnownAddressesPut :exec
-- Remembers names by keys, each with the last action that has it.
INSERT INTO known_addresses AS k (tenant_id, key, name, action_id)
SELECT DISTINCT ON (g.key, g.name) @tenant_id::uuid, g.key, g.name, g.action_id
FROM (SELECT unnest(@keys::text[]) AS key, unnest(@names::text[]) AS name, unnest(@action_ids::uuid[]) AS action_id) g
ORDER BY g.key, g.name, g.action_id DESC
ON CONFLICT ON CONSTRAINT known_addresses_pkey DO UPDATE
SET action_id = excluded.action_id
WHERE k.action_id < excluded.action_id;
