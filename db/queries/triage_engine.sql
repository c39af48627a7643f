-- name: TriageAccountStates :one
-- The states of the enabled accounts. An account is late if it has not been
-- claimed long after a run was due.
SELECT count(1) FILTER (WHERE NOT late AND failures = 0) AS ok, count(1) FILTER (WHERE NOT late AND failures > 0) AS failing,
    count(1) FILTER (WHERE late) AS late
FROM (
    SELECT s.failures, (s.next_run_at < now() - interval '10 minutes' AND (s.holder IS NULL OR s.lease_until < now())) AS late
    FROM triage_schedules s
    JOIN triage_accounts a ON a.tenant_id = s.tenant_id AND a.account_id = s.account_id
    WHERE s.tenant_id = @tenant_id AND a.enabled AND triage_pause(s.tenant_id, s.account_id) <> 'paused'
) t;

-- name: TriageAnswersPut :exec
-- Stores answers about messages that have further questions.
UPDATE triage_decisions d
SET answers = r -> 'answers', wanted = ARRAY(SELECT jsonb_array_elements_text(r -> 'wanted'))
FROM jsonb_array_elements(@rows::jsonb) r
WHERE d.tenant_id = @tenant_id AND d.message_id = (r ->> 'message_id')::uuid;

-- name: TriageAbsence :many
-- The answers in the absence of an account's owner, with their deadlines: all of one
-- absence, and those of the last days.
SELECT p.external_id, (p.envelope #>> '{constraints,must_run_before}')::timestamptz AS deadline
FROM triage_proposals p
WHERE p.tenant_id = @tenant_id AND p.account_id = @account_id AND p.action = 'away' AND p.proposed_at >= least(@since::timestamptz, now()) - interval '3 days';

-- name: TriageClaim :many
-- Claims due or requested accounts, or all, that no other run holds, except
-- some. Rows that another process is claiming are skipped.
WITH due AS (
    SELECT s.account_id
    FROM triage_schedules s
    JOIN triage_accounts a ON a.tenant_id = s.tenant_id AND a.account_id = s.account_id
    WHERE s.tenant_id = @tenant_id AND a.enabled AND triage_pause(s.tenant_id, s.account_id) <> 'paused'
        AND (@all_accounts::boolean OR s.next_run_at <= now() OR s.asked_at IS NOT NULL)
        AND s.account_id <> ALL (@besides::uuid[])
        AND (s.holder IS NULL OR s.lease_until < now())
    ORDER BY s.next_run_at
    LIMIT @most::bigint
    FOR UPDATE OF s SKIP LOCKED
)
UPDATE triage_schedules s
SET holder = @holder, lease_until = now() + make_interval(secs => @lease_seconds::float8)
FROM due
WHERE s.tenant_id = @tenant_id AND s.account_id = due.account_id
RETURNING s.account_id;

-- name: TriageContacts :many
-- The owner's latest correspondents.
SELECT s.name, s.address
FROM triage_senders s
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.sent > 0
ORDER BY s.last_seen DESC
LIMIT @most::bigint;

-- name: TriageCorrectionsOf :many
SELECT c.correction_no, c.head, c.label, c.features
FROM triage_corrections c
WHERE c.tenant_id = @tenant_id AND c.account_id = @account_id AND c.retracted_at IS NULL
ORDER BY c.correction_no DESC
LIMIT @most::bigint;

-- name: TriageCorrectedSenders :many
-- Counts the active corrections of each sender and list.
SELECT x.address::text AS address, count(1) AS corrected
FROM triage_corrections c
JOIN triage_messages m ON m.tenant_id = c.tenant_id AND m.message_id = c.message_id
CROSS JOIN LATERAL (VALUES (m.sender), (CASE WHEN m.list <> '' THEN 'list:' || m.list ELSE '' END)) x (address)
WHERE c.tenant_id = @tenant_id AND c.account_id = @account_id AND c.retracted_at IS NULL AND x.address <> ''
GROUP BY x.address;

-- name: TriageCorrectionsVersion :one
-- A version that changes with every correction made or withdrawn.
SELECT count(1) AS made, coalesce(max(c.correction_no), 0)::bigint AS newest
FROM triage_corrections c
WHERE c.tenant_id = @tenant_id AND c.account_id = @account_id AND c.retracted_at IS NULL;

-- name: TriageDecisionsAgain :exec
-- Marks messages for a new decision with a reason; without one it clears the
-- mark.
UPDATE triage_decisions d SET again = nullif(@reason::text, '') WHERE d.tenant_id = @tenant_id AND d.message_id = ANY (@message_ids::uuid[]);

-- name: TriageDecisionsAnswered :exec
-- Ends the waits of the owner in threads with an answer, and marks the messages
-- that were kept for them for a new decision.
WITH answered AS (
    SELECT unnest(@thread_ids::uuid[]) AS thread_id, unnest(@answered_ats::timestamptz[]) AS at
), ended AS (
    UPDATE triage_messages m
    SET awaits = false
    FROM answered a
    WHERE m.tenant_id = @tenant_id AND m.thread_id = a.thread_id AND m.awaits AND m.received_at < a.at
    RETURNING m.thread_id
)
UPDATE triage_decisions d
SET again = 'answered'
FROM ended e
JOIN triage_messages m ON m.tenant_id = @tenant_id AND m.thread_id = e.thread_id
WHERE d.tenant_id = m.tenant_id AND d.message_id = m.message_id AND d.decision -> 'vetoes' @> '["follow_up"]';

-- name: TriageDecisionsCorrected :exec
-- Marks the newest messages for a new decision that are in the inbox and have a
-- sender or a list with a correction made or withdrawn since the last time. The
-- minute covers transactions that had not ended by then.
WITH last AS (
    UPDATE triage_schedules s
    SET corrections_at = now()
    FROM triage_schedules was
    WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND was.tenant_id = s.tenant_id AND was.account_id = s.account_id
    RETURNING was.corrections_at AS at
), corrected AS (
    SELECT DISTINCT m.sender, m.list
    FROM last
    JOIN triage_corrections c ON c.tenant_id = @tenant_id AND c.account_id = @account_id
        AND greatest(c.made_at, c.retracted_at) > last.at - interval '1 minute'
    JOIN triage_messages m ON m.tenant_id = c.tenant_id AND m.message_id = c.message_id
), newest AS MATERIALIZED (
    SELECT n.message_id, n.sender, n.list
    FROM triage_messages n
    WHERE n.tenant_id = @tenant_id AND n.account_id = @account_id AND EXISTS (SELECT 1 FROM corrected)
    ORDER BY n.received_at DESC, n.message_id DESC
    LIMIT @most::bigint
)
UPDATE triage_decisions d
SET again = 'corrected'
FROM newest n
WHERE d.tenant_id = @tenant_id AND d.message_id = n.message_id
    AND EXISTS (SELECT 1 FROM corrected c WHERE c.sender <> '' AND c.sender = n.sender OR c.list <> '' AND c.list = n.list)
    AND EXISTS (
        SELECT 1 FROM triage_locations l
        JOIN triage_folders f ON f.tenant_id = l.tenant_id AND f.account_id = l.account_id AND f.folder = l.folder AND f.use = 'inbox'
        WHERE l.tenant_id = @tenant_id AND l.message_id = n.message_id
    );

-- name: TriageDecisionsDue :many
-- The messages marked for a new decision.
SELECT d.message_id
FROM triage_decisions d
WHERE d.tenant_id = @tenant_id AND d.account_id = @account_id AND d.again IS NOT NULL
ORDER BY d.message_id
LIMIT @most::bigint;

-- name: TriageDecisionsOf :many
-- Messages for a new decision, with their locations, the acts of their owner,
-- the answers of models, the previous decisions, and the proposals about them.
SELECT d.message_id, coalesce(d.again, '')::text AS reason, d.answers, d.decision, d.signals, d.judged, m.identity, m.thread_id, m.list, m.touched_at, m.undone, m.received_at, m.size,
    coalesce(w.folder, '')::text AS folder, coalesce(w.use, '')::text AS use, coalesce(w.key, '')::text AS key, coalesce(w.flags, '{}')::text[] AS flags,
    (SELECT coalesce(jsonb_agg(e.value), '[]') FROM triage_proposals p CROSS JOIN LATERAL jsonb_array_elements(p.parts) e
        WHERE p.tenant_id = d.tenant_id AND p.message_id = d.message_id)::jsonb AS proposed
FROM triage_decisions d
JOIN triage_messages m ON m.tenant_id = d.tenant_id AND m.message_id = d.message_id
LEFT JOIN LATERAL (
    SELECT l.folder, f.use, l.key, l.flags
    FROM triage_locations l
    JOIN triage_folders f ON f.tenant_id = l.tenant_id AND f.account_id = l.account_id AND f.folder = l.folder
    WHERE l.tenant_id = d.tenant_id AND l.message_id = d.message_id
    ORDER BY (f.use = 'inbox') DESC, l.folder, l.key
    LIMIT 1
) w ON true
WHERE d.tenant_id = @tenant_id AND d.message_id = ANY (@message_ids::uuid[])
ORDER BY d.message_id;

-- name: TriageDecisionsPut :exec
-- A message has one decision; a later one replaces it.
INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question,
    decision, signals, prediction, features, notes, skipped, model, reason, tier, prompt, degraded, answers, wanted, wanted_at, withheld, received_at,
    judged, facts)
