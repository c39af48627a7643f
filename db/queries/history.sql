-- name: HistoryAction :one
-- The proposal of an action for its history: its origin and its proposer.
SELECT a.origin, a.workflow_id, a.proposed_by, coalesce(p.name, '')::text AS proposer, p.operator_id
FROM actions a
LEFT JOIN proposers p ON p.proposer_id = a.proposed_by AND p.tenant_id = a.tenant_id
WHERE a.tenant_id = @tenant_id AND a.action_id = @action_id;

-- name: HistoryReversals :many
-- The reversals of an action, whose names are derived from its id.
SELECT n.action_id, n.created_at, n.phase, n.proposed_by, coalesce(p.name, '')::text AS proposer, p.operator_id
FROM envelopes n
LEFT JOIN proposers p ON p.proposer_id = n.proposed_by AND p.tenant_id = n.tenant_id
WHERE n.tenant_id = @tenant_id
    AND n.external_id BETWEEN 'revert:' || @action_id::uuid || ':000' AND 'revert:' || @action_id::uuid || ':999'
ORDER BY n.created_at;
