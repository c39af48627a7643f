-- name: LostCallFind :many
-- Returns the lost calls of actions that proposers propose again. A call whose outcome is
-- pending had no effect.
SELECT l.tenant_id, l.external_id, l.outcome, l.worker, l.called_at
FROM lost_calls l
JOIN (SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@external_ids::text[]) AS external_id) r
    ON r.tenant_id = l.tenant_id AND r.external_id = l.external_id
WHERE NOT l.known AND l.outcome <> 'pending';

-- name: LostCallPut :exec
-- Records calls that were made and whose commits were lost, of tenants that are there.
INSERT INTO lost_calls (tenant_id, action_id, external_id, source_id, tool_name, effect, outcome, code, provider_id, worker, called_at, known)
SELECT r.tenant_id, r.action_id, r.external_id, r.source_id, r.tool_name, r.effect, r.outcome, r.code, r.provider_id, @worker::text, r.called_at,
    EXISTS (SELECT FROM actions a WHERE a.tenant_id = r.tenant_id AND a.action_id = r.action_id)
FROM (
    SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id, unnest(@external_ids::text[]) AS external_id,
        unnest(@source_ids::text[]) AS source_id, unnest(@tool_names::text[]) AS tool_name, unnest(@effects::text[]) AS effect,
        unnest(@outcomes::text[]) AS outcome, unnest(@codes::text[]) AS code, unnest(@provider_ids::text[]) AS provider_id,
        unnest(@called_ats::timestamptz[]) AS called_at
) r
JOIN tenants t ON t.tenant_id = r.tenant_id
ON CONFLICT ON CONSTRAINT lost_calls_pkey DO UPDATE SET outcome = excluded.outcome, code = excluded.code, provider_id = excluded.provider_id;
