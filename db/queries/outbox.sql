-- name: OutboxCancel :many
-- Ends the actions that a kill covers and no worker holds: as skipped or, where
-- a call may have had its effect, as unknown, with a dead letter. At most @most
-- rows per statement, in the order of the primary key. FOR UPDATE SKIP LOCKED:
-- the next sweep ends the rows that are being claimed, settled or undone now.
WITH killed AS MATERIALIZED (
    SELECT o.tenant_id, o.action_id, o.attempt,
        CASE
            WHEN o.status = 'sending' THEN 'unknown'
            WHEN a.effect IN ('idempotent', 'keyed') AND (o.unsure OR o.lost > 0 OR o.lease_until IS NOT NULL) THEN 'unknown'
            ELSE 'skipped'
        END AS status
    FROM outbox o
    JOIN actions a ON a.tenant_id = o.tenant_id AND a.action_id = o.action_id
    JOIN buckets b ON b.bucket_id = o.bucket_id
    WHERE o.tenant_id BETWEEN @first_tenant AND @last_tenant
        AND (o.tenant_id, o.action_id) > (@after_tenant::uuid, @after_action::uuid)
        AND CASE WHEN @scope::text = 'automation' THEN automation_proposed_at(a.tenant_id, a.external_id, a.created_at) ELSE a.created_at END <= @killed_at::timestamptz
        AND CASE WHEN @scope::text = 'automation' THEN automation_covers(@subject::text, a.tenant_id, a.automation_id, a.external_id)
            ELSE pause_covers(@scope::text, @subject::text, a.employee_id, a.source_id, a.tool_name, b.name) END
        AND (o.lease_until IS NULL OR o.lease_until < now())
    ORDER BY o.tenant_id, o.action_id
    LIMIT @most::bigint
    FOR UPDATE OF o SKIP LOCKED
), deleted AS (
    DELETE FROM outbox o
    WHERE (o.tenant_id, o.action_id) IN (SELECT h.tenant_id, h.action_id FROM killed h)
    RETURNING o.tenant_id, o.bucket_id, o.claim_id
), subtracted AS (
    INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n)
    SELECT g.tenant_id, g.bucket_id, g.claim_id, -count(1)
    FROM deleted g
    WHERE g.claim_id IS NOT NULL
    GROUP BY g.tenant_id, g.bucket_id, g.claim_id
), inserted_attempts AS (
    INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, finished_at)
    SELECT h.tenant_id, h.action_id, h.attempt, h.status, 'killed', @message::text, clock_timestamp()
    FROM killed h
), inserted_dead_letters AS (
    INSERT INTO dead_letters (tenant_id, action_id, reason, attempt, code, message)
    SELECT h.tenant_id, h.action_id, 'unknown', h.attempt, 'killed', @message::text
    FROM killed h
    WHERE h.status = 'unknown'
    ON CONFLICT ON CONSTRAINT dead_letters_pkey DO UPDATE
    SET reason = excluded.reason, attempt = excluded.attempt, code = excluded.code, message = excluded.message, created_at = now()
)
SELECT h.tenant_id, h.action_id, h.attempt, h.status::text AS status FROM killed h ORDER BY h.tenant_id, h.action_id;