SELECT @tenant_id, (r ->> 'message_id')::uuid, @account_id, @run_id, r ->> 'act', r ->> 'category', r ->> 'priority', r ->> 'bucket', r ->> 'cohort',
    (r ->> 'level')::smallint, (r ->> 'confidence')::float8, (r ->> 'question')::boolean, r -> 'decision', r -> 'signals', r -> 'prediction',
    decode(r ->> 'features', 'base64'), r -> 'notes', r -> 'skipped', r ->> 'model', r ->> 'reason', r ->> 'tier', r ->> 'prompt', r ->> 'degraded',
    r -> 'answers', ARRAY(SELECT jsonb_array_elements_text(r -> 'wanted')), CASE WHEN r -> 'wanted' <> '[]' THEN now() END, (r ->> 'withheld')::boolean,
    (r ->> 'received_at')::timestamptz, ARRAY(SELECT jsonb_array_elements_text(r -> 'judged')),
    nullif(r -> 'facts', 'null')
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT (tenant_id, message_id) DO UPDATE
SET run_id = excluded.run_id, decided_at = now(), judged = excluded.judged, facts = excluded.facts, act = excluded.act, category = excluded.category, priority = excluded.priority,
    bucket = excluded.bucket, cohort = excluded.cohort, level = excluded.level, confidence = excluded.confidence, question = excluded.question,
    decision = excluded.decision, signals = excluded.signals, prediction = excluded.prediction, features = excluded.features,
    notes = excluded.notes, skipped = excluded.skipped, model = excluded.model, reason = excluded.reason, again = NULL, tier = excluded.tier,
    prompt = excluded.prompt, degraded = excluded.degraded, answers = excluded.answers, wanted = excluded.wanted, withheld = excluded.withheld,
    wanted_at = CASE WHEN excluded.wanted_at IS NOT NULL THEN coalesce(triage_decisions.wanted_at, excluded.wanted_at) END;

