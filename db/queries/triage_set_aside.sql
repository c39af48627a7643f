-- name: TriageSetAsideAgain :execrows
-- Requests that messages of an account that were set aside are read again.
UPDATE triage_set_aside s SET again = true WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND NOT s.again;

-- name: TriageSetAsideClear :exec
-- Deletes entries of set-aside messages: those of a folder that are given, those
-- that a person requested again, or all.
DELETE FROM triage_set_aside s
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id AND s.folder = @folder AND (@every::boolean OR s.again AND @asked::boolean OR s.key = ANY (@keys::text[]));

-- name: TriageSetAsideList :many
-- The set-aside messages of an account, latest attempt first.
SELECT s.folder, s.key, s.received_at, s.size, s.step, s.reason, s.attempts, s.since, s.tried_at, s.again
FROM triage_set_aside s
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id
ORDER BY s.tried_at DESC, s.folder, s.key
LIMIT @most::bigint;

-- name: TriageSetAsideOf :many
-- The set-aside messages of an account.
SELECT s.folder, s.key, s.received_at, s.size, s.again
FROM triage_set_aside s
WHERE s.tenant_id = @tenant_id AND s.account_id = @account_id
ORDER BY s.folder, s.received_at, s.key
LIMIT @most::bigint;

-- name: TriageSetAsidePut :exec
-- Sets messages of a folder aside, or records another failed attempt.
INSERT INTO triage_set_aside (tenant_id, account_id, folder, key, received_at, size, step, reason)
SELECT @tenant_id, @account_id, @folder, r ->> 'key', (r ->> 'received_at')::timestamptz, (r ->> 'size')::bigint, r ->> 'step', r ->> 'reason'
FROM jsonb_array_elements(@rows::jsonb) r
ON CONFLICT (tenant_id, account_id, folder, key) DO UPDATE
SET received_at = excluded.received_at, size = excluded.size, step = excluded.step, reason = excluded.reason, again = false, tried_at = now(),
    attempts = triage_set_aside.attempts + 1;