-- name: OutboxCancelLeft :one
-- Reports whether actions that a kill covers remain: held by a worker, waiting
-- for a person, or proposed by triage and not taken yet.
SELECT (EXISTS (
    SELECT FROM outbox o
    JOIN actions a ON a.tenant_id = o.tenant_id AND a.action_id = o.action_id
    JOIN buckets b ON b.bucket_id = o.bucket_id
    WHERE o.tenant_id BETWEEN @first_tenant AND @last_tenant
        AND CASE WHEN @scope::text = 'automation' THEN automation_proposed_at(a.tenant_id, a.external_id, a.created_at) ELSE a.created_at END <= @killed_at::timestamptz
        AND CASE WHEN @scope::text = 'automation' THEN automation_covers(@subject::text, a.tenant_id, a.automation_id, a.external_id)
            ELSE pause_covers(@scope::text, @subject::text, a.employee_id, a.source_id, a.tool_name, b.name) END
) OR EXISTS (
    SELECT FROM actions a
    JOIN buckets b ON b.bucket_id = a.bucket_id
    WHERE a.approval_state = 'required'
        AND a.tenant_id BETWEEN @first_tenant AND @last_tenant
        AND CASE WHEN @scope::text = 'automation' THEN automation_proposed_at(a.tenant_id, a.external_id, a.created_at) ELSE a.created_at END <= @killed_at::timestamptz
        AND CASE WHEN @scope::text = 'automation' THEN automation_covers(@subject::text, a.tenant_id, a.automation_id, a.external_id)
            ELSE pause_covers(@scope::text, @subject::text, a.employee_id, a.source_id, a.tool_name, b.name) END
) OR @scope::text = 'automation' AND EXISTS (
    SELECT FROM proposals q
    JOIN triage_proposals t ON t.tenant_id = q.tenant_id AND t.proposal_id = q.proposal_id
    WHERE q.answered_at IS NULL
        AND q.tenant_id BETWEEN @first_tenant AND @last_tenant
        AND t.proposed_at <= @killed_at
        AND automation_covers(@subject::text, t.tenant_id, NULL, t.external_id)
))::boolean AS left_over;

-- name: OutboxAutomations :many
-- The automations of actions that triage proposed.
SELECT a.action_id, triage_automation(a.tenant_id, a.external_id)::text AS automation
FROM actions a
JOIN (SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id) n ON n.tenant_id = a.tenant_id AND n.action_id = a.action_id
WHERE triage_automation(a.tenant_id, a.external_id) IS NOT NULL;