-- name: TriageDue :one
-- Counts the due accounts that no run holds.
SELECT count(1)
FROM triage_schedules s
JOIN triage_accounts a ON a.tenant_id = s.tenant_id AND a.account_id = s.account_id
WHERE s.tenant_id = @tenant_id AND a.enabled AND triage_pause(s.tenant_id, s.account_id) <> 'paused' AND (s.next_run_at <= now() OR s.asked_at IS NOT NULL)
    AND (s.holder IS NULL OR s.lease_until < now());

-- name: TriageFindingsInsert :exec
INSERT INTO triage_findings (tenant_id, message_id, finding_no, account_id, kind, key, sequence, cancels, starts_at, ends_at, fields)
SELECT @tenant_id, (r ->> 'message_id')::uuid, (r ->> 'finding_no')::smallint, @account_id, r ->> 'kind', r ->> 'key', (r ->> 'sequence')::integer,
    (r ->> 'cancels')::boolean, (r ->> 'starts_at')::timestamptz, (r ->> 'ends_at')::timestamptz, r -> 'fields'
FROM jsonb_array_elements(@rows::jsonb) r;

-- name: TriageFolder :one
SELECT f.cursor, f.older, (f.older_done_at IS NOT NULL)::boolean AS older_done, EXISTS (
        SELECT 1 FROM triage_locations l
        WHERE l.tenant_id = f.tenant_id AND l.account_id = f.account_id AND l.folder = '' AND starts_with(l.key, f.folder || E'\n')
    ) AS voided
FROM triage_folders f
WHERE f.tenant_id = @tenant_id AND f.account_id = @account_id AND f.folder = @folder;

-- name: TriageFolderPut :exec
INSERT INTO triage_folders (tenant_id, account_id, folder, use, cursor, older, older_done_at, read_at)
VALUES (@tenant_id, @account_id, @folder, @use, @cursor, @older, CASE WHEN @older_done::boolean THEN now() END, now())
ON CONFLICT (tenant_id, account_id, folder) DO UPDATE
SET use = excluded.use, cursor = excluded.cursor, older = excluded.older,
    older_done_at = CASE WHEN @older_done::boolean THEN coalesce(triage_folders.older_done_at, now()) END, read_at = now();

-- name: TriageFollowUps :many
-- The time of the owner's last question in unanswered threads, and of a person's
-- last message there, among the newest messages: anybody can make a thread of
-- any length.
SELECT t.thread_id::uuid AS thread_id, coalesce(q.asked_at, 'epoch')::timestamptz AS asked_at, coalesce(w.answered_at, 'epoch')::timestamptz AS answered_at
FROM unnest(@thread_ids::uuid[]) t (thread_id)
CROSS JOIN LATERAL (
    SELECT max(m.received_at) AS asked_at FROM triage_messages m WHERE m.tenant_id = @tenant_id AND m.thread_id = t.thread_id AND m.awaits
) q
CROSS JOIN LATERAL (
    SELECT max(n.received_at) FILTER (WHERE NOT n.outgoing AND NOT n.automated) AS answered_at
    FROM (
        SELECT m.received_at, m.outgoing, m.automated FROM triage_messages m
        WHERE m.tenant_id = @tenant_id AND m.thread_id = t.thread_id
        ORDER BY m.received_at DESC
        LIMIT 50
    ) n
) w;

