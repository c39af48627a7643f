-- Data of triage that people read and set over the API.

-- name: MailActionArgs :many
-- The tool and the arguments, before all edits, of an action that triage proposed
-- or that is for a mailbox.
SELECT
    coalesce(p.envelope #>> '{tool,name}', a.tool_name)::text AS tool, coalesce(p.envelope -> 'args', v.proposed_args, a.args)::jsonb AS args,
    (p.proposal_id IS NOT NULL)::boolean AS own, coalesce(p.action, '')::text AS action
FROM actions a
JOIN sources s ON s.tenant_id = a.tenant_id AND s.source_id = a.source_id
LEFT JOIN triage_proposals p ON p.tenant_id = a.tenant_id AND p.external_id = a.external_id AND p.proposal_id = a.action_id AND a.external_id LIKE 'triage:%'
LEFT JOIN approvals v ON v.tenant_id = a.tenant_id AND v.action_id = a.action_id
WHERE a.tenant_id = @tenant_id AND a.action_id = @action_id::uuid AND (p.proposal_id IS NOT NULL OR s.kind = 'mail');

-- name: TriageActionMail :many
-- The messages that actions of triage are about.
SELECT a.action_id, m.message_id, c.name AS account, m.sender, m.sender_name, m.subject, m.received_at, coalesce(d.cohort, '')::text AS cohort,
    d.decision, d.signals
FROM actions a
JOIN triage_proposals p ON p.tenant_id = a.tenant_id AND p.external_id = a.external_id AND p.proposal_id = a.action_id
JOIN triage_messages m ON m.tenant_id = p.tenant_id AND m.message_id = p.message_id
JOIN triage_accounts c ON c.tenant_id = m.tenant_id AND c.account_id = m.account_id
LEFT JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[]) AND a.external_id LIKE 'triage:%';

-- name: TriageCorrectionAdd :many
-- Inserts a correction with the features of the decision; no row if the message
-- was never decided.
INSERT INTO triage_corrections (tenant_id, account_id, message_id, head, label, features, made_by)
SELECT d.tenant_id, d.account_id, d.message_id, @head, @label, d.features, @made_by
FROM triage_decisions d
WHERE d.tenant_id = @tenant_id AND d.message_id = @message_id AND d.features IS NOT NULL
RETURNING correction_no, made_at;

-- name: TriageCorrectionList :many
SELECT c.correction_no, c.head, c.label, c.made_by, c.made_at, c.retracted_at
FROM triage_corrections c
WHERE c.tenant_id = @tenant_id AND c.message_id = @message_id
ORDER BY c.correction_no;

-- name: TriageCorrectionRetract :execrows
UPDATE triage_corrections
SET retracted_at = now()
WHERE tenant_id = @tenant_id AND message_id = @message_id AND correction_no = @correction_no AND retracted_at IS NULL;

-- name: TriageCodeTexts :many
-- The texts of received messages that may have a one-time code, with their signals.
SELECT m.message_id, m.body, d.signals
FROM triage_messages m
JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE m.tenant_id = @tenant_id AND m.message_id = ANY (@message_ids::uuid[]) AND NOT m.outgoing
    AND (d.signals @> '{"symbols":[{"name":"ONE_TIME_CODE"}]}' OR concat(m.subject, m.body) LIKE '%コード%');

-- name: TriageFindingList :many
-- The findings in a message, unless it is flagged as phishing. A later message of the
-- same sender may have cancelled one.
SELECT f.kind, f.starts_at, f.ends_at, f.fields, (f.cancels OR f.key <> '' AND EXISTS (
    SELECT 1 FROM triage_findings c
    JOIN triage_messages o ON o.tenant_id = c.tenant_id AND o.message_id = c.message_id
    WHERE c.tenant_id = f.tenant_id AND c.account_id = f.account_id AND c.key = f.key AND c.cancels AND c.sequence >= f.sequence
        AND o.sender = m.sender AND o.sender <> ''
))::boolean AS cancelled
FROM triage_findings f
JOIN triage_messages m ON m.tenant_id = f.tenant_id AND m.message_id = f.message_id
LEFT JOIN triage_decisions d ON d.tenant_id = f.tenant_id AND d.message_id = f.message_id
WHERE f.tenant_id = @tenant_id AND f.message_id = @message_id AND NOT coalesce((d.signals ->> 'phishing')::boolean, false)
ORDER BY f.finding_no;

