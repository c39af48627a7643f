-- name: HistoryAction :one
-- What the history of an action has of its proposal: where it came from, and who
-- proposed it, a token or a database login.
SELECT a.origin, a.workflow_id, a.proposed_by, coalesce(t.name, 'login ' || l.login, '')::text AS proposer,
    coalesce(t.operator_id, l.operator_id) AS operator_id
FROM actions a
LEFT JOIN api_tokens t ON t.token_id = a.proposed_by AND t.tenant_id = a.tenant_id
LEFT JOIN db_logins l ON l.login_id = a.proposed_by AND l.tenant_id = a.tenant_id
WHERE a.tenant_id = @tenant_id AND a.action_id = @action_id;

-- name: HistoryReversals :many
-- The reversals of an action, whose names follow from its id.
SELECT n.action_id, n.created_at, n.phase, n.proposed_by, coalesce(t.name, 'login ' || l.login, '')::text AS proposer,
    coalesce(t.operator_id, l.operator_id) AS operator_id
FROM envelopes n
LEFT JOIN api_tokens t ON t.token_id = n.proposed_by AND t.tenant_id = n.tenant_id
LEFT JOIN db_logins l ON l.login_id = n.proposed_by AND l.tenant_id = n.tenant_id
WHERE n.tenant_id = @tenant_id
    AND n.external_id BETWEEN 'revert:' || @action_id::uuid || ':000' AND 'revert:' || @action_id::uuid || ':999'
ORDER BY n.created_at;
