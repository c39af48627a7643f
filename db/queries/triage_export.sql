-- The data of triage about a mail account, a JSON object a row, without bodies and
-- other text that a model or a rule took from them, except the arguments of tries,
-- which the owner's tags allow. place is the key of a row in its order.

-- name: TriageExportFolders :many
SELECT f.folder AS place, jsonb_build_object('kind', 'folder', 'folder', f.folder, 'use', f.use, 'read_at', f.read_at, 'older_done_at', f.older_done_at)::jsonb AS line
FROM triage_folders f
WHERE f.tenant_id = @tenant_id AND f.account_id = @account_id AND f.folder > @after::text
ORDER BY f.folder
LIMIT @most::bigint;

-- name: TriageExportLabels :many
SELECT b.name AS place, jsonb_build_object('kind', 'label', 'label', b.name, 'description', coalesce(b.definition ->> 'description', ''), 'words', coalesce(nullif(b.definition -> 'words', 'null'), '[]'),
    'for', coalesce(nullif(b.definition -> 'for', 'null'), '[]'), 'against', coalesce(nullif(b.definition -> 'against', 'null'), '[]'), 'set_by', b.set_by, 'set_at', b.set_at, 'matched_at', b.matched_at)::jsonb AS line
FROM triage_labels b
WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id AND b.definition IS NOT NULL AND b.name > @after::text
ORDER BY b.name
LIMIT @most::bigint;

-- name: TriageExportMessages :many
-- In the order of the index on identity.
SELECT encode(m.identity, 'hex')::text AS place, jsonb_build_object(
    'kind', 'message', 'message_id', m.message_id, 'header_id', m.header_id, 'thread_id', m.thread_id, 'outgoing', m.outgoing, 'sender', m.sender,
    'sender_name', m.sender_name, 'list', m.list, 'subject', m.subject, 'sent_at', m.sent_at, 'received_at', m.received_at, 'size', m.size,
    'touched_at', m.touched_at, 'undone', m.undone,
    'locations', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('folder', l.folder, 'flags', l.flags) ORDER BY l.folder, l.key), '[]')
        FROM triage_locations l WHERE l.tenant_id = m.tenant_id AND l.message_id = m.message_id AND l.folder <> ''),
    'decision', (
        SELECT jsonb_build_object('decided_at', d.decided_at, 'run_id', d.run_id, 'reason', d.reason, 'act', d.act, 'category', d.category, 'priority', d.priority,
            'bucket', d.bucket, 'cohort', d.cohort, 'level', 'L' || d.level, 'confidence', d.confidence, 'question', d.question,
            'vetoes', coalesce(d.decision -> 'vetoes', '[]'), 'tier', d.tier, 'model', d.model)
        FROM triage_decisions d WHERE d.tenant_id = m.tenant_id AND d.message_id = m.message_id),
    'corrections', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('correction_no', c.correction_no, 'head', c.head, 'label', c.label, 'made_by', c.made_by, 'made_at', c.made_at,
            'retracted_at', c.retracted_at) ORDER BY c.correction_no), '[]')
        FROM triage_corrections c WHERE c.tenant_id = m.tenant_id AND c.message_id = m.message_id),
    'proposals', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('external_id', p.external_id, 'action', p.action, 'tool', (p.envelope #>> '{tool,source}') || ':' || (p.envelope #>> '{tool,name}'),
            'action_id', p.proposal_id, 'run_id', p.run_id, 'proposed_at', p.proposed_at, 'outcome', p.outcome) ORDER BY p.proposed_at, p.external_id), '[]')
        FROM triage_proposals p WHERE p.tenant_id = m.tenant_id AND p.message_id = m.message_id),
    'texts', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('text_no', t.text_no, 'text_kind', t.kind, 'asked_by', t.asked_by, 'asked_at', t.asked_at, 'ended_at', t.ended_at, 'model', t.model)
            ORDER BY t.text_no), '[]')
        FROM triage_texts t WHERE t.tenant_id = m.tenant_id AND t.message_id = m.message_id),
    'labels', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('label', b.label, 'score', b.score, 'because', b.because, 'holds', b.holds, 'decided_by', b.decided_by, 'labeled_at', b.labeled_at)
            ORDER BY b.label), '[]')
        FROM triage_labeled b WHERE b.tenant_id = m.tenant_id AND b.message_id = m.message_id),
    'tags', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('action', g.action, 'state', g.state, 'try', g.try, 'failures', g.failures, 'problem', g.problem, 'in_mailbox', g.in_mailbox,
            'tagged_by', g.tagged_by, 'tagged_at', g.tagged_at) ORDER BY g.action), '[]')
        FROM triage_tags g WHERE g.tenant_id = m.tenant_id AND g.message_id = m.message_id),
    'tries', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('id', y.log_id, 'action', y.action, 'try', y.try, 'external_id', y.external_id, 'tool', y.source_id || ':' || y.tool_name,
            'extracted', y.extracted, 'status', y.status, 'error', y.error, 'processed_at', y.processed_at) ORDER BY y.processed_at, y.log_id), '[]')
        FROM triage_tag_log y WHERE y.tenant_id = m.tenant_id AND y.message_id = m.message_id)
)::jsonb AS line
FROM triage_messages m
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.identity > decode(@after::text, 'hex')
ORDER BY m.identity
LIMIT @most::bigint;

-- name: TriageExportRuns :many
SELECT u.run_id::text AS place, jsonb_build_object('kind', 'run', 'run_id', u.run_id, 'run_kind', u.kind, 'started_at', u.started_at, 'ended_at', u.ended_at, 'read', u.read,
    'decided', u.decided, 'proposed', u.proposed, 'skipped', u.skipped)::jsonb AS line
FROM triage_runs u
WHERE u.tenant_id = @tenant_id AND u.account_id = @account_id AND u.run_id > @after::uuid
ORDER BY u.run_id
LIMIT @most::bigint;

-- name: TriageExportSenders :many
SELECT s.address AS place, jsonb_build_object('kind', 'sender', 'address', s.address, 'name', s.name, 'first_seen', s.first_seen, 'last_seen', s.last_seen,
    'received', s.received, 'sent', s.sent, 'replied', s.replied, 'accepted', s.accepted, 'refused', s.refused)::jsonb AS line
FROM triage_senders s
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.address > @after::text
ORDER BY s.address
LIMIT @most::bigint;

-- name: TriageExportSetAside :many
SELECT (s.folder || E'\n' || s.key)::text AS place, jsonb_build_object('kind', 'set_aside', 'folder', s.folder, 'key', s.key, 'received_at', s.received_at, 'size', s.size,
    'step', s.step, 'attempts', s.attempts, 'since', s.since, 'tried_at', s.tried_at)::jsonb AS line
FROM triage_set_aside s
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id
    AND (s.folder, s.key) > (split_part(@after::text, E'\n', 1), substr(@after::text, strpos(@after::text, E'\n') + 1))
ORDER BY s.folder, s.key
LIMIT @most::bigint;
