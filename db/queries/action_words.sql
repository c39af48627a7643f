-- name: ActionWordsAdvance :exec
-- Moves a tenant's cursor, and pauses for a multiple of the time that the transaction has
-- taken, so that the index leaves the processors to those who propose.
UPDATE action_word_cursors c
SET cursor_txid = @txid::xid8, cursor_event = @event_id, filled = c.filled + @filled::bigint,
    next_at = clock_timestamp() + least((clock_timestamp() - now()) * @pauses::float8, make_interval(secs => 10))
WHERE c.tenant_id = @tenant_id;

-- name: ActionWordsClaim :one
-- The tenant with events to read whose turn came first. FOR UPDATE SKIP LOCKED:
-- tenants of another process are skipped. A turn far in the future was written
-- before the clock was set back.
SELECT c.tenant_id, c.cursor_txid, c.cursor_event, c.tenant_no, c.filled
FROM action_word_cursors c
WHERE (c.next_at <= now() OR c.next_at > now() + interval '1 minute')
    AND EXISTS (
        SELECT 1 FROM events e
        WHERE e.tenant_id = c.tenant_id
            AND (e.txid, e.event_id) > (c.cursor_txid, c.cursor_event)
            AND e.txid < pg_snapshot_xmin(pg_current_snapshot()))
ORDER BY c.next_at
LIMIT 1
FOR NO KEY UPDATE SKIP LOCKED;

-- name: ActionWordsEvents :many
-- The next events after a position, with the actions of those kinds that change
-- words. recent reports whether one is younger than some seconds.
SELECT e.txid, e.event_id, e.actor, (e.at > now() - make_interval(secs => @seconds::float8))::boolean AS recent,
    ARRAY(
        SELECT (i.item ->> 'action_id')::uuid
        FROM jsonb_array_elements(CASE WHEN e.kind = ANY (@kinds::text[]) THEN e.items ELSE '[]' END) i (item)
        WHERE i.item ->> 'action_id' IS NOT NULL
    )::uuid[] AS action_ids
FROM events e
WHERE e.tenant_id = @tenant_id
    AND (e.txid, e.event_id) > (@txid::xid8, @event_id::bigint)
    AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.txid, e.event_id
LIMIT @most::bigint;

-- name: ActionWordsFind :many
-- The actions that have all of some words, after one.
SELECT found::uuid AS action_id
FROM search_actions(@words::text[], sqlc.narg(after)::uuid, @oldest::boolean, @most::bigint) found;

-- name: ActionWordsPut :exec
-- Replaces the words of actions, and adds to the names of people. The inner SELECT calls
-- the function once, and not for each row.
INSERT INTO action_words AS w (tenant_id, action_id, part, words, people)
SELECT @tenant_id, g.action_id, (SELECT action_word_part(@tenant_no, @filled::bigint)),
    array_to_tsvector(ARRAY(SELECT jsonb_array_elements_text(g.words))), array_to_tsvector(ARRAY(SELECT jsonb_array_elements_text(g.people)))
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id, unnest(@words::jsonb[]) AS words, unnest(@people::jsonb[]) AS people) g
ON CONFLICT ON CONSTRAINT action_words_pkey
DO UPDATE SET words = excluded.words, people = w.people || excluded.people;

-- name: ActionWordsSource :many
-- The texts that actions are found by. FOR KEY SHARE: they stay until their words are stored.
-- SKIP LOCKED: those that are being deleted are skipped. Each id is looked up separately:
-- without statistics, `= ANY` reads all of the tenant's actions.
SELECT f.action_id, f.args, f.external_id, f.session_id, f.automation_id, f.source_id, f.tool_name, f.approval_state
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id) k
CROSS JOIN LATERAL (
    SELECT a.action_id, a.args, coalesce(a.external_id, '')::text AS external_id, coalesce(a.session_id, '')::text AS session_id,
        coalesce(a.automation_id, '')::text AS automation_id, a.source_id, a.tool_name, a.approval_state
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.action_id = k.action_id
    LIMIT 1
    FOR KEY SHARE OF a SKIP LOCKED
) f;
