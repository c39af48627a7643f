-- name: DeadLetterSelect :many
-- The dead letters of a bulk request, those with the oldest envelopes first.
SELECT d.action_id
FROM dead_letters d
JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
WHERE d.tenant_id = @tenant_id
    AND (@every::boolean OR d.action_id = ANY (@action_ids::uuid[]))
    AND (@include_unknown::boolean OR d.reason <> 'unknown')
    AND NOT d.action_id = ANY (@ended_tries::uuid[])
    AND (sqlc.narg(reason)::text IS NULL OR d.reason = sqlc.narg(reason))
    AND (sqlc.narg(source)::text IS NULL OR a.source_id = sqlc.narg(source))
    AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
    AND (sqlc.narg(code)::text IS NULL OR d.code = sqlc.narg(code))
    AND (sqlc.narg(since)::timestamptz IS NULL OR d.created_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR d.created_at < sqlc.narg(until))
ORDER BY d.action_id
LIMIT @most::bigint;

-- name: DeadLetterClock :one
SELECT now()::timestamptz AS now;

-- name: DeadLetterLock :one
-- Locks a dead letter whose outcome a person records. Of two concurrent requests the
-- second waits, and then finds none.
SELECT d.reason, d.attempt, d.reconcile_attempts
FROM dead_letters d
WHERE d.tenant_id = @tenant_id AND d.action_id = @action_id
FOR UPDATE;

-- name: DeadLetterList :many
SELECT d.action_id, d.reason, d.attempt, d.code, d.message, d.created_at, d.reconcile_attempts, d.reconcile_at, d.last_result,
    a.source_id, a.tool_name, a.external_id
FROM dead_letters d
JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
WHERE d.tenant_id = @tenant_id
    AND d.action_id < @before
    AND (sqlc.narg(reason)::text IS NULL OR d.reason = sqlc.narg(reason))
    AND (sqlc.narg(source)::text IS NULL OR a.source_id = sqlc.narg(source))
    AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
    AND (sqlc.narg(code)::text IS NULL OR d.code = sqlc.narg(code))
    AND (sqlc.narg(since)::timestamptz IS NULL OR d.created_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR d.created_at < sqlc.narg(until))
ORDER BY d.action_id DESC
LIMIT @most::bigint;

-- name: DeadLetterSpread :exec
-- Spreads newly scheduled envelopes over time.
UPDATE outbox o
SET next_attempt_at = greatest(o.next_attempt_at, p.due_at)
FROM (
    SELECT unnest(@action_ids::uuid[]) AS action_id, unnest(@due::timestamptz[]) AS due_at
) p
WHERE o.tenant_id = @tenant_id AND o.action_id = p.action_id;

-- name: DeadLetterPerID :many
SELECT d.action_id, d.reason, d.attempt, d.code, d.message, d.created_at, d.reconcile_attempts, d.reconcile_at, d.last_result,
    a.source_id, a.tool_name, a.external_id
FROM dead_letters d
JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
WHERE d.tenant_id = @tenant_id AND d.action_id = ANY (@action_ids::uuid[]);

-- name: DeadLetterDelete :many
-- Deletes dead letters that are replayed or given up. They are locked in the order of
-- their ids: of two concurrent requests one waits for the other and finds none
-- of its dead letters.
WITH chosen AS MATERIALIZED (
    SELECT d.tenant_id, d.action_id
    FROM dead_letters d
    WHERE d.tenant_id = @tenant_id AND d.action_id = ANY (@action_ids::uuid[])
    ORDER BY d.action_id
    FOR UPDATE
)
DELETE FROM dead_letters d
USING chosen c
WHERE d.tenant_id = c.tenant_id AND d.action_id = c.action_id
RETURNING d.action_id, d.attempt, d.reason;

-- name: DeadLetterEndedTries :many
-- The dead letters, all or some, that are ended tries of action tags, with the tag
-- and its open try. It locks the tags with an open try: triage ends none before the
-- transaction is over.
WITH tries AS MATERIALIZED (
    SELECT a.action_id, a.external_id
    FROM dead_letters d
    JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
    WHERE d.tenant_id = @tenant_id AND (@every::boolean OR d.action_id = ANY (@action_ids::uuid[])) AND starts_with(a.external_id, 'triage:tag:')
), open AS MATERIALIZED (
    SELECT t.external_id
    FROM triage_tags t
    WHERE t.tenant_id = @tenant_id AND t.external_id IS NOT NULL
        -- An erased try has no arguments to repeat.
        AND NOT EXISTS (SELECT FROM triage_proposals r WHERE r.tenant_id = t.tenant_id AND r.external_id = t.external_id AND r.fields = '[]')
    ORDER BY t.message_id, t.action
    FOR SHARE
)
SELECT a.action_id, coalesce(t.action, '')::text AS tag, coalesce(o.action_id::text, t.external_id, '')::text AS open_try
FROM tries a
LEFT JOIN triage_proposals r ON r.tenant_id = @tenant_id AND r.external_id = a.external_id
LEFT JOIN triage_tag_log l ON l.tenant_id = r.tenant_id AND l.message_id = r.message_id AND l.external_id = r.external_id
LEFT JOIN triage_tags t ON t.tenant_id = l.tenant_id AND t.message_id = l.message_id AND t.action = l.action
LEFT JOIN actions o ON o.tenant_id = t.tenant_id AND o.external_id = t.external_id
WHERE a.external_id NOT IN (SELECT open.external_id FROM open)
ORDER BY a.action_id;