-- name: TriageHold :one
-- Extends the lease of the run that holds an account, and returns how the account
-- is paused. Every writing transaction of a run begins with it: the row lock
-- makes a run that lost its lease wait, and then find another holder.
UPDATE triage_schedules s
SET lease_until = clock_timestamp() + make_interval(secs => @lease_seconds::float8), quota = @quota
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder
RETURNING triage_pause(s.tenant_id, s.account_id)::text AS pause;

-- name: TriageLocations :many
-- The stored locations in a folder, with the changes that triage proposed for
-- the message there.
SELECT l.key, l.message_id, l.flags,
    (SELECT coalesce(jsonb_agg(e.value), '[]') FROM triage_proposals p CROSS JOIN LATERAL jsonb_array_elements(p.parts) e
        WHERE p.tenant_id = l.tenant_id AND p.message_id = l.message_id)::jsonb AS proposed
FROM triage_locations l
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder AND l.key = ANY (@keys::text[]);

-- name: TriageLocationsDelete :many
DELETE FROM triage_locations l
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder AND l.key = ANY (@keys::text[])
RETURNING l.message_id;

-- name: TriageLocationsKnown :many
SELECT l.key FROM triage_locations l WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder;

-- name: TriageLocationsLatest :many
-- Locations of messages that were read before, latest first.
SELECT l.folder, l.key, m.received_at, m.size
FROM triage_locations l
JOIN triage_messages m ON m.tenant_id = l.tenant_id AND m.message_id = l.message_id
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder
ORDER BY m.received_at DESC
LIMIT @most::bigint;

-- name: TriageLocationsPut :exec
INSERT INTO triage_locations (tenant_id, account_id, folder, key, message_id, flags, tagged)
SELECT @tenant_id, @account_id, @folder, r ->> 'key', (r ->> 'message_id')::uuid, f.flags, EXISTS (SELECT FROM unnest(f.flags) n WHERE starts_with(lower(n), 'countersign_do_'))
FROM jsonb_array_elements(@rows::jsonb) r
CROSS JOIN LATERAL (SELECT ARRAY(SELECT jsonb_array_elements_text(r -> 'flags')) AS flags) f
ON CONFLICT (tenant_id, account_id, folder, key) DO UPDATE SET message_id = excluded.message_id, flags = excluded.flags, tagged = excluded.tagged;

-- name: TriageLocationsVoid :exec
-- Stores the locations of a folder, which are all void, under a name that no
-- folder has: until the folder has been read again they record that the messages
-- were there.
UPDATE triage_locations l
SET folder = '', key = l.folder || E'\n' || l.key
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder;

-- name: TriageLocationsVoidedDelete :many
DELETE FROM triage_locations l
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = '' AND starts_with(l.key, @folder::text || E'\n')
RETURNING l.message_id;

-- name: TriageMessagesInsert :exec
INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, header_id, refs, thread_id, thread_subject, participants, outgoing,
    automated, awaits, promises, delivers, sender, sender_name, list, subject, body, sent_at, sent_offset, received_at, size)
SELECT @tenant_id, (r ->> 'message_id')::uuid, @account_id, decode(r ->> 'identity', 'hex'), r ->> 'header_id',
    ARRAY(SELECT jsonb_array_elements_text(r -> 'refs')), (r ->> 'thread_id')::uuid, r ->> 'thread_subject',
    ARRAY(SELECT jsonb_array_elements_text(r -> 'participants')), (r ->> 'outgoing')::boolean,
    (r ->> 'automated')::boolean, (r ->> 'awaits')::boolean, (r ->> 'promises')::boolean, (r ->> 'delivers')::boolean, r ->> 'sender', r ->> 'sender_name', r ->> 'list',
    r ->> 'subject', r ->> 'body', (r ->> 'sent_at')::timestamptz, (r ->> 'sent_offset')::integer, (r ->> 'received_at')::timestamptz, (r ->> 'size')::bigint
FROM jsonb_array_elements(@rows::jsonb) r;

-- name: TriageMessagesBack :exec
-- Records that messages are again in a folder to which triage does not move
-- messages.
UPDATE triage_messages m SET left_at = NULL WHERE m.tenant_id = @tenant_id AND m.message_id = ANY (@message_ids::uuid[]);

-- name: TriageMessagesKnown :many
-- Messages of an account that are known by their identities, whether each has
-- left its folders, the move that would explain it, and the copies that its
-- decision joins.
SELECT m.message_id, m.identity, (m.left_at IS NOT NULL)::boolean AS left,
    coalesce(d.judged, '{}')::text[] AS judged, m.undone,
    CASE WHEN m.left_at IS NULL THEN '{}' ELSE ARRAY(
        SELECT p.action FROM triage_proposals p
        WHERE p.tenant_id = m.tenant_id AND p.message_id = m.message_id AND p.action IN ('archive', 'quarantine', 'trash')
    ) END::text[] AS moved
FROM triage_messages m
LEFT JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.identity = ANY (@identities::bytea[]);

