-- name: TriageMeetingPeople :many
-- Counts the messages of an account from and to some addresses, in lower case.
SELECT x.address::text AS address, count(1) FILTER (WHERE NOT x.outgoing) AS theirs, count(1) FILTER (WHERE x.outgoing) AS mine, max(x.received_at)::timestamptz AS last
FROM (
    SELECT lower(m.sender) AS address, m.outgoing, m.received_at
    FROM triage_messages m
    WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.received_at >= @since AND m.received_at <= @until AND NOT m.outgoing AND lower(m.sender) = ANY(@people::text[])
    UNION ALL
    SELECT p.address, m.outgoing, m.received_at
    FROM triage_messages m
    CROSS JOIN LATERAL (SELECT DISTINCT lower(o.a) AS address FROM unnest(m.participants) AS o (a)) p
    WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.received_at >= @since AND m.received_at <= @until AND m.outgoing AND p.address = ANY(@people::text[])
) x
GROUP BY x.address;

-- name: TriageMeetingThreads :many
-- The newest message of each thread with some addresses, in lower case, newest first.
SELECT t.message_id, t.thread_id, t.sender, t.sender_name, t.subject, t.received_at, t.outgoing, count(1) OVER () AS threads
FROM (
    SELECT DISTINCT ON (m.thread_id) m.message_id, m.thread_id, m.sender, m.sender_name, m.subject, m.received_at, m.outgoing
    FROM triage_messages m
    WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND m.received_at >= @since AND m.received_at <= @until
        AND CASE WHEN m.outgoing THEN EXISTS (SELECT FROM unnest(m.participants) AS o (a) WHERE lower(o.a) = ANY(@people::text[])) ELSE lower(m.sender) = ANY(@people::text[]) END
    ORDER BY m.thread_id, m.received_at DESC, m.message_id
) t
ORDER BY t.received_at DESC, t.message_id
LIMIT @most::bigint;