-- name: TriageLocationList :many
SELECT l.folder, l.flags
FROM triage_locations l
WHERE l.tenant_id = @tenant_id AND l.message_id = @message_id AND l.folder <> ''
ORDER BY l.folder, l.key;

-- name: TriageMessageGet :one
SELECT m.header_id, m.thread_id, m.list, m.body, m.sent_at, m.size, m.touched_at, m.undone, d.decision, d.signals, d.notes, d.skipped,
    coalesce(d.run_id, '00000000-0000-0000-0000-000000000000')::uuid AS run_id, coalesce(d.model, '')::text AS model, coalesce(d.reason, '')::text AS reason,
    coalesce(d.tier, '')::text AS tier, coalesce(d.prompt, '')::text AS prompt, coalesce(d.degraded, '')::text AS degraded, coalesce(d.answers, '[]')::jsonb AS answers,
    coalesce(d.wanted, '{}')::text[] AS wanted, coalesce(d.withheld, false)::boolean AS withheld
FROM triage_messages m
LEFT JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE m.tenant_id = @tenant_id AND m.message_id = @message_id;

-- name: TriageMessageList :many
-- A page of the received messages, newest first. Each account contributes up to
-- a page, so that its index is read from the beginning.
SELECT m.message_id, a.name AS account, m.sender, m.sender_name, m.subject, m.outgoing, m.received_at, m.decided_at, m.act, m.category, m.priority, m.bucket,
    m.cohort, m.level, m.confidence, m.question, m.proposals, m.decision, m.signals, m.has, m.labels
FROM triage_accounts a
CROSS JOIN LATERAL (
    SELECT i.message_id, i.sender, i.sender_name, i.subject, i.outgoing, i.received_at, d.decided_at, coalesce(d.act, '')::text AS act,
        coalesce(d.category, '')::text AS category, coalesce(d.priority, '')::text AS priority, coalesce(d.bucket, '')::text AS bucket,
        coalesce(d.cohort, '')::text AS cohort, coalesce(d.level, 0)::smallint AS level, coalesce(d.confidence, 0)::double precision AS confidence,
        coalesce(d.question, false)::boolean AS question,
        (SELECT count(1) FROM triage_proposals p WHERE p.tenant_id = i.tenant_id AND p.message_id = i.message_id)::bigint AS proposals,
        d.decision, d.signals, ARRAY(
            SELECT DISTINCT f.kind FROM triage_findings f
            WHERE f.tenant_id = i.tenant_id AND f.message_id = i.message_id AND NOT coalesce((d.signals ->> 'phishing')::boolean, false)
            ORDER BY f.kind
        )::text[] AS has,
        coalesce((
            SELECT jsonb_agg(jsonb_build_object('label', b.label, 'state', triage_label_state(b.holds, d.cohort), 'score', b.score, 'because', b.because) ORDER BY b.label)
            FROM triage_labeled b WHERE b.tenant_id = i.tenant_id AND b.message_id = i.message_id AND b.holds IS DISTINCT FROM false
        ), '[]')::jsonb AS labels
    FROM triage_messages i
    LEFT JOIN triage_decisions d ON d.tenant_id = i.tenant_id AND d.message_id = i.message_id
    WHERE i.tenant_id = a.tenant_id
        AND i.account_id = a.account_id
        AND NOT i.outgoing
        AND (sqlc.narg(before_at)::timestamptz IS NULL OR (i.received_at, i.message_id) < (sqlc.narg(before_at)::timestamptz, sqlc.narg(before_id)::uuid))
        AND (sqlc.narg(since)::timestamptz IS NULL OR i.received_at >= sqlc.narg(since)::timestamptz)
        AND (@sender::text = '' OR i.sender = @sender::text OR right(i.sender, length(@sender::text) + 1) = '@' || @sender::text)
        AND (@bucket::text = '' OR d.bucket = @bucket::text)
        AND (@category::text = '' OR d.category = @category::text)
        AND (@cohort::text = '' OR d.cohort = @cohort::text)
        AND (@has::text = '' OR NOT coalesce((d.signals ->> 'phishing')::boolean, false) AND EXISTS (
            SELECT 1 FROM triage_findings f WHERE f.tenant_id = i.tenant_id AND f.message_id = i.message_id AND f.kind = @has::text
        ))
        AND (sqlc.narg(question)::boolean IS NULL OR d.question = sqlc.narg(question)::boolean)
        AND (@label::text = '' OR EXISTS (
            SELECT FROM triage_labeled b WHERE b.tenant_id = i.tenant_id AND b.message_id = i.message_id AND b.label = @label::text AND b.holds IS DISTINCT FROM false
        ))
        AND (NOT @expired::boolean OR EXISTS (
            SELECT 1 FROM triage_proposals e
            WHERE e.tenant_id = i.tenant_id AND e.message_id = i.message_id AND e.outcome = 'expired' AND NOT e.outcome_due
                AND NOT EXISTS (SELECT 1 FROM triage_proposals n WHERE n.tenant_id = e.tenant_id AND n.repeats = e.external_id)
        ))
    ORDER BY i.received_at DESC, i.message_id DESC
    LIMIT @most::bigint
) m
WHERE a.tenant_id = @tenant_id AND (@account::text = '' OR a.name = @account::text)
ORDER BY m.received_at DESC, m.message_id DESC
LIMIT @most::bigint;

