-- name: TriageAccountStates :one
-- How the enabled accounts stand. An account is late if no run has it long after
-- one was due.
SELECT count(1) FILTER (WHERE NOT late AND failures = 0) AS ok, count(1) FILTER (WHERE NOT late AND failures > 0) AS failing,
    count(1) FILTER (WHERE late) AS late
FROM (
    SELECT s.failures, (s.next_run_at < now() - interval '10 minutes' AND (s.holder IS NULL OR s.lease_until < now())) AS late
    FROM triage_schedules s
    JOIN triage_accounts a ON a.tenant_id = s.tenant_id AND a.account_id = s.account_id
    WHERE s.tenant_id = @tenant_id AND a.enabled
) t;

-- name: TriageClaim :many
-- Takes accounts that are due or that somebody asked for, or all, that no other run
-- has, besides some. Rows that another process is claiming are skipped.
WITH due AS (
    SELECT s.account_id
    FROM triage_schedules s
    JOIN triage_accounts a ON a.tenant_id = s.tenant_id AND a.account_id = s.account_id
    WHERE s.tenant_id = @tenant_id AND a.enabled
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

-- name: TriageCorrectionsVersion :one
-- Changes whenever a correction is made or taken back.
SELECT count(1) AS made, coalesce(max(c.correction_no), 0)::bigint AS newest
FROM triage_corrections c
WHERE c.tenant_id = @tenant_id AND c.account_id = @account_id AND c.retracted_at IS NULL;

-- name: TriageDecisionsInsert :exec
INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question,
    decision, signals, prediction, features, notes, skipped, model)
SELECT @tenant_id, (r ->> 'message_id')::uuid, @account_id, @run_id, r ->> 'act', r ->> 'category', r ->> 'priority', r ->> 'bucket', r ->> 'cohort',
    (r ->> 'level')::smallint, (r ->> 'confidence')::float8, (r ->> 'question')::boolean, r -> 'decision', r -> 'signals', r -> 'prediction',
    decode(r ->> 'features', 'base64'), r -> 'notes', r -> 'skipped', r ->> 'model'
FROM jsonb_array_elements(@rows::jsonb) r;

-- name: TriageDue :one
-- How many accounts are due that no run has.
SELECT count(1)
FROM triage_schedules s
JOIN triage_accounts a ON a.tenant_id = s.tenant_id AND a.account_id = s.account_id
WHERE s.tenant_id = @tenant_id AND a.enabled AND (s.next_run_at <= now() OR s.asked_at IS NOT NULL)
    AND (s.holder IS NULL OR s.lease_until < now());

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

-- name: TriageHold :execrows
-- Extends the lease of the run that holds an account. Every transaction of a run
-- that writes begins with it: the row lock makes a run that lost its lease wait,
-- and then find another holder.
UPDATE triage_schedules s
SET lease_until = clock_timestamp() + make_interval(secs => @lease_seconds::float8), quota = @quota
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder;

-- name: TriageLocations :many
-- What is known of locations in a folder, with the values that triage proposed to
-- add to the message there.
SELECT l.key, l.message_id, l.flags,
    ARRAY(
        SELECT (p.action || ' ' || (f.value ->> 'value'))::text
        FROM triage_proposals p
        CROSS JOIN LATERAL jsonb_array_elements(p.fields) f
        WHERE p.tenant_id = l.tenant_id AND p.message_id = l.message_id AND (f.value ->> 'pointer') ~ '^/(labels|flags)/add/'
    )::text[] AS proposed
FROM triage_locations l
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder AND l.key = ANY (@keys::text[]);

-- name: TriageLocationsDelete :exec
DELETE FROM triage_locations l
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder AND l.key = ANY (@keys::text[]);

-- name: TriageLocationsKnown :many
SELECT l.key FROM triage_locations l WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder;

-- name: TriageLocationsPut :exec
INSERT INTO triage_locations (tenant_id, account_id, folder, key, message_id, flags)
SELECT @tenant_id, @account_id, @folder, r ->> 'key', (r ->> 'message_id')::uuid, ARRAY(SELECT jsonb_array_elements_text(r -> 'flags'))
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT (tenant_id, account_id, folder, key) DO UPDATE SET message_id = excluded.message_id, flags = excluded.flags;

-- name: TriageLocationsVoid :exec
-- Keeps the locations of a folder, all of which are void, under a name that no
-- folder has: until the folder was read again they say that the messages were
-- there.
UPDATE triage_locations l
SET folder = '', key = l.folder || E'\n' || l.key
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = @folder;

-- name: TriageLocationsVoidedDelete :exec
DELETE FROM triage_locations l
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.folder = '' AND starts_with(l.key, @folder::text || E'\n');

-- name: TriageMessagesInsert :exec
INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, header_id, refs, thread_id, thread_subject, participants, outgoing,
    sender, sender_name, list, subject, body, sent_at, received_at, size)
SELECT @tenant_id, (r ->> 'message_id')::uuid, @account_id, decode(r ->> 'identity', 'hex'), r ->> 'header_id',
    ARRAY(SELECT jsonb_array_elements_text(r -> 'refs')), (r ->> 'thread_id')::uuid, r ->> 'thread_subject',
    ARRAY(SELECT jsonb_array_elements_text(r -> 'participants')), (r ->> 'outgoing')::boolean, r ->> 'sender', r ->> 'sender_name', r ->> 'list',
    r ->> 'subject', r ->> 'body', (r ->> 'sent_at')::timestamptz, (r ->> 'received_at')::timestamptz, (r ->> 'size')::bigint
FROM jsonb_array_elements(@rows::jsonb) r;

