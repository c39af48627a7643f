-- name: TriageTagAvailable :many
-- The states of the tools that actions call, with the owner's time zone.
SELECT t.source::text AS source, t.tool::text AS tool, t.state::text AS state, coalesce(t.input_schema, 'null')::jsonb AS input_schema, t.zone::text AS zone
FROM triage_tools(@wanted::jsonb) t;

-- name: TriageTagAbout :many
-- A message with its account, and the tag of an action on it. Zero values stand for
-- no tag.
SELECT a.name AS account, (d.message_id IS NOT NULL)::boolean AS decided, coalesce(t.state, '')::text AS state, coalesce(t.try, 1)::integer AS try, coalesce(t.failures, 0)::integer AS failures
FROM triage_messages m
JOIN triage_accounts a ON a.tenant_id = m.tenant_id AND a.account_id = m.account_id
LEFT JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
LEFT JOIN triage_tags t ON t.tenant_id = m.tenant_id AND t.message_id = m.message_id AND t.action = @action
WHERE m.tenant_id = @tenant_id AND m.message_id = @message_id;

-- name: TriageTagAdd :execrows
-- Stores the first tag of an action on a message.
INSERT INTO triage_tags (tenant_id, message_id, action, account_id, state, tagged_by)
SELECT m.tenant_id, m.message_id, @action, m.account_id, 'due', @tagged_by
FROM triage_messages m
WHERE m.tenant_id = @tenant_id AND m.message_id = @message_id
ON CONFLICT ON CONSTRAINT triage_tags_pkey DO NOTHING;

-- name: TriageTagKeywords :many
-- Tags that appeared in the mailbox of an account or disappeared from it, of
-- messages that came in, with the stored tag. Empty texts stand for none.
SELECT coalesce(p.message_id, t.message_id)::uuid AS message_id, coalesce(p.action, t.action)::text AS action, (p.message_id IS NOT NULL)::boolean AS present,
    coalesce(t.state, '')::text AS state, coalesce(t.try, 1)::integer AS try, coalesce(t.failures, 0)::integer AS failures
FROM (
    SELECT DISTINCT l.message_id, lower(substr(f.flag, length(@prefix::text) + 1)) AS action
    FROM triage_locations l
    CROSS JOIN LATERAL unnest(l.flags) f (flag)
    JOIN triage_decisions d ON d.tenant_id = l.tenant_id AND d.message_id = l.message_id
    WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.tagged AND @believed::boolean
        AND starts_with(lower(f.flag), @prefix) AND lower(substr(f.flag, length(@prefix) + 1)) ~ '^[a-z0-9][a-z0-9_.-]{0,49}$'
) p
FULL JOIN (SELECT t.* FROM triage_tags t WHERE t.tenant_id = @tenant_id AND t.account_id = @account_id) t ON t.message_id = p.message_id AND t.action = p.action
WHERE (p.message_id IS NOT NULL) IS DISTINCT FROM coalesce(t.in_mailbox, false)
    -- While a message is in no folder, because it is being moved, it keeps its tags.
    AND (p.message_id IS NOT NULL OR EXISTS (SELECT FROM triage_locations l WHERE l.tenant_id = t.tenant_id AND l.message_id = t.message_id));

-- name: TriageTagList :many
-- A page of the tags of an account, of messages, or of all, the latest first. An empty state is
-- every one but gone.
SELECT t.message_id, a.name AS account, m.subject, t.action, t.state, t.try, t.failures, t.problem, t.in_mailbox, t.tagged_by, t.tagged_at
FROM triage_tags t
JOIN triage_messages m ON m.tenant_id = t.tenant_id AND m.message_id = t.message_id
JOIN triage_accounts a ON a.tenant_id = t.tenant_id AND a.account_id = t.account_id
WHERE t.tenant_id = @tenant_id
    AND (@account::text = '' OR a.name = @account::text)
    AND (sqlc.narg(message_ids)::uuid[] IS NULL OR t.message_id = ANY (sqlc.narg(message_ids)::uuid[]))
    AND (@action::text = '' OR t.action = @action::text)
    AND (@state::text = '' AND t.state <> 'gone' OR t.state = @state::text OR @state::text = 'any')
    AND (sqlc.narg(before_at)::timestamptz IS NULL OR (t.tagged_at, t.message_id, t.action) < (sqlc.narg(before_at)::timestamptz, sqlc.narg(before_id)::uuid, @before_action::text))