-- name: DeadLetterCount :many
-- Counts dead letters by tool and reason, and those of ended tries of action tags.
SELECT a.source_id, a.tool_name, d.reason, count(1)::bigint AS entries,
    (count(1) FILTER (WHERE d.action_id = ANY (@ended_tries::uuid[])))::bigint AS ended_tries
FROM dead_letters d
JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
WHERE d.tenant_id = @tenant_id
    AND (@every::boolean OR d.action_id = ANY (@action_ids::uuid[]))
    AND (sqlc.narg(reason)::text IS NULL OR d.reason = sqlc.narg(reason))
    AND (sqlc.narg(source)::text IS NULL OR a.source_id = sqlc.narg(source))
    AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
    AND (sqlc.narg(code)::text IS NULL OR d.code = sqlc.narg(code))
    AND (sqlc.narg(since)::timestamptz IS NULL OR d.created_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR d.created_at < sqlc.narg(until))
GROUP BY a.source_id, a.tool_name, d.reason
ORDER BY a.source_id, a.tool_name, d.reason;

-- name: DeadLetterSummary :many
-- The newest dead letters that a filter selects, counted by common properties.
WITH counted AS MATERIALIZED (
    SELECT a.source_id, a.tool_name, d.reason, coalesce(d.code, '') AS code, d.created_at
    FROM dead_letters d
    JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
    WHERE d.tenant_id = @tenant_id
        AND (sqlc.narg(reason)::text IS NULL OR d.reason = sqlc.narg(reason))
        AND (sqlc.narg(source)::text IS NULL OR a.source_id = sqlc.narg(source))
        AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
        AND (sqlc.narg(code)::text IS NULL OR d.code = sqlc.narg(code))
        AND (sqlc.narg(since)::timestamptz IS NULL OR d.created_at >= sqlc.narg(since))
        AND (sqlc.narg(until)::timestamptz IS NULL OR d.created_at < sqlc.narg(until))
    ORDER BY d.action_id DESC
    LIMIT @most::bigint
)
SELECT c.source_id, c.tool_name, c.reason, c.code::text AS code, count(1)::bigint AS entries,
    min(c.created_at)::timestamptz AS oldest, max(c.created_at)::timestamptz AS newest, (SELECT count(1) FROM counted)::bigint AS counted
FROM counted c
GROUP BY c.source_id, c.tool_name, c.reason, c.code
ORDER BY entries DESC, c.source_id, c.tool_name, c.reason, c.code
LIMIT @groups::bigint;

-- name: DeadLetterReconcileClaim :many
-- Claims dead letters whose reconciling read is due, and postpones the next one.
-- FOR UPDATE SKIP LOCKED: concurrent workers do not wait for each other. Dead letters
-- wait while their tenant or everything is paused: no bucket is named '', so
-- pause_covers reports only those pauses. tools.reconcile is NULL if the tool or
-- its rule was deleted.
WITH due AS MATERIALIZED (
    SELECT d.tenant_id, d.action_id
    FROM dead_letters d
    WHERE d.reconcile_at <= now() AND NOT bucket_paused(d.tenant_id, '')
    ORDER BY d.reconcile_at
    LIMIT @most::bigint
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE dead_letters d
    SET reconcile_attempts = d.reconcile_attempts + 1,
        reconcile_at = now() + make_interval(secs => @hold_seconds::float8)
    FROM due u
    WHERE d.tenant_id = u.tenant_id AND d.action_id = u.action_id
    RETURNING d.tenant_id, d.action_id, d.reconcile_attempts, d.created_at
)
SELECT c.tenant_id, c.action_id, c.reconcile_attempts, extract(epoch FROM now() - c.created_at)::float8 AS age_seconds,
    a.source_id, a.tool_name, a.args, a.effect, t.reconcile
FROM claimed c
JOIN actions a ON a.tenant_id = c.tenant_id AND a.action_id = c.action_id
LEFT JOIN tools t ON t.tenant_id = a.tenant_id AND t.source_id = a.source_id AND t.name = a.tool_name;

-- name: DeadLetterReconcileNote :execrows
-- Stores the result of a reconciling read and the time of the next one; a
-- negative delay means none. It has no effect after a concurrent read.
UPDATE dead_letters d
SET last_result = @result::text,
    reconcile_at = CASE WHEN @delay_seconds::float8 >= 0 THEN now() + make_interval(secs => @delay_seconds::float8) END
WHERE d.tenant_id = @tenant_id AND d.action_id = @action_id AND d.reconcile_attempts = @tries;

-- name: DeadLetterReconcilePlan :execrows
-- Plans reconciling reads for the dead letters of a tool whose rule was set, or
-- cancels them if the rule was removed.
UPDATE dead_letters d
SET reconcile_attempts = 0, last_result = NULL, reconcile_at = CASE WHEN @wanted::boolean THEN now() END
FROM actions a
WHERE d.tenant_id = @tenant_id AND d.reason = 'unknown'
    AND a.tenant_id = d.tenant_id AND a.action_id = d.action_id
    AND a.source_id = @source_id AND a.tool_name = @tool;
