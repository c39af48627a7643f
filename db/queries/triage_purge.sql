-- Erasing what triage holds of a mail account, in sets. A message is kept while an
-- action about it can still run: a pause of triage finds the account of an action
-- by its proposal.

-- name: TriagePurgeCount :one
-- Counts the rows of an account in each table; the messages that are kept because
-- of an open action; and its actions, which stay in the record, with those whose
-- arguments have text of mail.
SELECT
    (SELECT count(1) FROM triage_messages m WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id)::bigint AS messages,
    (SELECT count(1) FROM triage_refs r WHERE r.tenant_id = @tenant_id AND r.account_id = @account_id)::bigint AS refs,
    (SELECT count(1) FROM triage_locations l WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id)::bigint AS locations,
    (SELECT count(1) FROM triage_decisions d WHERE d.tenant_id = @tenant_id AND d.account_id = @account_id)::bigint AS decisions,
    (SELECT count(1) FROM triage_corrections c WHERE c.tenant_id = @tenant_id AND c.account_id = @account_id)::bigint AS corrections,
    (SELECT count(1) FROM triage_proposals p WHERE p.tenant_id = @tenant_id AND p.account_id = @account_id)::bigint AS proposals,
    (SELECT count(1) FROM triage_texts t WHERE t.tenant_id = @tenant_id AND t.account_id = @account_id)::bigint AS texts,
    (SELECT count(1) FROM triage_senders s WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id)::bigint AS senders,
    (SELECT count(1) FROM triage_set_aside w WHERE w.tenant_id = @tenant_id AND w.account_id = @account_id)::bigint AS set_aside,
    (SELECT count(1) FROM triage_folders f WHERE f.tenant_id = @tenant_id AND f.account_id = @account_id)::bigint AS folders,
    (SELECT count(1) FROM triage_runs u WHERE u.tenant_id = @tenant_id AND u.account_id = @account_id)::bigint AS runs,
    (SELECT count(1) FROM triage_tags g WHERE g.tenant_id = @tenant_id AND g.account_id = @account_id)::bigint AS tags,
    (SELECT count(1) FROM triage_tag_log y WHERE y.tenant_id = @tenant_id AND y.account_id = @account_id)::bigint AS tries,
    (SELECT count(1) FROM triage_labels b WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id)::bigint AS labels,
    o.open, o.actions, o.texts AS actions_with_text
FROM (
    SELECT count(DISTINCT p.message_id) FILTER (WHERE a.approval_state = 'required' OR b.action_id IS NOT NULL OR q.proposal_id IS NOT NULL)::bigint AS open,
        count(a.action_id)::bigint AS actions, count(a.action_id) FILTER (WHERE a.tool_name IN ('message.draft', 'message.send'))::bigint AS texts
    FROM triage_proposals p
    LEFT JOIN actions a ON a.tenant_id = p.tenant_id AND a.external_id = p.external_id
    LEFT JOIN outbox b ON b.tenant_id = a.tenant_id AND b.action_id = a.action_id
    LEFT JOIN proposals q ON q.tenant_id = p.tenant_id AND q.proposal_id = p.proposal_id AND q.answered_at IS NULL
    WHERE p.tenant_id = @tenant_id AND p.account_id = @account_id
) o;

-- name: TriagePurgeHold :one
-- Locks an account, and returns whether it is stopped and whether a run holds it.
-- A run that wants it waits for the lock on the schedule.
SELECT a.account_id, (NOT a.enabled OR triage_pause(a.tenant_id, a.account_id) = 'paused')::boolean AS stopped,
    coalesce(s.holder IS NOT NULL AND s.lease_until >= clock_timestamp(), false)::boolean AS running
FROM triage_accounts a
LEFT JOIN LATERAL (
    SELECT h.holder, h.lease_until FROM triage_schedules h WHERE h.tenant_id = a.tenant_id AND h.account_id = a.account_id FOR UPDATE
) s ON true
WHERE a.tenant_id = @tenant_id AND a.name = @name
FOR NO KEY UPDATE OF a;