-- name: TriageMessagesLeft :many
-- Records that messages that lost some of their locations are only in folders to
-- which triage moves messages. If triage proposed no move, their owner moved
-- them.
UPDATE triage_messages m
SET left_at = now(), touched_at = CASE WHEN EXISTS (
        SELECT 1 FROM triage_proposals p
        WHERE p.tenant_id = m.tenant_id AND p.message_id = m.message_id AND p.action IN ('archive', 'quarantine', 'trash', 'snooze')
    ) THEN m.touched_at ELSE coalesce(m.touched_at, now()) END
WHERE m.tenant_id = @tenant_id AND m.message_id = ANY (@message_ids::uuid[]) AND m.left_at IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM triage_locations l
        LEFT JOIN triage_folders f ON f.tenant_id = l.tenant_id AND f.account_id = l.account_id AND f.folder = l.folder
        WHERE l.tenant_id = m.tenant_id AND l.message_id = m.message_id
            AND (f.folder IS NULL OR f.use <> ALL (@elsewhere::text[]))
    )
RETURNING m.message_id;

-- name: TriageMessagesRelated :many
-- Messages of an account that others refer to, or that refer to others, or that
-- share the subject of a thread and a participant. Senders choose all of these,
-- so there may be any number; a sample of each is enough, those of the owner
-- first.
SELECT m.message_id, m.header_id, m.refs, m.thread_id, m.thread_subject, m.participants, m.outgoing, m.sender, m.received_at, coalesce(d.bucket, '')::text AS bucket
FROM (
    SELECT h.message_id FROM unnest(@named::text[]) i (id)
    CROSS JOIN LATERAL (
        SELECT n.message_id FROM triage_messages n
        WHERE n.tenant_id = @tenant_id AND n.account_id = @account_id AND n.header_id <> '' AND n.header_id = i.id
        ORDER BY n.outgoing DESC, n.received_at LIMIT 5
    ) h
    UNION
    SELECT f.message_id FROM unnest(@header_ids::text[]) i (id)
    CROSS JOIN LATERAL (
        SELECT r.message_id FROM triage_refs r
        WHERE r.tenant_id = @tenant_id AND r.account_id = @account_id AND r.ref = i.id
        ORDER BY r.outgoing DESC, r.message_id DESC LIMIT 20
    ) f
    UNION
    SELECT s.message_id FROM unnest(@subjects::text[]) t (subject)
    CROSS JOIN LATERAL (
        SELECT q.message_id FROM triage_messages q
        WHERE q.tenant_id = @tenant_id AND q.account_id = @account_id AND q.thread_subject <> '' AND q.thread_subject = t.subject
        ORDER BY q.received_at DESC LIMIT 20
    ) s
) found
-- Each is looked up by its key, regardless of the planner's estimates.
CROSS JOIN LATERAL (
    SELECT k.message_id, k.header_id, k.refs, k.thread_id, k.thread_subject, k.participants, k.outgoing, k.sender, k.received_at
    FROM triage_messages k WHERE k.tenant_id = @tenant_id AND k.message_id = found.message_id LIMIT 1
) m
LEFT JOIN LATERAL (
    SELECT e.bucket FROM triage_decisions e WHERE e.tenant_id = @tenant_id AND e.message_id = found.message_id LIMIT 1
) d ON true
ORDER BY m.outgoing DESC, m.received_at DESC
LIMIT 2000;

-- name: TriageOutcomesCount :exec
-- Adds people's approvals and refusals to the statistics of senders and lists.
UPDATE triage_senders s
SET accepted = s.accepted + o.accepted, refused = s.refused + o.refused
FROM (
    SELECT m.account_id, x.address::text AS address, sum((r ->> 'accepted')::integer)::integer AS accepted, sum((r ->> 'refused')::integer)::integer AS refused
    FROM jsonb_array_elements(@rows::jsonb) r
    JOIN triage_messages m ON m.tenant_id = @tenant_id AND m.message_id = (r ->> 'message_id')::uuid
    CROSS JOIN LATERAL (VALUES (m.sender), (CASE WHEN m.list <> '' THEN 'list:' || m.list ELSE '' END)) x (address)
    GROUP BY m.account_id, x.address
) o
WHERE s.tenant_id = @tenant_id AND s.account_id = o.account_id AND s.address = o.address;

-- name: TriageOutcomesTake :many
-- People's decisions about proposals since the last time. FOR UPDATE SKIP
-- LOCKED: a proposal that a person decides about now is handled the next time.
UPDATE triage_proposals p
SET outcome_due = false
FROM (
    SELECT n.external_id, m.undone FROM triage_proposals n
    JOIN triage_messages m ON m.tenant_id = n.tenant_id AND m.message_id = n.message_id
    WHERE n.tenant_id = @tenant_id AND n.account_id = @account_id AND n.outcome_due
    LIMIT @most::bigint
    FOR UPDATE OF n SKIP LOCKED
) n
WHERE p.tenant_id = @tenant_id AND p.external_id = n.external_id
RETURNING p.external_id, p.message_id, p.action, p.outcome::text AS outcome, p.parts, n.undone;

