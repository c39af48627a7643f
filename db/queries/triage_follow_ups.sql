-- name: TriageFollowUpList :many
-- The follow-ups of an account, oldest first: per thread and side the
-- newest message that asks or promises something, unless somebody of that side has
-- written in the thread since, or a person closed it or put it off. A promise of the
-- owner is apart: a later message that has the promised thing ends it.
WITH asked AS MATERIALIZED (
    SELECT m.message_id, m.thread_id, m.received_at, m.left_at, false AS promised, CASE WHEN d.act = 'commit' THEN 'them' ELSE 'me' END AS owed_by, d.act AS because
    FROM triage_decisions d
    JOIN triage_messages m ON m.tenant_id = d.tenant_id AND m.message_id = d.message_id
    WHERE d.tenant_id = @tenant_id AND d.account_id = @account_id AND d.received_at >= @since AND d.act IN ('request', 'propose', 'meet', 'commit')
        AND (d.act = 'commit' AND d.bucket <> 'archived' OR d.bucket IN ('urgent', 'actionable')) AND NOT m.automated AND m.list = ''
    UNION ALL
    SELECT q.message_id, q.thread_id, q.received_at, NULL, false, 'them', 'question'
    FROM triage_messages q
    WHERE q.tenant_id = @tenant_id AND q.account_id = @account_id AND q.received_at >= @since AND q.awaits
    UNION ALL
    SELECT o.message_id, o.thread_id, o.received_at, NULL, true, 'me', 'commit'
    FROM triage_messages o
    WHERE o.tenant_id = @tenant_id AND o.account_id = @account_id AND o.received_at >= @since AND o.promises
), newest AS (
    SELECT DISTINCT ON (a.thread_id, a.owed_by, a.promised) a.message_id, a.thread_id, a.received_at, a.left_at, a.promised, a.owed_by, a.because
    FROM asked a
    ORDER BY a.thread_id, a.owed_by, a.promised, a.received_at DESC, a.message_id
)
SELECT n.message_id, n.thread_id, n.owed_by::text AS owed_by, n.because::text AS because, n.received_at, m.sent_at, m.sent_offset, m.outgoing, m.sender, m.sender_name, m.subject,
    m.participants, left(m.body, 8000)::text AS body, f.done_at, f.later_until
FROM newest n
JOIN triage_messages m ON m.tenant_id = @tenant_id AND m.message_id = n.message_id
LEFT JOIN triage_follow_ups f ON f.tenant_id = @tenant_id AND f.message_id = n.message_id
WHERE (@closed::boolean OR f.done_at IS NULL AND (f.later_until IS NULL OR f.later_until <= @at::timestamptz))
    AND NOT (@archiving_closes::boolean AND n.left_at IS NOT NULL)
    AND NOT EXISTS (
        SELECT FROM triage_messages r
        WHERE r.tenant_id = @tenant_id AND r.thread_id = n.thread_id AND r.received_at > n.received_at
            AND r.outgoing = (n.owed_by = 'me') AND NOT r.automated AND (r.delivers OR NOT n.promised)
    )
ORDER BY n.received_at, n.message_id
LIMIT @most::bigint;

-- name: TriageFollowUpPut :execrows
-- Closes a follow-up, opens it again, or puts it off.
INSERT INTO triage_follow_ups AS f (tenant_id, message_id, account_id, done_at, later_until, set_by)
SELECT m.tenant_id, m.message_id, m.account_id, CASE WHEN @done::boolean THEN now() END, sqlc.narg(later_until)::timestamptz, @set_by
FROM triage_messages m
WHERE m.tenant_id = @tenant_id AND m.message_id = @message_id
ON CONFLICT ON CONSTRAINT triage_follow_ups_pkey
DO UPDATE SET done_at = CASE WHEN @done::boolean THEN coalesce(f.done_at, now()) END, later_until = excluded.later_until, set_by = excluded.set_by, set_at = now();