-- name: OutboxClaim :many
-- Leases up to a quota of due rows per bucket and reads the data for the call:
-- the first rows in due order and the first awaited ones. A row among both is
-- claimed once. FOR UPDATE SKIP LOCKED: workers claim concurrently and must not
-- wait for each other; a later claim finds the skipped rows. The lower bounds
-- are the ends of the last claim of this bucket: they keep the scan off the dead
-- index entries of settled rows. A bucket that has been closed or paused returns
-- no rows; a bucket with limits returns only the rows that BucketGrant granted
-- under its lock, so that a new limit applies immediately. Nothing is returned
-- unless the epoch is the fence's.
--
-- Rows of buckets with a concurrency limit are counted in bucket_claims. Each statement
-- that deletes a row or puts it back subtracts it there by an insertion, which waits for
-- no other transaction: no lock order is needed. Renewals lock claims in their order,
-- after rows of the outbox and before nothing.
WITH requests AS (
    SELECT
        unnest(@bucket_ids::bigint[]) AS bucket_id,
        unnest(@lowers::timestamptz[]) AS lower,
        unnest(@quotas::bigint[]) AS quota,
        unnest(@awaited_lowers::timestamptz[]) AS awaited_lower,
        unnest(@awaited_quotas::bigint[]) AS awaited_quota,
        unnest(@granted::boolean[]) AS granted
), open_buckets AS MATERIALIZED (
    SELECT k.bucket_id, k.lower, k.quota, k.awaited_lower, k.awaited_quota, b.concurrency IS NOT NULL AS counted
    FROM requests k
    JOIN buckets b ON b.bucket_id = k.bucket_id
    WHERE b.limited = k.granted
        AND (k.granted OR b.opens_at IS NULL OR b.opens_at <= now())
        AND NOT EXISTS (
            SELECT FROM pauses p
            WHERE p.lifted_at IS NULL
                AND (p.scope = 'everything' OR p.tenant_id = b.tenant_id AND (p.scope = 'tenant' OR p.scope = 'bucket' AND p.subject = b.name))
        )
        AND (SELECT e.epoch FROM fence_epoch e) = @epoch::bigint
), awaited_rows AS MATERIALIZED (
    SELECT due.tenant_id, due.action_id, due.claim_id, w.counted
    FROM open_buckets w
    CROSS JOIN LATERAL (
        SELECT o.tenant_id, o.action_id, o.claim_id
        FROM outbox o
        WHERE o.bucket_id = w.bucket_id
            AND o.awaited
            AND o.next_attempt_at >= w.awaited_lower
            AND o.next_attempt_at <= now()
            AND (o.lease_until IS NULL OR o.lease_until < now())
        ORDER BY o.next_attempt_at
        LIMIT w.awaited_quota
        FOR UPDATE OF o SKIP LOCKED
    ) due
    WHERE w.awaited_quota > 0
), due_rows AS MATERIALIZED (
    SELECT due.tenant_id, due.action_id, due.claim_id, w.counted
    FROM open_buckets w
    CROSS JOIN LATERAL (
        SELECT o.tenant_id, o.action_id, o.claim_id
        FROM outbox o
        WHERE o.bucket_id = w.bucket_id
            AND o.next_attempt_at >= w.lower
            AND o.next_attempt_at <= now()
            AND (o.lease_until IS NULL OR o.lease_until < now())
        ORDER BY o.next_attempt_at
        LIMIT w.quota
        FOR UPDATE OF o SKIP LOCKED
    ) due
), claimed AS (
    UPDATE outbox o
    SET lease_until = now() + make_interval(secs => @lease_seconds::float8),
        fence = o.fence + 1,
        lost = o.lost + (o.lease_until IS NOT NULL)::integer,
        claim_id = CASE WHEN p.counted THEN @claim_id::bigint END,
        held = false
    FROM (
        SELECT r.tenant_id, r.action_id, r.claim_id, r.counted FROM awaited_rows r
        UNION ALL
        SELECT r.tenant_id, r.action_id, r.claim_id, r.counted FROM due_rows r
    ) p
    WHERE o.tenant_id = ANY (ARRAY[p.tenant_id]) AND o.action_id = p.action_id
    RETURNING o.tenant_id, o.action_id, o.bucket_id, o.next_attempt_at, o.awaited, o.fence, o.attempt, o.max_attempts, o.lost, o.unsure, o.status, o.claim_id, o.lease_until, p.claim_id AS former_claim_id
), inserted_claims AS (
    INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n, lease_until)
    SELECT c.tenant_id, c.bucket_id, c.claim_id, count(1), max(c.lease_until)
    FROM claimed c
    WHERE c.claim_id IS NOT NULL
    GROUP BY c.tenant_id, c.bucket_id, c.claim_id
    UNION ALL
    SELECT c.tenant_id, c.bucket_id, c.former_claim_id, -count(1), NULL
    FROM claimed c
    WHERE c.former_claim_id IS NOT NULL
    GROUP BY c.tenant_id, c.bucket_id, c.former_claim_id
), counted AS (
    INSERT INTO worker_commits (worker, loop, seq)
    SELECT @worker::uuid, @loop::smallint, @seq::bigint WHERE @seq::bigint > 0 AND EXISTS (SELECT FROM claimed)
    ON CONFLICT ON CONSTRAINT worker_commits_pkey DO UPDATE SET seq = excluded.seq
)
SELECT
    c.tenant_id, c.action_id, c.bucket_id, c.next_attempt_at, c.awaited, c.fence, c.attempt, c.max_attempts, c.lost, c.unsure, c.status, (c.claim_id IS NOT NULL)::boolean AS counted,
    a.source_id, a.tool_name, a.args, a.effect, a.risk, a.approval_state, a.employee_id, a.automation_id, a.session_id, a.person,
    a.config_version, a.tool_digest, a.traceparent, a.must_run_before, a.urgent, a.created_at, a.approval_digest, a.external_id,
    now()::timestamptz AS claimed_at,
    extract(epoch FROM now() - c.next_attempt_at)::float8 AS waited_seconds,
    extract(epoch FROM now() - a.created_at)::float8 AS age_seconds
FROM claimed c
JOIN actions a ON a.tenant_id = c.tenant_id AND a.action_id = c.action_id;

