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

-- name: TriageBriefFound :many
-- The first findings of each kind for a brief, with their number: in mail of a time, or,
-- for meetings, tasks and travel, with a start up to a horizon. Those that are over,
-- were replaced or cancelled by a later message of the same sender, or are in a message
-- flagged as phishing are left out.
WITH candidates AS MATERIALIZED (
    SELECT f.message_id, f.finding_no
    FROM triage_messages m
    JOIN triage_findings f ON f.tenant_id = m.tenant_id AND f.message_id = m.message_id
    WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.received_at > @since::timestamptz AND m.received_at <= @until::timestamptz AND f.kind <> 'contact'
        AND (f.kind = 'receipt' OR f.starts_at IS NULL OR coalesce(f.ends_at, f.starts_at + interval '1 day') > @until::timestamptz)
    UNION
    SELECT f.message_id, f.finding_no
    FROM triage_findings f
    WHERE f.tenant_id = @tenant_id AND f.account_id = @account_id AND f.kind IN ('meeting', 'task', 'travel')
        AND f.starts_at > @earliest::timestamptz AND f.starts_at < @horizon::timestamptz AND coalesce(f.ends_at, f.starts_at + interval '1 day') > @until::timestamptz
), ranked AS (
    SELECT f.message_id, f.finding_no, count(1) OVER (PARTITION BY f.kind) AS total,
        rank() OVER (PARTITION BY f.kind ORDER BY f.starts_at, m.received_at, f.message_id, f.finding_no) AS place
    FROM candidates n
    JOIN triage_findings f ON f.tenant_id = @tenant_id AND f.message_id = n.message_id AND f.finding_no = n.finding_no
    JOIN triage_messages m ON m.tenant_id = f.tenant_id AND m.message_id = f.message_id
    LEFT JOIN triage_decisions d ON d.tenant_id = f.tenant_id AND d.message_id = f.message_id
    WHERE NOT f.cancels AND m.received_at <= @until::timestamptz AND NOT m.outgoing AND NOT coalesce((d.signals ->> 'phishing')::boolean, false)
        AND (f.key = '' OR NOT EXISTS (
            SELECT FROM triage_findings c
            JOIN triage_messages o ON o.tenant_id = c.tenant_id AND o.message_id = c.message_id
            WHERE c.tenant_id = f.tenant_id AND c.account_id = f.account_id AND c.key = f.key AND c.message_id <> f.message_id
                AND o.sender = m.sender AND o.sender <> '' AND o.received_at <= @until::timestamptz
                AND (c.sequence, o.received_at, c.message_id) > (f.sequence, m.received_at, f.message_id)
        ))
)
SELECT f.kind, f.starts_at, f.fields, f.message_id, m.sender, m.sender_name, m.subject, r.total
FROM ranked r
JOIN triage_findings f ON f.tenant_id = @tenant_id AND f.message_id = r.message_id AND f.finding_no = r.finding_no
JOIN triage_messages m ON m.tenant_id = f.tenant_id AND m.message_id = f.message_id
WHERE r.place <= @most::bigint
ORDER BY f.kind, r.place;

-- name: TriageZone :one
-- The time zone of a tenant.
SELECT t.timezone FROM tenants t WHERE t.tenant_id = @tenant_id;

-- name: TriageBriefLast :one
-- When the last brief of an account was due, and the end of the time that it covers.
SELECT coalesce(max(b.due_at), 'epoch')::timestamptz AS due_at, coalesce(max(b.until_at), 'epoch')::timestamptz AS until_at, count(1) AS briefs
FROM triage_briefs b
WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id AND b.kind <> 'alert';

-- name: TriageBriefLock :one
-- Locks an account for its briefs, unless another process has locked it: that one then
-- makes them. It returns the database's clock.
SELECT clock_timestamp()::timestamptz AS now
FROM triage_accounts a
WHERE a.tenant_id = @tenant_id AND a.account_id = @account_id AND a.version = @version AND triage_pause(a.tenant_id, a.account_id) <> 'paused'
FOR NO KEY UPDATE SKIP LOCKED;

-- name: TriageBriefInsert :many
-- Stores briefs, each once a channel and due time.
INSERT INTO triage_briefs (tenant_id, external_id, account_id, kind, channel, due_at, until_at, envelope)
SELECT @tenant_id, r ->> 'external_id', @account_id, @kind, r ->> 'channel', @due_at, @until_at, r -> 'envelope'
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT DO NOTHING
RETURNING external_id, envelope;

-- name: TriageBriefPropose :many
SELECT unnest(countersign.propose_many(@envelopes::jsonb[]))::uuid AS proposal_id;

-- name: TriageBriefProposed :exec
UPDATE triage_briefs b
SET proposal_id = n.proposal_id
FROM (SELECT unnest(@external_ids::text[]) AS external_id, unnest(@proposal_ids::uuid[]) AS proposal_id) n
WHERE b.tenant_id = @tenant_id AND b.external_id = n.external_id;

-- name: TriageBriefErase :exec
-- Erases the text of old briefs.
UPDATE triage_briefs b SET envelope = '{}' WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id AND b.made_at < now() - interval '30 days' AND b.envelope <> '{}';

-- name: TriageAlertsUrgent :many
-- Urgent messages of the last day that no alert was about, of an account that did not
-- have them when its settings were stored.
SELECT m.message_id, m.sender, m.sender_name, m.subject
FROM triage_decisions d
JOIN triage_messages m ON m.tenant_id = d.tenant_id AND m.message_id = d.message_id
WHERE d.tenant_id = @tenant_id AND d.account_id = @account_id AND d.bucket = 'urgent' AND d.received_at > @since AND m.alerted_at IS NULL AND m.left_at IS NULL
ORDER BY m.received_at, m.message_id
LIMIT @most::bigint;

-- name: TriageAlertsSent :one
-- Counts the alerts of an account since a time: each went to all channels.
SELECT count(DISTINCT b.due_at) AS alerts
FROM triage_briefs b
WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id AND b.kind = 'alert' AND b.due_at > @since::timestamptz;

-- name: TriageAlerted :exec
UPDATE triage_messages m SET alerted_at = @at::timestamptz WHERE m.tenant_id = @tenant_id AND m.message_id = ANY (@message_ids::uuid[]);

-- name: TriageBriefsMailed :many
-- The briefs about an account that were proposed as mails, unless their text is erased.
SELECT b.proposal_id::uuid AS proposal_id, (b.envelope #>> '{args,account}')::text AS account, (b.envelope #>> '{args,subject}')::text AS subject,
    (b.envelope #>> '{args,text}')::text AS text
FROM triage_briefs b
WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id AND b.proposal_id IS NOT NULL AND b.envelope #>> '{tool,name}' = 'message.brief'
    AND b.made_at > now() - interval '30 days'
ORDER BY b.made_at DESC
LIMIT 1000;
