-- name: ReviewDelete :execrows
DELETE FROM reviews r WHERE r.tenant_id = @tenant_id AND r.key = @key AND r.risk = @risk;

-- name: ReviewList :many
SELECT r.key, r.risk, r.approvals_needed, r.wait_seconds, r.warn_seconds, r.escalate_seconds, r.edits, r.updated_by, r.updated_at
FROM reviews r
WHERE r.tenant_id = @tenant_id
ORDER BY r.key, CASE r.risk WHEN 'low' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END;

-- name: ReviewFillWait :exec
-- Sets the wait of the actions of a key, unless a rule of that key does.
INSERT INTO reviews (tenant_id, key, risk, wait_seconds, updated_by)
VALUES (@tenant_id, @key, 'low', @wait_seconds, @updated_by)
ON CONFLICT ON CONSTRAINT reviews_pkey
DO UPDATE SET wait_seconds = excluded.wait_seconds, updated_by = excluded.updated_by, updated_at = now()
WHERE reviews.wait_seconds IS NULL;

-- name: ReviewUpsert :exec
INSERT INTO reviews (tenant_id, key, risk, approvals_needed, wait_seconds, warn_seconds, escalate_seconds, edits, updated_by)
VALUES (@tenant_id, @key, @risk, @approvals_needed, sqlc.narg(wait_seconds), sqlc.narg(warn_seconds), sqlc.narg(escalate_seconds), sqlc.narg(edits), @updated_by)
ON CONFLICT ON CONSTRAINT reviews_pkey
DO UPDATE SET approvals_needed = excluded.approvals_needed, wait_seconds = excluded.wait_seconds, warn_seconds = excluded.warn_seconds,
    escalate_seconds = excluded.escalate_seconds, edits = excluded.edits, updated_by = excluded.updated_by, updated_at = now();