-- name: TriageProposalsRepeat :many
-- Stores proposals again, under another name, that expired without a decision:
-- those whose message is in the same place, unchanged, and was not decided about
-- since.
INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, parts, fields, envelope, repeats, run_id)
SELECT p.tenant_id, x.external_id, p.account_id, p.message_id, p.action, p.parts, p.fields,
    jsonb_set(p.envelope, '{external_id}', to_jsonb(x.external_id)), p.external_id, @run_id::uuid
FROM triage_proposals p
JOIN triage_messages m ON m.tenant_id = p.tenant_id AND m.message_id = p.message_id AND m.touched_at IS NULL AND m.left_at IS NULL
JOIN triage_decisions d ON d.tenant_id = p.tenant_id AND d.message_id = p.message_id AND d.decided_at <= p.proposed_at
CROSS JOIN LATERAL (SELECT 'triage:' || encode(sha256(convert_to('again ' || p.external_id, 'UTF8')), 'hex') AS external_id) x
WHERE p.tenant_id = @tenant_id AND p.account_id = @account_id AND p.external_id = ANY (@external_ids::text[]) AND p.repeats IS NULL
    AND p.action NOT IN ('away', 'tag') -- the time of the one is over, the other waits for a person
    AND EXISTS (SELECT 1 FROM triage_locations l WHERE l.tenant_id = p.tenant_id AND l.message_id = p.message_id)
ON CONFLICT DO NOTHING
RETURNING external_id, envelope;

-- name: TriageProposalsWithdraw :exec
-- Requests that workers withdraw waiting proposals about messages that were
-- moved or flagged by their owner, or of which a copy allows less. A draft or a
-- mail is kept: it answers the message in any folder. A question about a
-- subscription is kept if triage itself moved the message.
UPDATE triage_proposals p
SET withdraw_at = now()
WHERE p.tenant_id = @tenant_id AND p.message_id = ANY (@message_ids::uuid[]) AND p.outcome IS NULL AND p.withdraw_at IS NULL AND p.action NOT IN ('draft', 'send', 'tag')
    AND NOT (@moved::boolean AND p.action = 'unsubscribe' AND EXISTS (
        SELECT FROM triage_proposals t JOIN triage_messages m ON m.tenant_id = t.tenant_id AND m.message_id = t.message_id
        WHERE t.tenant_id = p.tenant_id AND t.message_id = p.message_id AND m.left_at IS NOT NULL
            AND t.action IN ('archive', 'trash', 'snooze') AND (NOT t.envelope ? 'approval' OR t.outcome = 'approved')
    ));

-- name: TriageProposalsWithdrawGone :exec
-- Requests the withdrawal of proposals about a message in a folder where it is no
-- more, in whichever other folders it is. A tool that changes nothing in the
-- mailbox expects no state: its message was seen in that folder. A question about
-- a subscription is kept if triage itself moved the message.
UPDATE triage_proposals p
SET withdraw_at = now()
WHERE p.tenant_id = @tenant_id AND p.message_id = ANY (@message_ids::uuid[]) AND p.outcome IS NULL AND p.withdraw_at IS NULL AND p.action NOT IN ('draft', 'send', 'tag')
    AND coalesce(p.envelope #>> '{args,expected,folder}', p.envelope #>> '{args,message,folder}') = @folder::text
    AND NOT EXISTS (SELECT FROM triage_locations l WHERE l.tenant_id = p.tenant_id AND l.message_id = p.message_id AND l.folder = @folder::text)
    AND NOT (p.action = 'unsubscribe' AND EXISTS (
        SELECT FROM triage_proposals t JOIN triage_messages m ON m.tenant_id = t.tenant_id AND m.message_id = t.message_id
        WHERE t.tenant_id = p.tenant_id AND t.message_id = p.message_id AND m.left_at IS NOT NULL
            AND t.action IN ('archive', 'trash', 'snooze') AND (NOT t.envelope ? 'approval' OR t.outcome = 'approved')
    ));

-- name: TriageProposalsInsert :many
-- Stores new proposals. It skips existing ones of any run.
INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, parts, fields, envelope, run_id)
SELECT @tenant_id, r ->> 'external_id', @account_id, (r ->> 'message_id')::uuid, r ->> 'action', r -> 'parts', r -> 'fields', r -> 'envelope', @run_id::uuid
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT (tenant_id, external_id) DO NOTHING
RETURNING external_id, envelope;

-- name: TriageProposalsPropose :many
-- Proposes envelopes in this transaction and returns their ids in the same
-- order, and none if the account is paused by now: the statement sees what others
-- committed since the transaction began.
SELECT unnest(countersign.propose_many(@envelopes::jsonb[]))::uuid AS proposal_id
WHERE triage_pause(@tenant_id, @account_id) <> 'paused';

