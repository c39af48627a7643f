-- name: TriageTagAvailable :many
-- The states of the tools that actions call, with the owner's time zone.
SELECT t.source::text AS source, t.tool::text AS tool, t.state::text AS state, coalesce(t.input_schema, 'null')::jsonb AS input_schema, t.zone::text AS zone
FROM triage_tools(@wanted::jsonb) t;

-- name: TriageTagErase :one
SELECT triage_erase_tries(@account_id::uuid)::bigint;

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

-- name: TriageTagLock :exec
-- Locks the tags of open tries. A replay that has locked one is then over, and its
-- action runs again; one that begins later finds that the try has ended.
SELECT FROM triage_tags t
WHERE t.tenant_id = @tenant_id AND t.account_id = @account_id AND t.external_id IS NOT NULL
ORDER BY t.message_id, t.action
FOR NO KEY UPDATE;

-- name: TriageTagLogInsert :exec
INSERT INTO triage_tag_log (tenant_id, log_id, account_id, message_id, action, try, external_id, source_id, tool_name, extracted, result, status, error)
SELECT @tenant_id, @log_id, @account_id, @message_id, @action, @try, nullif(@external_id::text, ''), @source_id, @tool_name,
    coalesce((SELECT p.fields FROM triage_proposals p WHERE p.tenant_id = @tenant_id AND p.external_id = @external_id::text), '[]'),
    sqlc.narg(result)::json, @status, @error;

-- name: TriageTagPut :execrows
-- Stores a tag after an event, unless it has changed since it was read.
INSERT INTO triage_tags AS t (tenant_id, message_id, action, account_id, state, try, failures, in_mailbox, external_id, problem, tagged_by)
VALUES (@tenant_id, @message_id, @action, @account_id, @state, @try, @failures, coalesce(sqlc.narg(in_mailbox)::boolean, false), nullif(@external_id::text, ''), @problem, @tagged_by)
ON CONFLICT ON CONSTRAINT triage_tags_pkey
DO UPDATE SET state = excluded.state, try = excluded.try, failures = excluded.failures, in_mailbox = coalesce(sqlc.narg(in_mailbox)::boolean, t.in_mailbox),
    external_id = CASE WHEN excluded.state NOT IN ('open', 'leaving') THEN NULL ELSE coalesce(excluded.external_id, t.external_id) END, problem = excluded.problem,
    tagged_at = CASE WHEN t.state = 'gone' AND excluded.state = 'due' THEN now() ELSE t.tagged_at END,
    tagged_by = CASE WHEN t.state = 'gone' AND excluded.state = 'due' THEN excluded.tagged_by ELSE t.tagged_by END
WHERE t.state = @was_state::text AND t.try = @was_try::integer;

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