-- name: TriageMessagesKnown :many
-- Messages of an account that are known by their identities, and how many copies
-- of each lie somewhere.
SELECT m.message_id, m.identity,
    (SELECT count(1) FROM triage_locations l WHERE l.tenant_id = m.tenant_id AND l.message_id = m.message_id) AS copies,
    ARRAY(
        SELECT p.action FROM triage_proposals p
        WHERE p.tenant_id = m.tenant_id AND p.message_id = m.message_id AND p.action IN ('archive', 'quarantine')
    )::text[] AS moved
FROM triage_messages m
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.identity = ANY (@identities::bytea[]);

-- name: TriageMessagesRelated :many
-- Messages of an account that others name, or that name others, or that have
-- the subject of a thread and a participant in common. Senders choose all of
-- these, so that there may be any number; some of each are enough, those of the owner first.
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
-- Each is looked up by its key, however few rows the planner believes in.
CROSS JOIN LATERAL (
    SELECT k.message_id, k.header_id, k.refs, k.thread_id, k.thread_subject, k.participants, k.outgoing, k.sender, k.received_at
    FROM triage_messages k WHERE k.tenant_id = @tenant_id AND k.message_id = found.message_id LIMIT 1
) m
LEFT JOIN LATERAL (
    SELECT e.bucket FROM triage_decisions e WHERE e.tenant_id = @tenant_id AND e.message_id = found.message_id LIMIT 1
) d ON true
ORDER BY m.outgoing DESC, m.received_at DESC
LIMIT 2000;

-- name: TriageProposalsInsert :many
-- Stores what is to be proposed. What was proposed before, by whatever run, is
-- left out.
INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope)
SELECT @tenant_id, r ->> 'external_id', @account_id, (r ->> 'message_id')::uuid, r ->> 'action', r -> 'fields', r -> 'envelope'
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT (tenant_id, external_id) DO NOTHING
RETURNING external_id, envelope;

-- name: TriageProposalsPropose :many
-- Proposes envelopes in this transaction and returns their ids in the same order.
SELECT unnest(countersign.propose_many(@envelopes::jsonb[]))::uuid AS proposal_id;

-- name: TriageProposalsProposed :exec
UPDATE triage_proposals p
SET proposal_id = n.proposal_id
FROM (SELECT unnest(@external_ids::text[]) AS external_id, unnest(@proposal_ids::uuid[]) AS proposal_id) n
WHERE p.tenant_id = @tenant_id AND p.external_id = n.external_id;

-- name: TriageRefsInsert :exec
INSERT INTO triage_refs (tenant_id, account_id, ref, outgoing, message_id)
SELECT @tenant_id, @account_id, jsonb_array_elements_text(r -> 'refs'), (r ->> 'outgoing')::boolean, (r ->> 'message_id')::uuid
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT DO NOTHING;

-- name: TriageRelease :exec
-- Ends the claim of an account.
UPDATE triage_schedules s
SET holder = NULL, lease_until = NULL, next_run_at = now() + make_interval(secs => @pause_seconds::float8)
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder;

-- name: TriageRenew :one
-- Extends the lease, and says whether somebody asked for a run, and whether the
-- account is still what it was.
UPDATE triage_schedules s
SET lease_until = clock_timestamp() + make_interval(secs => @lease_seconds::float8)
FROM triage_accounts a
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder
    AND a.tenant_id = s.tenant_id AND a.account_id = s.account_id
RETURNING (s.asked_at IS NOT NULL)::boolean AS asked, a.version, a.enabled;

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
-- Ends the runs of an account whose processes did not.
UPDATE triage_runs r SET ended_at = now(), error = 'interrupted'
WHERE r.tenant_id = @tenant_id AND r.account_id = @account_id AND r.ended_at IS NULL;

-- name: TriageScheduleEnd :exec
-- Records how a run ended, and when the next one is.
UPDATE triage_schedules s
SET last_ended_at = now(), last_error = nullif(@error::text, ''), quota = @quota,
    failures = CASE WHEN @error::text = '' THEN 0 ELSE s.failures + 1 END,
    next_run_at = now() + make_interval(secs => @pause_seconds::float8)
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder;

-- name: TriageScheduleFill :exec
-- Makes the rows of accounts that have none.
INSERT INTO triage_schedules (tenant_id, account_id)
SELECT a.tenant_id, a.account_id FROM triage_accounts a
WHERE a.tenant_id = @tenant_id AND NOT EXISTS (SELECT 1 FROM triage_schedules s WHERE s.tenant_id = a.tenant_id AND s.account_id = a.account_id)
ON CONFLICT DO NOTHING;

-- name: TriageScheduleStart :one
-- Returns how many runs failed one after the other, and what they left of the
-- provider's limits.
UPDATE triage_schedules s
SET last_started_at = now(), last_run_id = NULL, asked_at = NULL
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.holder = @holder
RETURNING s.failures, s.quota;

-- name: TriageSenders :many
SELECT s.address, s.first_seen, s.last_seen, s.received, s.sent, s.replied, s.corrected
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

-- name: TriageThreadsJoin :exec
-- Makes one thread of several that turned out to be one.
UPDATE triage_messages m SET thread_id = @thread_id WHERE m.tenant_id = @tenant_id AND m.thread_id = ANY (@others::uuid[]);

-- name: TriageTouched :exec
-- Records that the owner touched messages, and what the owner took back.
UPDATE triage_messages m
SET touched_at = coalesce(m.touched_at, now()), undone = ARRAY(SELECT DISTINCT u FROM unnest(m.undone || ARRAY(SELECT jsonb_array_elements_text(r -> 'undone'))) u ORDER BY u)
FROM jsonb_array_elements(@rows::jsonb) r
WHERE m.tenant_id = @tenant_id AND m.message_id = (r ->> 'message_id')::uuid;