ORDER BY t.tagged_at DESC, t.message_id DESC, t.action DESC
LIMIT @most::bigint;

-- name: TriageTagLock :exec
-- Locks the tags of open tries. A replay that has locked one is then over, and its
-- action runs again; one that begins later finds that the try has ended.
SELECT FROM triage_tags t
WHERE t.tenant_id = @tenant_id AND t.account_id = @account_id AND t.external_id IS NOT NULL
ORDER BY t.message_id, t.action
FOR NO KEY UPDATE;

-- name: TriageTagLogGet :many
-- A row of the log, and whether a try of the tag has succeeded since the beginning
-- of its own.
SELECT l.message_id, l.action, l.status, EXISTS (
        SELECT 1 FROM triage_tag_log n
        WHERE n.tenant_id = l.tenant_id AND n.message_id = l.message_id AND n.action = l.action AND n.try >= l.try AND n.status = 'success'
    )::boolean AS succeeded
FROM triage_tag_log l
WHERE l.tenant_id = @tenant_id AND l.log_id = @log_id;

-- name: TriageTagLogInsert :exec
INSERT INTO triage_tag_log (tenant_id, log_id, account_id, message_id, action, try, external_id, source_id, tool_name, extracted, result, status, error)
SELECT @tenant_id, @log_id, @account_id, @message_id, @action, @try, nullif(@external_id::text, ''), @source_id, @tool_name,
    coalesce((SELECT p.fields FROM triage_proposals p WHERE p.tenant_id = @tenant_id AND p.external_id = @external_id::text), '[]'),
    sqlc.narg(result)::json, @status, @error;

-- name: TriageTagLogList :many
-- A page of the log, newest first, with the actions of tries.
SELECT l.log_id, l.message_id, l.account_id, a.name AS account, m.subject, l.action, l.try, l.source_id, l.tool_name, l.extracted, coalesce(l.result, 'null')::json AS result, l.status,
    l.error, l.processed_at, coalesce(e.action_id, '00000000-0000-0000-0000-000000000000')::uuid AS action_id
FROM triage_tag_log l
JOIN triage_messages m ON m.tenant_id = l.tenant_id AND m.message_id = l.message_id
JOIN triage_accounts a ON a.tenant_id = l.tenant_id AND a.account_id = l.account_id
LEFT JOIN envelopes e ON e.tenant_id = l.tenant_id AND e.external_id = l.external_id
WHERE l.tenant_id = @tenant_id
    AND (@account::text = '' OR a.name = @account::text)
    AND (sqlc.narg(message_id)::uuid IS NULL OR l.message_id = sqlc.narg(message_id)::uuid)
    AND (@action::text = '' OR l.action = @action::text)
    AND (@status::text = '' OR l.status = @status::text)
    AND (sqlc.narg(before_at)::timestamptz IS NULL OR (l.processed_at, l.log_id) < (sqlc.narg(before_at)::timestamptz, sqlc.narg(before_id)::uuid))
ORDER BY l.processed_at DESC, l.log_id DESC
LIMIT @most::bigint;

-- name: TriageTagPut :execrows
-- Stores a tag after an event, unless it has changed since it was read.
INSERT INTO triage_tags AS t (tenant_id, message_id, action, account_id, state, try, failures, in_mailbox, external_id, problem, tagged_by)
VALUES (@tenant_id, @message_id, @action, @account_id, @state, @try, @failures, coalesce(sqlc.narg(in_mailbox)::boolean, false),
    -- The checks of the table hold for the row to insert too, also where it only updates.
    CASE WHEN @state IN ('open', 'leaving') THEN coalesce(nullif(@external_id::text, ''),
        (SELECT o.external_id FROM triage_tags o WHERE o.tenant_id = @tenant_id AND o.message_id = @message_id AND o.action = @action)) END, @problem, @tagged_by)