-- name: OutboxEndWait :exec
-- Returns an action to the due order when its caller no longer waits. An action
-- that a person approved stays awaited.
UPDATE outbox o
SET awaited = false
FROM actions a
WHERE o.tenant_id = @tenant_id AND o.action_id = @action_id AND o.awaited
    AND a.tenant_id = o.tenant_id AND a.action_id = o.action_id AND a.approval_state = 'auto';

-- name: OutboxEnqueue :execrows
-- Schedules granted or replayed actions; existing rows are unchanged. The fence
-- begins above every earlier fence of the action (a claim takes longer than a
-- microsecond), so that an old lease settles nothing.
INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, fence, attempt, max_attempts, awaited, unsure)
SELECT
    a.tenant_id, a.action_id, a.bucket_id,
    greatest(now(), a.not_before),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    q.attempt,
    q.attempt + a.max_attempts,
    @awaited::boolean,
    q.unsure AND a.effect IN ('idempotent', 'keyed')
FROM (
    SELECT unnest(@action_ids::uuid[]) AS action_id, unnest(@attempts::integer[]) AS attempt, unnest(@unsure::boolean[]) AS unsure
) q
JOIN actions a ON a.tenant_id = @tenant_id AND a.action_id = q.action_id
ON CONFLICT ON CONSTRAINT outbox_pkey DO NOTHING;

-- name: OutboxDueBuckets :many
-- Returns the first unleased row of each bucket and its due time, and the due
-- time of its first unleased awaited row, if it is due. The recursive scan reads
-- one index entry per bucket with work, regardless of the backlog. It skips
-- leased rows at the head; there are at most as many as all workers hold. A
-- closed bucket, or one without permits, is due when it opens. The chosen buckets
-- are read in addition. LIMIT keeps the planner from reading all buckets for a page.
-- The condition of bucket_paused is repeated here and in OutboxClaim: the function is
-- planned in each execution, which costs as much as the rest of the statement.
WITH RECURSIVE bucket_ids AS (
    (SELECT o.bucket_id FROM outbox o WHERE o.bucket_id > @after::bigint ORDER BY o.bucket_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.bucket_id FROM outbox o WHERE o.bucket_id > r.bucket_id ORDER BY o.bucket_id LIMIT 1)
    FROM bucket_ids r
    WHERE r.bucket_id IS NOT NULL
)
SELECT
    r.bucket_id::bigint AS bucket_id,
    b.tenant_id,
    b.limited,
    EXISTS (
        SELECT FROM pauses p
        WHERE p.lifted_at IS NULL
            AND (p.scope = 'everything' OR p.tenant_id = b.tenant_id AND (p.scope = 'tenant' OR p.scope = 'bucket' AND p.subject = b.name))
    )::boolean AS paused,
    f.next_attempt_at,
    extract(epoch FROM greatest(f.next_attempt_at, b.opens_at) - now())::float8 AS wait_seconds,
    coalesce((
        SELECT o.next_attempt_at
        FROM outbox o
        WHERE o.bucket_id = r.bucket_id AND o.awaited AND o.next_attempt_at <= now() AND (o.lease_until IS NULL OR o.lease_until < now())
        ORDER BY o.next_attempt_at
        LIMIT 1
    ), '0001-01-01 00:00:00+00')::timestamptz AS awaited_at
FROM (SELECT i.bucket_id FROM bucket_ids i UNION ALL SELECT unnest(@chosen::bigint[])) r
CROSS JOIN LATERAL (
    SELECT k.tenant_id, k.name, k.limited, k.opens_at
    FROM buckets k
    WHERE k.bucket_id = r.bucket_id
    LIMIT 1
) b
CROSS JOIN LATERAL (
    SELECT o.next_attempt_at
    FROM outbox o
    WHERE o.bucket_id = r.bucket_id AND (o.lease_until IS NULL OR o.lease_until < now())
    ORDER BY o.next_attempt_at
    LIMIT 1
) f
LIMIT @most::bigint;

