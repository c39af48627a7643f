-- name: TriageBriefBuckets :many
-- Counts the messages of an account in a time by bucket, and those with a question.
SELECT coalesce(d.bucket, '')::text AS bucket, count(1) AS messages, count(1) FILTER (WHERE d.question) AS questions
FROM triage_messages m
LEFT JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.received_at > @since AND m.received_at <= @until AND NOT m.outgoing
GROUP BY 1;

-- name: TriageBriefAttention :many
-- The messages of an account in a time that need its owner, most urgent first.
SELECT m.message_id, m.sender, m.sender_name, m.subject, m.received_at, d.bucket, d.question
FROM triage_messages m
JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.received_at > @since AND m.received_at <= @until AND NOT m.outgoing
    AND (d.bucket IN ('urgent', 'actionable') OR d.question)
ORDER BY array_position('{urgent,actionable,informational,archived}'::text[], d.bucket), m.received_at DESC, m.message_id
LIMIT @most::bigint;

-- name: TriageBriefMoved :many
-- Counts the messages of an account that left the inbox in a time, by the action of
-- triage that moved them, or else by their folder.
SELECT coalesce(p.action, f.use, '')::text AS moved, count(1) AS messages
FROM triage_messages m
LEFT JOIN LATERAL (
    SELECT t.action FROM triage_proposals t
    WHERE t.tenant_id = m.tenant_id AND t.message_id = m.message_id AND t.action IN ('archive', 'quarantine', 'trash', 'snooze') AND m.touched_at IS NULL
    ORDER BY t.proposed_at DESC
    LIMIT 1
) p ON true
LEFT JOIN LATERAL (
    SELECT o.use FROM triage_locations l
    JOIN triage_folders o ON o.tenant_id = l.tenant_id AND o.account_id = l.account_id AND o.folder = l.folder
    WHERE l.tenant_id = m.tenant_id AND l.message_id = m.message_id
    ORDER BY o.use
    LIMIT 1
) f ON true
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.left_at > @since::timestamptz AND m.left_at <= @until::timestamptz AND NOT m.outgoing
GROUP BY 1;

-- name: TriageZone :one
-- The time zone of a tenant.
SELECT t.timezone FROM tenants t WHERE t.tenant_id = @tenant_id;
