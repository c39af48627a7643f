-- name: SnapshotRuleDelete :execrows
DELETE FROM snapshot_rules r WHERE r.tenant_id = @tenant_id AND r.source_id = @source_id AND r.tool_name = @tool_name;

-- name: SnapshotRuleList :many
-- All snapshot rules of a tenant, or that of a tool.
SELECT r.source_id, r.tool_name, r.rule
FROM snapshot_rules r
WHERE r.tenant_id = @tenant_id AND (@tool_name::text = '' OR r.source_id = @source_id::text AND r.tool_name = @tool_name::text)
ORDER BY r.source_id, r.tool_name;

-- name: SnapshotRulePut :exec
INSERT INTO snapshot_rules (tenant_id, source_id, tool_name, rule)
VALUES (@tenant_id, @source_id, @tool_name, @rule)
ON CONFLICT ON CONSTRAINT snapshot_rules_pkey
DO UPDATE SET rule = excluded.rule;