-- name: TriageProposalsProposed :exec
UPDATE triage_proposals p
SET proposal_id = n.proposal_id
FROM (SELECT unnest(@external_ids::text[]) AS external_id, unnest(@proposal_ids::uuid[]) AS proposal_id) n
WHERE p.tenant_id = @tenant_id AND p.external_id = n.external_id;

-- name: TriageQuestionStates :one
-- Counts the messages that wait for answers, with their proposals withheld until
-- then, and those that were decided without.
SELECT count(1) FILTER (WHERE d.withheld) AS withheld, count(1) FILTER (WHERE NOT d.withheld) AS degraded
FROM triage_decisions d
WHERE d.tenant_id = @tenant_id AND d.wanted_at IS NOT NULL;

-- name: TriageQuestionsConfigured :exec
-- Removes questions to tiers that are no longer configured.
UPDATE triage_decisions d
SET wanted = ARRAY(SELECT t FROM unnest(d.wanted) t WHERE t = ANY (@tiers::text[])),
    wanted_at = CASE WHEN d.withheld OR d.wanted && @tiers::text[] THEN d.wanted_at END
WHERE d.tenant_id = @tenant_id AND d.account_id = @account_id AND d.wanted_at IS NOT NULL AND NOT d.wanted <@ @tiers::text[];

-- name: TriageQuestionsDrop :exec
-- Removes all questions about messages.
UPDATE triage_decisions d
SET wanted = '{}', wanted_at = NULL, withheld = false
WHERE d.tenant_id = @tenant_id AND d.message_id = ANY (@message_ids::uuid[]);

-- name: TriageQuestionsDue :many
-- Messages, newest first, about which a tier can be asked now; or else those
-- that have been withheld for long enough, or for an unavailable tier.
SELECT d.message_id, d.wanted, d.withheld, d.answers, d.decision, d.signals, d.prediction, m.subject, left(m.body, @characters::integer)::text AS body,
    (m.touched_at IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM triage_locations l WHERE l.tenant_id = d.tenant_id AND l.message_id = d.message_id
    ))::boolean AS obsolete
FROM triage_decisions d
JOIN triage_messages m ON m.tenant_id = d.tenant_id AND m.message_id = d.message_id
WHERE d.tenant_id = @tenant_id AND d.account_id = @account_id AND d.wanted_at IS NOT NULL
    AND CASE WHEN @withheld::boolean
        THEN d.withheld AND (coalesce(d.wanted[1] <> ALL (@tiers::text[]), true) OR d.wanted_at < now() - make_interval(secs => @longest_seconds::float8))
        ELSE coalesce(d.wanted[1] = ANY (@tiers::text[]), false) END
ORDER BY d.received_at DESC
LIMIT @most::bigint;

-- name: TriageRefsInsert :exec
INSERT INTO triage_refs (tenant_id, account_id, ref, outgoing, message_id)
SELECT @tenant_id, @account_id, jsonb_array_elements_text(r -> 'refs'), (r ->> 'outgoing')::boolean, (r ->> 'message_id')::uuid
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT DO NOTHING;

-- name: TriageRelease :exec
-- Releases an account.
UPDATE triage_schedules s
SET holder = NULL, lease_until = NULL, next_run_at = now() + make_interval(secs => @pause_seconds::float8)
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder;

-- name: TriageRenew :one
-- Extends the lease, and reports whether a run was requested and whether the
-- account is unchanged.
UPDATE triage_schedules s
SET lease_until = clock_timestamp() + make_interval(secs => @lease_seconds::float8)
FROM triage_accounts a
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder
    AND a.tenant_id = s.tenant_id AND a.account_id = s.account_id
RETURNING (s.asked_at IS NOT NULL)::boolean AS asked, a.version, a.enabled, triage_pause(s.tenant_id, s.account_id)::text AS pause;

-- name: TriageRunCount :exec
WITH counted AS (
    INSERT INTO triage_runs (tenant_id, run_id, account_id, kind, read, decided, proposed, skipped)
    VALUES (@tenant_id, @run_id, @account_id, @kind, @read, @decided, @proposed, @skipped)
    ON CONFLICT (tenant_id, run_id) DO UPDATE
    SET read = triage_runs.read + excluded.read, decided = triage_runs.decided + excluded.decided,
        proposed = triage_runs.proposed + excluded.proposed, skipped = triage_runs.skipped + excluded.skipped
    RETURNING tenant_id, account_id, run_id
)
UPDATE triage_schedules s
SET last_run_id = counted.run_id
FROM counted
WHERE s.tenant_id = counted.tenant_id AND s.account_id = counted.account_id;

-- name: TriageRunEnd :exec
UPDATE triage_runs r SET ended_at = now(), error = nullif(@error::text, '')
WHERE r.tenant_id = @tenant_id AND r.run_id = @run_id;

