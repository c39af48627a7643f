-- name: ApprovalMessageDelete :exec
DELETE FROM approval_messages n
WHERE n.tenant_id = @tenant_id AND n.subscription_id = @subscription_id AND n.delivery_id = ANY (@delivery_ids::uuid[]);

-- name: ApprovalMessageInsertMany :exec
INSERT INTO approval_messages (tenant_id, subscription_id, action_id, delivery_id)
SELECT @tenant_id, @subscription_id, unnest(@action_ids::uuid[]), unnest(@delivery_ids::uuid[])
ON CONFLICT ON CONSTRAINT approval_messages_pkey DO NOTHING;

-- name: ApprovalMessageList :many
-- Messages about some actions, and messages sent by some deliveries.
SELECT n.action_id, n.delivery_id
FROM approval_messages n
WHERE n.tenant_id = @tenant_id AND n.subscription_id = @subscription_id
    AND (n.action_id = ANY (@action_ids::uuid[]) OR n.delivery_id = ANY (@delivery_ids::uuid[]))
ORDER BY n.action_id, n.delivery_id;
