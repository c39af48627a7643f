-- name: ProposalAnswer :exec
-- Stores the answers of proposals that did not become actions of their own.
UPDATE proposals p
SET answered_at = now(), action_id = nullif(a.action_id, '00000000-0000-0000-0000-000000000000'), problem = nullif(a.problem, 'null'::jsonb)
FROM (
    SELECT unnest(@proposal_ids::uuid[]) AS proposal_id, unnest(@action_ids::uuid[]) AS action_id, unnest(@problems::jsonb[]) AS problem
) a
WHERE p.tenant_id = @tenant_id AND p.proposal_id = a.proposal_id;

-- name: ProposalCount :exec
-- Counts the waiting proposals of logins that were not counted for some time, up to the
-- limit that countersign.propose checks. One process at a time: an advisory lock, since
-- a row lock would keep a login's proposals from being taken. ORDER BY needs all counts
-- before a row is locked. A login that was counted meanwhile keeps the later count.
UPDATE db_logins l
SET waiting = c.waiting, waiting_bytes = c.bytes, counted_at = clock_timestamp()
FROM (
    SELECT d.login_id, d.counted_at, w.waiting, w.bytes
    FROM db_logins d
    CROSS JOIN LATERAL (
        SELECT count(1) AS waiting, sum(b.bytes) AS bytes
        FROM (SELECT p.bytes FROM proposals p WHERE p.login_id = d.login_id AND p.answered_at IS NULL LIMIT d.waiting_max) b
    ) w
    WHERE (SELECT pg_try_advisory_xact_lock(hashtextextended('countersign count of proposals', 0)))
        AND (d.counted_at IS NULL OR d.counted_at < now() - interval '2 seconds')
        AND w.waiting > 0
    ORDER BY w.waiting
) c
WHERE l.login_id = c.login_id AND l.counted_at IS NOT DISTINCT FROM c.counted_at;

-- name: ProposalDelete :exec
-- Deletes proposals that became actions.
DELETE FROM proposals p WHERE p.tenant_id = @tenant_id AND p.proposal_id = ANY (@proposal_ids::uuid[]);

-- name: ProposalDrained :exec
-- Counts none of a login whose row the caller has locked, and whose last ones it takes.
UPDATE db_logins l SET waiting = 0, waiting_bytes = 0, counted_at = clock_timestamp() WHERE l.login_id = @login_id;

-- name: ProposalGet :one
SELECT p.proposal_id, l.login, p.proposed_at, p.answered_at, p.action_id, p.problem, p.body
FROM proposals p
JOIN db_logins l ON l.login_id = p.login_id
WHERE p.tenant_id = @tenant_id AND p.proposal_id = @proposal_id;

-- name: ProposalHold :exec
-- Pauses taking a login's proposals for some time; 0 ends that.
UPDATE db_logins l SET held_until = clock_timestamp() + nullif(@seconds::float8, 0) * interval '1 second' WHERE l.login_id = @login_id;

-- name: ProposalListAnswered :many
-- Refused proposals and duplicates, newest first.
SELECT p.proposal_id, l.login, p.proposed_at, p.answered_at, p.action_id, p.problem
FROM proposals p
JOIN db_logins l ON l.login_id = p.login_id
WHERE p.tenant_id = @tenant_id
    AND p.answered_at IS NOT NULL
    AND (@state::text = '' OR (@state::text = 'refused') = (p.problem IS NOT NULL))
    AND (@login::text = '' OR l.login = @login::text)
    AND (@before::uuid = '00000000-0000-0000-0000-000000000000' OR p.proposal_id < @before::uuid)
ORDER BY p.proposal_id DESC
LIMIT @most::bigint;

-- name: ProposalListWaiting :many
-- Proposals that wait for a worker, newest first.
SELECT p.proposal_id, l.login, p.proposed_at
FROM proposals p
JOIN db_logins l ON l.login_id = p.login_id
WHERE p.tenant_id = @tenant_id
    AND p.answered_at IS NULL
    AND (@login::text = '' OR l.login = @login::text)
    AND (@before::uuid = '00000000-0000-0000-0000-000000000000' OR p.proposal_id < @before::uuid)
ORDER BY p.proposal_id DESC
LIMIT @most::bigint;

-- name: ProposalNextLogin :one
-- A random login with waiting proposals, so that none has priority. Its row is
-- locked, so that one worker at a time takes the proposals of a login, in their
-- order; logins of other workers are skipped. bindings are the ids of all
-- bindings of the login to the tenant. closed reports whether it may no longer
-- propose, held whether its last turn ended in a pause, and uncounted whether
-- its waiting proposals were not counted for some time. The first proposal of each login is
-- looked up in the index: EXISTS would let the planner hash all waiting ones.
SELECT l.tenant_id, l.login_id, l.login, l.employee_id, l.session_id, l.operator_id, l.tools, l.automations, l.employees, l.sessions, l.external_id_prefix,
    ARRAY(SELECT e.login_id FROM db_logins e WHERE e.tenant_id = l.tenant_id AND e.login = l.login)::uuid[] AS bindings,
    (l.unbound_at IS NOT NULL OR token_revoked(l.tenant_id, coalesce(l.operator_id, l.login_id)))::boolean AS closed,
    (l.held_until IS NOT NULL)::boolean AS held, l.waiting,
    (l.counted_at IS NULL OR l.counted_at < now() - interval '2 seconds')::boolean AS uncounted
FROM db_logins l
CROSS JOIN LATERAL (
    SELECT p.proposal_no FROM proposals p WHERE p.login_id = l.login_id AND p.answered_at IS NULL ORDER BY p.proposal_no LIMIT 1
) first
WHERE l.held_until IS NULL OR l.held_until <= now()
ORDER BY random()
LIMIT 1
FOR NO KEY UPDATE OF l SKIP LOCKED;

-- name: ProposalPrune :execrows
-- Deletes answers older than a week, and all but the newest of each login.
DELETE FROM proposals p
USING (
    SELECT old.tenant_id, old.proposal_id
    FROM db_logins l
    CROSS JOIN LATERAL (
        (SELECT a.tenant_id, a.proposal_id FROM proposals a WHERE a.login_id = l.login_id AND a.answered_at IS NOT NULL
        ORDER BY a.proposal_no DESC OFFSET @kept::bigint LIMIT @most::bigint)
        UNION ALL
        (SELECT a.tenant_id, a.proposal_id FROM proposals a
        WHERE a.login_id = l.login_id AND a.answered_at < now() - make_interval(secs => @seconds::float8)
        ORDER BY a.proposal_no LIMIT @most::bigint)
    ) old
) o
WHERE p.tenant_id = o.tenant_id AND p.proposal_id = o.proposal_id;

-- name: ProposalTake :many
-- The first waiting proposals of a login, up to a number of bytes, and at least
-- one. Only the holder of its row lock takes them; rows of open transactions are
-- not visible, and are taken later.
SELECT w.proposal_id, w.body
FROM (
    SELECT p.proposal_id, p.proposal_no, p.body, sum(p.bytes) OVER (ORDER BY p.proposal_no) - p.bytes AS before
    FROM (
        SELECT f.proposal_id, f.proposal_no, f.body, f.bytes
        FROM proposals f
        WHERE f.login_id = @login_id AND f.answered_at IS NULL
        ORDER BY f.proposal_no
        LIMIT @most::bigint
    ) p
) w
WHERE w.before < @most_bytes::bigint
ORDER BY w.proposal_no;