-- name: TriageMessageNamed :many
-- The messages with a Message-ID, up to a bound.
SELECT m.message_id
FROM triage_accounts a
JOIN triage_messages m ON m.tenant_id = a.tenant_id AND m.account_id = a.account_id AND m.header_id = @header_id::text AND m.header_id <> ''
WHERE a.tenant_id = @tenant_id
ORDER BY m.message_id
LIMIT @most::bigint;

-- name: TriageMessagePick :many
-- Messages by their ids, newest first.
SELECT m.message_id, a.name AS account, m.sender, m.sender_name, m.subject, m.outgoing, m.received_at, d.decided_at, coalesce(d.act, '')::text AS act,
    coalesce(d.category, '')::text AS category, coalesce(d.priority, '')::text AS priority, coalesce(d.bucket, '')::text AS bucket,
    coalesce(d.cohort, '')::text AS cohort, coalesce(d.level, 0)::smallint AS level, coalesce(d.confidence, 0)::double precision AS confidence,
    coalesce(d.question, false)::boolean AS question,
    (SELECT count(1) FROM triage_proposals p WHERE p.tenant_id = m.tenant_id AND p.message_id = m.message_id)::bigint AS proposals,
    d.decision, d.signals, ARRAY(
        SELECT DISTINCT f.kind FROM triage_findings f
        WHERE f.tenant_id = m.tenant_id AND f.message_id = m.message_id AND NOT coalesce((d.signals ->> 'phishing')::boolean, false)
        ORDER BY f.kind
    )::text[] AS has,
    coalesce((
        SELECT jsonb_agg(jsonb_build_object('label', b.label, 'state', triage_label_state(b.holds, d.cohort), 'score', b.score, 'because', b.because) ORDER BY b.label)
        FROM triage_labeled b WHERE b.tenant_id = m.tenant_id AND b.message_id = m.message_id AND b.holds IS DISTINCT FROM false
    ), '[]')::jsonb AS labels
FROM triage_messages m
JOIN triage_accounts a ON a.tenant_id = m.tenant_id AND a.account_id = m.account_id
LEFT JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE m.tenant_id = @tenant_id AND m.message_id = ANY (@message_ids::uuid[])
ORDER BY m.received_at DESC, m.message_id DESC;

-- name: TriageProposalList :many
-- The proposals about a message, with their outcomes: the action, or the reason
-- why there is none, and the reverting actions.
SELECT p.action, p.external_id, coalesce(p.repeats, '')::text AS repeats, p.fields, p.envelope, p.proposed_at, p.proposal_id, coalesce(e.action_id, '00000000-0000-0000-0000-000000000000')::uuid AS action_id, coalesce(e.phase, '')::text AS phase,
    coalesce(q.problem ->> 'detail', '')::text AS problem, (q.proposal_id IS NOT NULL AND q.answered_at IS NULL)::boolean AS waiting,
    ARRAY(
        SELECT r.action_id FROM envelopes r
        WHERE r.tenant_id = p.tenant_id
            AND r.external_id BETWEEN 'revert:' || e.action_id || ':000' AND 'revert:' || e.action_id || ':999'
        ORDER BY r.external_id
    )::uuid[] AS reversals
FROM triage_proposals p
LEFT JOIN proposals q ON q.tenant_id = p.tenant_id AND q.proposal_id = p.proposal_id
LEFT JOIN envelopes e ON e.tenant_id = p.tenant_id AND e.action_id = coalesce(q.action_id, p.proposal_id)
WHERE p.tenant_id = @tenant_id AND p.message_id = @message_id
ORDER BY p.proposed_at, p.external_id;