-- name: OutboxReturnToApproval :many
-- Unschedules actions and returns them to approval, because policy or the tool
-- changed since they were allowed. The decision will be about the current tool,
-- and earlier votes are void. FOR UPDATE waits for a transaction that changes a row, and
-- skips the row if its fence differs then.
WITH requests AS (
    SELECT
        unnest(@tenant_ids::uuid[]) AS tenant_id,
        unnest(@action_ids::uuid[]) AS action_id,
        unnest(@fences::bigint[]) AS fence,
        unnest(@tool_digests::bytea[]) AS tool_digest,
        unnest(@decision_ids::uuid[]) AS decision_id,
        unnest(@notes::text[]) AS note,
        unnest(@needed::integer[]) AS needed,
        unnest(@waits::float8[]) AS wait,
        unnest(@warn_after::float8[]) AS warn_after,
        unnest(@escalate_after::float8[]) AS escalate_after
), returned AS MATERIALIZED (
    SELECT k.tenant_id, k.action_id, k.tool_digest, k.decision_id, k.note, k.needed, k.wait, k.warn_after, k.escalate_after, o.bucket_id, o.claim_id
    FROM requests k
    JOIN outbox o ON o.tenant_id = ANY (ARRAY[k.tenant_id]) AND o.action_id = k.action_id AND o.fence = k.fence
    FOR UPDATE OF o
), deleted AS (
    DELETE FROM outbox o
    USING returned k
    WHERE o.tenant_id = ANY (ARRAY[k.tenant_id]) AND o.action_id = k.action_id
), subtracted AS (
    INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n)
    SELECT g.tenant_id, g.bucket_id, g.claim_id, -count(1)
    FROM returned g
    WHERE g.claim_id IS NOT NULL
    GROUP BY g.tenant_id, g.bucket_id, g.claim_id
), upserted_approvals AS (
    INSERT INTO approvals (tenant_id, action_id, needed, warn_at, escalate_at)
    SELECT k.tenant_id, k.action_id, k.needed,
        CASE WHEN k.warn_after > 0 THEN now() + make_interval(secs => k.warn_after) END,
        CASE WHEN k.escalate_after > 0 THEN now() + make_interval(secs => k.escalate_after) END
    FROM returned k
    ON CONFLICT ON CONSTRAINT approvals_pkey
    DO UPDATE SET round = approvals.round + 1, needed = excluded.needed, given = 0, approval_digest = NULL,
        warn_at = excluded.warn_at, warned_at = NULL, escalate_at = excluded.escalate_at, escalated_at = NULL
)
UPDATE actions a
SET approval_state = 'required',
    approval_expires_at = now() + make_interval(secs => k.wait),
    approval_digest = NULL,
    tool_digest = k.tool_digest,
    decision_id = coalesce(nullif(k.decision_id, '00000000-0000-0000-0000-000000000000'), a.decision_id),
    decided_at = NULL,
    decided_by = NULL,
    decision_note = nullif(k.note, '')
FROM returned k
WHERE a.tenant_id = ANY (ARRAY[k.tenant_id]) AND a.action_id = k.action_id
RETURNING a.tenant_id, a.action_id;

-- name: OutboxRecover :many
-- Ends the actions of class once whose calls may have been made before a recovery: as
-- unknown, with a dead letter, from which reconcile rules find the outcome. Those that
-- are for later, or were proposed while the database was held, go on.
WITH deleted AS (
    DELETE FROM outbox o
    USING actions a, fence f
    WHERE a.tenant_id = o.tenant_id AND a.action_id = o.action_id AND a.effect = 'once'
        AND (o.status = 'sending' OR (a.not_before IS NULL OR a.not_before <= now()) AND a.created_at <= f.changed_at)
    RETURNING o.tenant_id, o.action_id, o.attempt, o.bucket_id, o.claim_id
), subtracted AS (
    INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n)
    SELECT g.tenant_id, g.bucket_id, g.claim_id, -count(1)
    FROM deleted g
    WHERE g.claim_id IS NOT NULL
    GROUP BY g.tenant_id, g.bucket_id, g.claim_id
), inserted_attempts AS (
    INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, finished_at)
    SELECT g.tenant_id, g.action_id, g.attempt, 'unknown', 'recovered', @message::text, clock_timestamp()
    FROM deleted g
), inserted_dead_letters AS (
    INSERT INTO dead_letters (tenant_id, action_id, reason, attempt, code, message)
    SELECT g.tenant_id, g.action_id, 'unknown', g.attempt, 'recovered', @message::text
    FROM deleted g
    ON CONFLICT ON CONSTRAINT dead_letters_pkey DO UPDATE
    SET reason = excluded.reason, attempt = excluded.attempt, code = excluded.code, message = excluded.message, created_at = now()
)
SELECT g.tenant_id, g.action_id, g.attempt FROM deleted g ORDER BY g.tenant_id, g.action_id;

