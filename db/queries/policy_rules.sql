-- name: PolicyRuleCount :one
-- Counts the rules of a tenant, except one.
SELECT count(1) FROM policy_rules r WHERE r.tenant_id = @tenant_id AND r.rule_id <> @rule_id;

-- name: PolicyRuleDelete :execrows
DELETE FROM policy_rules WHERE tenant_id = @tenant_id AND rule_id = @rule_id;

-- name: PolicyRuleList :many
-- All rules of a tenant, or those with the ids.
SELECT r.rule_id, r.automation_id, r.key, r.expression, r.mode, r.reason, r.enabled, r.version, r.updated_at, r.updated_by
FROM policy_rules r
WHERE r.tenant_id = @tenant_id AND (coalesce(cardinality(@rule_ids::text[]), 0) = 0 OR r.rule_id = ANY (@rule_ids::text[]))
ORDER BY r.rule_id;

-- name: PolicyRuleUpsert :exec
INSERT INTO policy_rules (tenant_id, rule_id, automation_id, key, expression, mode, reason, enabled, updated_by)
VALUES (@tenant_id, @rule_id, @automation_id, @key, @expression, @mode, @reason, @enabled, @updated_by)
ON CONFLICT ON CONSTRAINT policy_rules_pkey DO UPDATE
SET automation_id = excluded.automation_id, key = excluded.key, expression = excluded.expression, mode = excluded.mode, reason = excluded.reason,
    enabled = excluded.enabled, updated_at = now(), updated_by = excluded.updated_by;