-- name: TriagePurgeMessages :one
-- Deletes a set of messages without open actions, and counts the rows that go with
-- them: every count sees the state before. The briefs of the account go first, and
-- the arguments of tries in the record too.
WITH chosen AS MATERIALIZED (
    SELECT m.message_id
    FROM triage_messages m
    WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id
        AND NOT EXISTS (
            SELECT 1
            FROM triage_proposals p
            JOIN actions a ON a.tenant_id = p.tenant_id AND a.external_id = p.external_id
            WHERE p.tenant_id = m.tenant_id AND p.message_id = m.message_id
                AND (a.approval_state = 'required' OR EXISTS (SELECT 1 FROM outbox b WHERE b.tenant_id = a.tenant_id AND b.action_id = a.action_id))
        )
        AND NOT EXISTS (
            SELECT 1
            FROM triage_proposals p
            JOIN proposals q ON q.tenant_id = p.tenant_id AND q.proposal_id = p.proposal_id AND q.answered_at IS NULL
            WHERE p.tenant_id = m.tenant_id AND p.message_id = m.message_id
        )
    ORDER BY m.identity
    LIMIT @most::bigint
), deleted AS (
    DELETE FROM triage_messages m
    USING chosen c
    WHERE m.tenant_id = @tenant_id AND m.message_id = c.message_id
    RETURNING m.message_id
), briefs AS (
    DELETE FROM triage_briefs b WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id
), calendars AS (
    DELETE FROM triage_calendars c WHERE c.tenant_id = @tenant_id AND c.account_id = @account_id
)
SELECT (SELECT count(1) FROM deleted)::bigint AS messages,
    (SELECT count(1) FROM triage_refs r JOIN chosen c ON r.message_id = c.message_id WHERE r.tenant_id = @tenant_id)::bigint AS refs,
    (SELECT count(1) FROM triage_locations l JOIN chosen c ON l.message_id = c.message_id WHERE l.tenant_id = @tenant_id)::bigint AS locations,
    (SELECT count(1) FROM triage_decisions d JOIN chosen c ON d.message_id = c.message_id WHERE d.tenant_id = @tenant_id)::bigint AS decisions,
    (SELECT count(1) FROM triage_corrections k JOIN chosen c ON k.message_id = c.message_id WHERE k.tenant_id = @tenant_id)::bigint AS corrections,
    (SELECT count(1) FROM triage_proposals p JOIN chosen c ON p.message_id = c.message_id WHERE p.tenant_id = @tenant_id)::bigint AS proposals,
    (SELECT count(1) FROM triage_texts t JOIN chosen c ON t.message_id = c.message_id WHERE t.tenant_id = @tenant_id)::bigint AS texts,
    (SELECT count(1) FROM triage_tags g JOIN chosen c ON g.message_id = c.message_id WHERE g.tenant_id = @tenant_id)::bigint AS tags,
    (SELECT count(1) FROM triage_tag_log y JOIN chosen c ON y.message_id = c.message_id WHERE y.tenant_id = @tenant_id)::bigint AS tries,
    (SELECT triage_erase_messages(array_agg(c.message_id)) FROM chosen c)::bigint AS erased,
    EXISTS (
        SELECT 1 FROM triage_messages m
        WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.message_id NOT IN (SELECT c.message_id FROM chosen c)
    )::boolean AS more;

-- name: TriagePurgeOthers :one
-- Deletes a set of the rows of an account that are about no message.
WITH senders AS (
    DELETE FROM triage_senders s
    WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.address IN (
        SELECT x.address FROM triage_senders x WHERE x.tenant_id = @tenant_id AND x.account_id = @account_id LIMIT @most::bigint)
    RETURNING 1
), set_aside AS (
    DELETE FROM triage_set_aside w
    WHERE w.tenant_id = @tenant_id AND w.account_id = @account_id AND (w.folder, w.key) IN (
        SELECT x.folder, x.key FROM triage_set_aside x WHERE x.tenant_id = @tenant_id AND x.account_id = @account_id LIMIT @most::bigint)
    RETURNING 1
), folders AS (
    DELETE FROM triage_folders f
    WHERE f.tenant_id = @tenant_id AND f.account_id = @account_id AND f.folder IN (
        SELECT x.folder FROM triage_folders x WHERE x.tenant_id = @tenant_id AND x.account_id = @account_id LIMIT @most::bigint)
    RETURNING 1
), runs AS (
    DELETE FROM triage_runs u
    WHERE u.tenant_id = @tenant_id AND u.run_id IN (
        SELECT x.run_id FROM triage_runs x WHERE x.tenant_id = @tenant_id AND x.account_id = @account_id LIMIT @most::bigint)
    RETURNING 1
), labels AS (
    DELETE FROM triage_labels b WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id
    RETURNING 1
)
SELECT (SELECT count(1) FROM senders)::bigint AS senders, (SELECT count(1) FROM set_aside)::bigint AS set_aside,
    (SELECT count(1) FROM folders)::bigint AS folders, (SELECT count(1) FROM runs)::bigint AS runs, (SELECT count(1) FROM labels)::bigint AS labels;

-- name: TriagePurgeSchedule :exec
-- Makes the schedule of an account that of one that was never read. The rest of
-- the provider's quota stays, since the provider counts on.
UPDATE triage_schedules s
SET next_run_at = now(), asked_at = NULL, last_run_id = NULL, last_started_at = NULL, last_ended_at = NULL, last_read_at = NULL, last_error = NULL,
    failures = 0, corrections_at = '-infinity'
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id;