-- name: OutboxReassert :exec
-- Gives actions the lease of a call that was made and whose claim was lost, so that the
-- call can be settled.
WITH reasserted AS (
    UPDATE outbox o
    SET fence = r.fence, status = CASE WHEN r.once THEN 'sending' ELSE o.status END,
        lease_until = now() + make_interval(secs => @lease_seconds::float8)
    FROM (
        SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id, unnest(@fences::bigint[]) AS fence,
            unnest(@once::boolean[]) AS once
    ) r
    WHERE o.tenant_id = ANY (ARRAY[r.tenant_id]) AND o.action_id = r.action_id AND o.fence <= r.fence
    RETURNING o.bucket_id, o.claim_id
), locked_claims AS MATERIALIZED (
    SELECT c.bucket_id, c.claim_id, c.entry
    FROM bucket_claims c
    WHERE (c.bucket_id, c.claim_id) IN (SELECT r.bucket_id, r.claim_id FROM reasserted r WHERE r.claim_id IS NOT NULL) AND c.lease_until IS NOT NULL
    ORDER BY c.bucket_id, c.claim_id
    FOR UPDATE
), renewed_claims AS (
    UPDATE bucket_claims c
    SET lease_until = greatest(c.lease_until, now() + make_interval(secs => @lease_seconds::float8))
    FROM locked_claims l
    WHERE c.bucket_id = l.bucket_id AND c.claim_id = l.claim_id AND c.entry = l.entry
)
SELECT count(1)::bigint FROM reasserted;

-- name: OutboxRenew :one
-- Extends the leases of calls that are still running, and then those of their claims,
-- which are locked in one order, since calls of one claim may be renewed apart.
WITH renewed AS (
    UPDATE outbox o
    SET lease_until = now() + make_interval(secs => @lease_seconds::float8)
    FROM (
        SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id, unnest(@fences::bigint[]) AS fence
    ) r
    WHERE o.tenant_id = ANY (ARRAY[r.tenant_id]) AND o.action_id = r.action_id AND o.fence = r.fence
    RETURNING o.bucket_id, o.claim_id
), locked_claims AS MATERIALIZED (
    SELECT c.bucket_id, c.claim_id, c.entry
    FROM bucket_claims c
    WHERE (c.bucket_id, c.claim_id) IN (SELECT r.bucket_id, r.claim_id FROM renewed r WHERE r.claim_id IS NOT NULL) AND c.lease_until IS NOT NULL
    ORDER BY c.bucket_id, c.claim_id
    FOR UPDATE
), renewed_claims AS (
    UPDATE bucket_claims c
    SET lease_until = greatest(c.lease_until, now() + make_interval(secs => @lease_seconds::float8))
    FROM locked_claims l
    WHERE c.bucket_id = l.bucket_id AND c.claim_id = l.claim_id AND c.entry = l.entry
)
SELECT count(1)::bigint FROM renewed;

