-- name: NoteKeep :one
-- Stores a note, and returns its id or that of the existing note of the key. The
-- update changes nothing: it makes the existing row available to RETURNING.
INSERT INTO notes AS n (tenant_id, note_id, source_id, key, body)
VALUES (@tenant_id, @note_id, @source_id, @key, @body)
ON CONFLICT ON CONSTRAINT notes_key_key DO UPDATE SET key = excluded.key
RETURNING n.note_id;

-- name: NoteList :many
SELECT n.note_id, n.source_id, n.key, n.body, n.created_at
FROM notes n
WHERE n.tenant_id = @tenant_id
    AND (@before::uuid = '00000000-0000-0000-0000-000000000000' OR n.note_id < @before::uuid)
ORDER BY n.note_id DESC
LIMIT @most::bigint;
