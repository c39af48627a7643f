-- Texts that language models write about messages. The API requests them; triage
-- has them written.

-- name: TriageTextAsk :many
-- Requests a text; no row if one of the kind already waits, if the owner alone
-- wrote the message, or if there are too many of it.
INSERT INTO triage_texts (tenant_id, account_id, message_id, kind, note, asked_by)
SELECT m.tenant_id, m.account_id, m.message_id, @kind, @note, @asked_by
FROM triage_messages m
WHERE m.tenant_id = @tenant_id AND m.message_id = @message_id AND NOT m.outgoing
    AND (SELECT count(1) FROM triage_texts t WHERE t.tenant_id = m.tenant_id AND t.message_id = m.message_id) < @most::bigint
ON CONFLICT (tenant_id, message_id, kind) WHERE ended_at IS NULL DO NOTHING
RETURNING text_no;

-- name: TriageTextWanted :exec
-- Requests texts by the rule of the account, once per message.
INSERT INTO triage_texts (tenant_id, account_id, message_id, kind, asked_by)
SELECT @tenant_id, @account_id, w.message_id, w.kind, @asked_by
FROM (SELECT unnest(@message_ids::uuid[]) AS message_id, unnest(@kinds::text[]) AS kind) w
WHERE NOT EXISTS (SELECT 1 FROM triage_texts t WHERE t.tenant_id = @tenant_id AND t.message_id = w.message_id AND t.kind = w.kind)
ON CONFLICT (tenant_id, message_id, kind) WHERE ended_at IS NULL DO NOTHING;

-- name: TriageTextList :many
SELECT t.text_no, t.kind, t.note, t.asked_by, t.asked_at, t.ended_at, t.text, t.problem, t.model, t.prompt, coalesce(t.external_id, '')::text AS external_id
FROM triage_texts t
WHERE t.tenant_id = @tenant_id AND t.message_id = @message_id
ORDER BY t.text_no;

-- name: TriageTextsDue :many
-- Requested texts about messages that were decided, in the order of the
-- requests.
SELECT t.text_no, t.message_id, t.kind, t.note, t.attempts, m.sender, m.sender_name, m.subject, m.body
FROM triage_texts t
JOIN triage_messages m ON m.tenant_id = t.tenant_id AND m.message_id = t.message_id
JOIN triage_decisions d ON d.tenant_id = t.tenant_id AND d.message_id = t.message_id
WHERE t.tenant_id = @tenant_id AND t.account_id = @account_id AND t.ended_at IS NULL
ORDER BY t.text_no
LIMIT @most::bigint;

-- name: TriageTextExamples :many
-- Bodies of mail of the owner, newest first: sent to a recipient, or in a folder, and
-- after these the listed ones.
SELECT m.body
FROM triage_messages m
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND (
        m.outgoing AND (m.header_id = ANY (@header_ids::text[]) OR @recipient::text = ANY (m.participants))
        OR (m.outgoing OR m.sender = ANY (@own::text[])) AND EXISTS (
            SELECT FROM triage_locations l WHERE l.tenant_id = m.tenant_id AND l.message_id = m.message_id AND l.folder = @folder::text
        )
    )
ORDER BY m.header_id = ANY (@header_ids::text[]), m.received_at DESC
LIMIT @most::bigint;

-- name: TriageTextEnd :execrows
-- Ends a waiting text. It locks only its row.
UPDATE triage_texts
SET ended_at = now(), attempts = attempts + 1, text = @text, problem = @problem, model = @model, prompt = @prompt, external_id = nullif(@external_id::text, '')
WHERE tenant_id = @tenant_id AND text_no = @text_no AND ended_at IS NULL;

-- name: TriageTextTried :exec
UPDATE triage_texts SET attempts = attempts + 1 WHERE tenant_id = @tenant_id AND text_no = @text_no AND ended_at IS NULL;