-- name: OutboxSettleBack :many
-- Reschedules actions: for a retry (with an attempt) or deferred (without). It
-- requires the fence of the claim and increments it, so that settling the same
-- lease again finds no row. finished_at is the clock, not the start of the
-- transaction: attempts of one action are ordered like the transactions that
-- held its lock.
WITH settlements AS (
    SELECT
        unnest(@tenant_ids::uuid[]) AS tenant_id,
        unnest(@action_ids::uuid[]) AS action_id,
        unnest(@fences::bigint[]) AS fence,
        unnest(@attempts::integer[]) AS attempt,
        unnest(@delays::float8[]) AS delay_seconds,
        unnest(@deferred::boolean[]) AS deferred,
        unnest(@unsure::boolean[]) AS unsure,
        unnest(@waits_for::text[]) AS waits_for,
        unnest(@codes::text[]) AS code,
        unnest(@messages::text[]) AS message,
        unnest(@results::json[]) AS result,
        unnest(@durations::float8[]) AS duration_seconds
), updated AS (
    UPDATE outbox o
    SET attempt = b.attempt,
        fence = o.fence + 1,
        next_attempt_at = now() + make_interval(secs => b.delay_seconds),
        lease_until = NULL,
        claim_id = NULL,
        held = false,
        unsure = b.unsure,
        waits_for = nullif(b.waits_for, ''),
        status = 'pending'
    FROM settlements b
    JOIN outbox was ON was.tenant_id = ANY (ARRAY[b.tenant_id]) AND was.action_id = b.action_id
    WHERE o.tenant_id = ANY (ARRAY[b.tenant_id]) AND o.action_id = b.action_id AND o.fence = b.fence
    RETURNING o.bucket_id, was.claim_id, b.tenant_id, b.action_id, b.fence, b.attempt, b.deferred, b.code, b.message, b.result, b.duration_seconds, clock_timestamp() AS finished_at
), subtracted AS (
    INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n)
    SELECT m.tenant_id, m.bucket_id, m.claim_id, -count(1)
    FROM updated m
    WHERE m.claim_id IS NOT NULL
    GROUP BY m.tenant_id, m.bucket_id, m.claim_id
), inserted_attempts AS (
    INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, result, worker, started_at, finished_at)
    SELECT m.tenant_id, m.action_id, m.attempt, 'pending', nullif(m.code, ''), nullif(m.message, ''), m.result, @worker::text,
        m.finished_at - make_interval(secs => m.duration_seconds), m.finished_at
    FROM updated m
    WHERE NOT m.deferred
), counted AS (
    INSERT INTO worker_commits (worker, loop, seq)
    SELECT @counted_worker::uuid, @loop::smallint, @seq::bigint WHERE @seq::bigint > 0 AND EXISTS (SELECT FROM updated)
    ON CONFLICT ON CONSTRAINT worker_commits_pkey DO UPDATE SET seq = excluded.seq
)
SELECT m.tenant_id::uuid AS tenant_id, m.action_id::uuid AS action_id, m.fence::bigint AS fence,
    (m.finished_at - make_interval(secs => m.duration_seconds))::timestamptz AS started_at, m.finished_at::timestamptz AS finished_at
FROM updated m;

-- name: OutboxStart :many
-- Marks calls of class once, just before they are sent. A lease that is not
-- returned was lost, and its call must not be sent; nor must any unless the epoch is
-- the fence's.
WITH started AS (
    UPDATE outbox o
    SET status = 'sending',
        lease_until = now() + make_interval(secs => @lease_seconds::float8)
    FROM (
        SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id, unnest(@fences::bigint[]) AS fence
    ) s
    WHERE o.tenant_id = ANY (ARRAY[s.tenant_id]) AND o.action_id = s.action_id AND o.fence = s.fence AND o.status = 'pending'
        AND (SELECT e.epoch FROM fence_epoch e) = @epoch::bigint
    RETURNING o.tenant_id, o.action_id, o.fence, o.bucket_id, o.claim_id
), locked_claims AS MATERIALIZED (
    SELECT c.bucket_id, c.claim_id, c.entry
    FROM bucket_claims c
    WHERE (c.bucket_id, c.claim_id) IN (SELECT r.bucket_id, r.claim_id FROM started r WHERE r.claim_id IS NOT NULL) AND c.lease_until IS NOT NULL
    ORDER BY c.bucket_id, c.claim_id
    FOR UPDATE
), renewed_claims AS (
    UPDATE bucket_claims c
    SET lease_until = greatest(c.lease_until, now() + make_interval(secs => @lease_seconds::float8))
    FROM locked_claims l
    WHERE c.bucket_id = l.bucket_id AND c.claim_id = l.claim_id AND c.entry = l.entry
), counted AS (
    INSERT INTO worker_commits (worker, loop, seq)
    SELECT @worker::uuid, @loop::smallint, @seq::bigint WHERE @seq::bigint > 0 AND EXISTS (SELECT FROM started)
    ON CONFLICT ON CONSTRAINT worker_commits_pkey DO UPDATE SET seq = excluded.seq
)
SELECT d.tenant_id, d.action_id, d.fence FROM started d;