-- name: TriageRunsInterrupted :exec
-- Ends the unfinished runs of an account whose processes have ended.
UPDATE triage_runs r SET ended_at = now(), error = 'interrupted'
WHERE r.tenant_id = @tenant_id AND r.account_id = @account_id AND r.ended_at IS NULL;

-- name: TriageScheduleEnd :exec
-- Records the end of a run, and the time of the next one.
UPDATE triage_schedules s
SET last_ended_at = now(), last_read_at = CASE WHEN @error::text = '' THEN now() ELSE s.last_read_at END, last_error = nullif(@error::text, ''), quota = @quota,
    failures = CASE WHEN @error::text = '' THEN 0 ELSE s.failures + 1 END,
    next_run_at = now() + make_interval(secs => @pause_seconds::float8)
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder;

-- name: TriageScheduleFill :exec
-- Inserts missing schedules of accounts.
INSERT INTO triage_schedules (tenant_id, account_id)
SELECT a.tenant_id, a.account_id FROM triage_accounts a
WHERE a.tenant_id = @tenant_id AND NOT EXISTS (SELECT 1 FROM triage_schedules s WHERE s.tenant_id = a.tenant_id AND s.account_id = a.account_id)
ON CONFLICT DO NOTHING;

-- name: TriageScheduleModels :exec
-- Records the state of the model servers, and the last refusal, if there was one
-- since the process began.
UPDATE triage_schedules s
SET models = @models, model_refused = CASE WHEN sqlc.narg(refused_at)::timestamptz IS NULL THEN s.model_refused ELSE @refused::text END,
    model_refused_at = coalesce(sqlc.narg(refused_at)::timestamptz, s.model_refused_at)
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder;

-- name: TriageScheduleRead :exec
-- Records that all folders were read.
UPDATE triage_schedules s SET last_read_at = now() WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder;

-- name: TriageScheduleStart :one
-- Returns the number of consecutive failed runs, and the remainder of the
-- provider's limits.
UPDATE triage_schedules s
SET last_started_at = now(), last_run_id = NULL, asked_at = NULL
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder
RETURNING s.failures, s.quota;

-- name: TriageSenders :many
SELECT s.address, s.first_seen, s.last_seen, s.received, s.sent, s.replied, s.accepted, s.refused
FROM triage_senders s
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.address = ANY (@addresses::text[]);

-- name: TriageSendersAdd :exec
INSERT INTO triage_senders (tenant_id, account_id, address, name, first_seen, last_seen, received, sent, replied)
SELECT @tenant_id, @account_id, r ->> 'address', r ->> 'name', (r ->> 'first_seen')::timestamptz, (r ->> 'last_seen')::timestamptz,
    (r ->> 'received')::integer, (r ->> 'sent')::integer, (r ->> 'replied')::integer
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT (tenant_id, account_id, address) DO UPDATE
SET name = CASE WHEN excluded.name <> '' THEN excluded.name ELSE triage_senders.name END,
    first_seen = least(triage_senders.first_seen, excluded.first_seen), last_seen = greatest(triage_senders.last_seen, excluded.last_seen),
    received = triage_senders.received + excluded.received, sent = triage_senders.sent + excluded.sent,
    replied = triage_senders.replied + excluded.replied;

-- name: TriageTenant :one
SELECT coalesce(triage_tenant(), '00000000-0000-0000-0000-000000000000')::uuid AS tenant_id;

-- name: TriageThreadsJoin :one
-- Merges several threads into one and returns it: the longest within the count's
-- bound, so that a message changes its thread a few times, regardless of the
-- number of threads.
WITH sizes AS (
    SELECT t.thread_id, c.messages
    FROM unnest(@thread_ids::uuid[]) t (thread_id)
    CROSS JOIN LATERAL (
        SELECT count(1) AS messages FROM (
            SELECT 1 FROM triage_messages n WHERE n.tenant_id = @tenant_id AND n.thread_id = t.thread_id LIMIT 2000
        ) n
    ) c
), longest AS (
    SELECT z.thread_id FROM sizes z ORDER BY z.messages DESC, z.thread_id LIMIT 1
), joined AS (
    UPDATE triage_messages m
    SET thread_id = l.thread_id
    FROM sizes z, longest l
    WHERE m.tenant_id = @tenant_id AND m.thread_id = z.thread_id AND z.thread_id <> l.thread_id
)
SELECT l.thread_id::uuid AS thread_id FROM longest l;

-- name: TriageTouched :exec
-- Records that the owner changed messages, and reversed changes. Each message
-- occurs once.
UPDATE triage_messages m
SET touched_at = CASE WHEN (r ->> 'touched')::boolean THEN coalesce(m.touched_at, now()) ELSE m.touched_at END,
    undone = ARRAY(SELECT DISTINCT u FROM unnest(m.undone || ARRAY(SELECT jsonb_array_elements_text(r -> 'undone'))) u ORDER BY u)
FROM jsonb_array_elements(@rows::jsonb) r
WHERE m.tenant_id = @tenant_id AND m.message_id = (r ->> 'message_id')::uuid;