ON CONFLICT ON CONSTRAINT triage_tags_pkey
DO UPDATE SET state = excluded.state, try = excluded.try, failures = excluded.failures, in_mailbox = coalesce(sqlc.narg(in_mailbox)::boolean, t.in_mailbox),
    external_id = excluded.external_id, problem = excluded.problem,
    tagged_at = CASE WHEN t.state = 'gone' AND excluded.state = 'due' THEN now() ELSE t.tagged_at END,
    tagged_by = CASE WHEN t.state = 'gone' AND excluded.state = 'due' THEN excluded.tagged_by ELSE t.tagged_by END
WHERE t.state = @was_state::text AND t.try = @was_try::integer;

-- name: TriageTagSet :execrows
-- Stores a tag after an event of a person, unless it has changed since it was read.
UPDATE triage_tags t
SET state = @state, failures = @failures, problem = '',
    tagged_at = CASE WHEN t.state <> @state::text AND @state = 'due' THEN now() ELSE t.tagged_at END,
    tagged_by = CASE WHEN t.state <> @state AND @state = 'due' THEN @tagged_by ELSE t.tagged_by END
WHERE t.tenant_id = @tenant_id AND t.message_id = @message_id AND t.action = @action AND t.state = @was_state::text AND t.try = @was_try::integer;

-- name: TriageTagTools :many
-- The states of the tools that actions call, as triage_tools has them.
SELECT w.source::text AS source, w.tool::text AS tool,
    (CASE WHEN s.list_failures > 0 OR b.state = 'open' THEN 'unreachable' WHEN t.name IS NULL THEN 'missing' ELSE 'available' END)::text AS state
FROM jsonb_to_recordset(@wanted::jsonb) w (source text, tool text)
LEFT JOIN sources s ON s.tenant_id = @tenant_id AND s.source_id = w.source AND s.enabled
LEFT JOIN breakers b ON b.tenant_id = s.tenant_id AND b.source_id = s.source_id
LEFT JOIN tools t ON t.tenant_id = s.tenant_id AND t.source_id = s.source_id AND t.name = w.tool AND t.gone_at IS NULL;

-- name: TriageTagTries :many
-- The open tries that have ended, with their tags.
SELECT e.message_id::uuid AS message_id, e.action::text AS action, e.outcome::text AS outcome, e.problem::text AS problem, e.result::json AS result,
    t.state, t.try, t.failures, coalesce(t.external_id, '')::text AS external_id, coalesce(r.envelope #>> '{tool,source}', '')::text AS source_id, coalesce(r.envelope #>> '{tool,name}', '')::text AS tool_name
FROM triage_tries(@account_id::uuid) e
JOIN triage_tags t ON t.tenant_id = @tenant_id AND t.message_id = e.message_id AND t.action = e.action
JOIN triage_proposals r ON r.tenant_id = t.tenant_id AND r.external_id = t.external_id
ORDER BY t.tagged_at, t.message_id, t.action;

-- name: TriageTagsDue :many
-- The oldest tags of some actions without an open try.
SELECT t.message_id, t.action, t.state, t.try, t.failures, t.problem
FROM triage_tags t
WHERE t.tenant_id = @tenant_id AND t.account_id = @account_id AND t.state = 'due' AND t.action = ANY (@actions::text[])
ORDER BY t.tagged_at, t.message_id, t.action
LIMIT @most::bigint;

-- name: TriageTagsUnavailable :many
-- Due tags whose action has no tool, and that do not record it yet.
SELECT t.message_id, t.action, t.state, t.try, t.failures
FROM triage_tags t
WHERE t.tenant_id = @tenant_id AND t.account_id = @account_id AND t.state = 'due' AND t.problem = '' AND NOT t.action = ANY (@others::text[])
ORDER BY t.tagged_at, t.message_id, t.action;