-- name: OutboxUndo :one
-- Unschedules an action if none of its calls can have been sent: it is pending
-- and, unless its start would be marked (class once), it is not leased, no lease
-- on it expired, and no attempt ended without an answer. The row lock of the
-- DELETE decides between this and a concurrent claim.
WITH deleted AS (
    DELETE FROM outbox o
    USING actions a
    WHERE o.tenant_id = @tenant_id AND o.action_id = @action_id
        AND a.tenant_id = o.tenant_id AND a.action_id = o.action_id
        AND o.status = 'pending'
        AND (a.effect = 'once' OR (o.lease_until IS NULL AND o.lost = 0 AND NOT o.unsure))
    RETURNING o.tenant_id, o.action_id, o.attempt, o.bucket_id, o.claim_id
), subtracted AS (
    INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n)
    SELECT g.tenant_id, g.bucket_id, g.claim_id, -count(1)
    FROM deleted g
    WHERE g.claim_id IS NOT NULL
    GROUP BY g.tenant_id, g.bucket_id, g.claim_id
), inserted_attempts AS (
    INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, finished_at)
    SELECT g.tenant_id, g.action_id, g.attempt, 'skipped', @code::text, nullif(@message::text, ''), clock_timestamp()
    FROM deleted g
)
SELECT count(1)::bigint FROM deleted;

-- name: OutboxWake :many
-- Makes actions due whose reason for waiting may have ended: a lifted pause,
-- changed quiet hours. Actions that still have a reason wait again when they are
-- claimed.
WITH waiting AS MATERIALIZED (
    SELECT o.tenant_id, o.action_id
    FROM outbox o
    JOIN actions a ON a.tenant_id = o.tenant_id AND a.action_id = o.action_id
    JOIN buckets b ON b.bucket_id = o.bucket_id
    WHERE o.tenant_id BETWEEN @first_tenant AND @last_tenant
        AND (o.tenant_id, o.action_id) > (@after_tenant::uuid, @after_action::uuid)
        AND o.waits_for = @waits_for::text
        AND CASE WHEN @scope::text = 'automation' THEN automation_covers(@subject::text, a.tenant_id, a.automation_id, a.external_id)
            ELSE pause_covers(@scope::text, @subject::text, a.employee_id, a.source_id, a.tool_name, b.name) END
    ORDER BY o.tenant_id, o.action_id
    LIMIT @most::bigint
    FOR UPDATE OF o
)
UPDATE outbox o
SET next_attempt_at = now(), waits_for = NULL
FROM waiting h
WHERE o.tenant_id = h.tenant_id AND o.action_id = h.action_id
RETURNING o.tenant_id, o.action_id;

-- name: OutboxWakeLeft :one
-- Reports whether workers hold actions that they claimed before the reason ended
-- and may still put back for it.
SELECT EXISTS (
    SELECT FROM outbox o
    JOIN actions a ON a.tenant_id = o.tenant_id AND a.action_id = o.action_id
    JOIN buckets b ON b.bucket_id = o.bucket_id
    WHERE o.tenant_id BETWEEN @first_tenant AND @last_tenant
        AND o.lease_until > now()
        AND CASE WHEN @scope::text = 'automation' THEN automation_covers(@subject::text, a.tenant_id, a.automation_id, a.external_id)
            ELSE pause_covers(@scope::text, @subject::text, a.employee_id, a.source_id, a.tool_name, b.name) END
)::boolean AS left_over;