-- name: TriageRunAccount :one
SELECT r.account_id
FROM triage_runs r
WHERE r.tenant_id = @tenant_id AND r.run_id = @run_id;

-- name: TriageRunAsk :exec
-- Requests an immediate run of an account, whether or not it has a schedule yet.
INSERT INTO triage_schedules AS s (tenant_id, account_id, asked_at)
VALUES (@tenant_id, @account_id, clock_timestamp())
ON CONFLICT (tenant_id, account_id) DO UPDATE SET asked_at = clock_timestamp();

-- name: TriageRunList :many
-- A page of the runs of an account, newest first.
SELECT r.run_id, r.kind, r.started_at, r.ended_at, coalesce(r.error, '')::text AS error, r.read, r.decided, r.proposed, r.skipped
FROM triage_runs r
WHERE r.tenant_id = @tenant_id
    AND r.account_id = @account_id
    AND (sqlc.narg(before_at)::timestamptz IS NULL OR (r.started_at, r.run_id) < (sqlc.narg(before_at)::timestamptz, sqlc.narg(before_id)::uuid))
ORDER BY r.started_at DESC, r.run_id DESC
LIMIT @most::bigint;

-- name: TriageStatusList :many
-- Every account with its schedule and the progress of its folders.
SELECT a.account_id, a.name, a.kind, a.enabled, a.every_seconds, a.backfill_days, (s.account_id IS NOT NULL)::boolean AS scheduled, s.next_run_at, s.asked_at,
    s.holder, s.lease_until, s.last_run_id, s.last_started_at, s.last_ended_at, s.last_read_at, coalesce(s.last_error, '')::text AS last_error, coalesce(s.failures, 0)::integer AS failures,
    triage_pause(a.tenant_id, a.account_id)::text AS pause,
    coalesce(s.quota, '{}')::jsonb AS quota, f.folders, f.backfilled, coalesce(s.models, '[]')::jsonb AS models, coalesce(s.model_refused, '')::text AS model_refused,
    s.model_refused_at, w.withheld, w.degraded, w.since::timestamptz AS waiting_since,
    (SELECT count(1) FROM triage_set_aside t WHERE t.tenant_id = a.tenant_id AND t.account_id = a.account_id)::bigint AS set_aside,
    (
        SELECT count(DISTINCT e.message_id) FROM triage_proposals e
        WHERE e.tenant_id = a.tenant_id AND e.account_id = a.account_id AND e.outcome = 'expired' AND NOT e.outcome_due
            AND NOT EXISTS (SELECT 1 FROM triage_proposals n WHERE n.tenant_id = e.tenant_id AND n.repeats = e.external_id)
    )::bigint AS expired
FROM triage_accounts a
LEFT JOIN triage_schedules s ON s.tenant_id = a.tenant_id AND s.account_id = a.account_id
CROSS JOIN LATERAL (
    SELECT count(1)::bigint AS folders, count(o.older_done_at)::bigint AS backfilled
    FROM triage_folders o
    WHERE o.tenant_id = a.tenant_id AND o.account_id = a.account_id
) f
CROSS JOIN LATERAL (
    SELECT count(1) FILTER (WHERE d.withheld) AS withheld, count(1) FILTER (WHERE NOT d.withheld) AS degraded, coalesce(min(d.wanted_at), 'epoch') AS since
    FROM triage_decisions d
    WHERE d.tenant_id = a.tenant_id AND d.account_id = a.account_id AND d.wanted_at IS NOT NULL
) w
WHERE a.tenant_id = @tenant_id AND (@account::text = '' OR a.name = @account::text)
ORDER BY a.name;

-- name: TriagePreviewList :many
-- A page of the decisions about messages that an account received since a time,
-- newest first, with their input.
SELECT m.message_id, m.received_at, m.sender, m.sender_name, m.subject, d.decision, d.signals, d.prediction, d.answers, d.facts, cardinality(d.judged)::integer AS copies
FROM triage_messages m
JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.received_at >= @since
    AND (sqlc.narg(before_at)::timestamptz IS NULL OR (m.received_at, m.message_id) < (sqlc.narg(before_at)::timestamptz, sqlc.narg(before_id)::uuid))
ORDER BY m.received_at DESC, m.message_id DESC
LIMIT @most::bigint;

-- name: TriagePauseOf :one
-- How an account is paused: paused, travelling or empty.
SELECT triage_pause(a.tenant_id, a.account_id)::text AS pause
FROM triage_accounts a
WHERE a.tenant_id = @tenant_id AND a.account_id = @account_id;
