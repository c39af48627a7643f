-- Labels that owners describe, and the messages that they match.

-- name: TriageLabelBackground :many
-- The features of the newest messages of an account that are no examples of a label.
SELECT d.features
FROM triage_messages m
JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id AND d.features IS NOT NULL
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND NOT m.outgoing
    AND NOT EXISTS (SELECT FROM triage_labeled b WHERE b.tenant_id = m.tenant_id AND b.message_id = m.message_id AND b.holds IS NOT NULL)
ORDER BY m.received_at DESC, m.message_id DESC
LIMIT @most::bigint;

-- name: TriageLabelDefinitions :many
SELECT l.name, l.definition, (l.matched_at IS NULL)::boolean AS fresh FROM triage_labels l WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.definition IS NOT NULL ORDER BY l.name;

-- name: TriageLabelDelete :execrows
DELETE FROM triage_labels WHERE tenant_id = @tenant_id AND account_id = @account_id AND name = @name;

-- name: TriageLabelDue :exec
-- Makes all messages of an account due.
INSERT INTO triage_label_due (tenant_id, account_id, message_id)
SELECT d.tenant_id, d.account_id, d.message_id FROM triage_decisions d WHERE d.tenant_id = @tenant_id AND d.account_id = @account_id
ON CONFLICT DO NOTHING;

-- name: TriageLabelExamples :many
-- The examples of the labels of an account, the newest first.
SELECT b.label, b.message_id, coalesce(b.holds, false)::boolean AS holds, d.features
FROM triage_labeled b
JOIN triage_decisions d ON d.tenant_id = b.tenant_id AND d.message_id = b.message_id AND d.features IS NOT NULL
WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id AND b.holds IS NOT NULL
ORDER BY b.labeled_at DESC, b.message_id
LIMIT @most::bigint;

-- name: TriageLabelExist :many
-- The labels of an account, with the number of their messages in each state.
SELECT l.name, l.definition, l.set_by, l.set_at, l.matched_at,
    count(1) FILTER (WHERE b.state = 'applied')::bigint AS applied, count(1) FILTER (WHERE b.state = 'proposed')::bigint AS proposed,
    count(1) FILTER (WHERE b.state = 'confirmed')::bigint AS confirmed, count(1) FILTER (WHERE b.state = 'rejected')::bigint AS rejected
FROM triage_labels l
LEFT JOIN LATERAL (
    SELECT triage_label_state(x.holds, d.cohort) AS state
    FROM triage_labeled x
    JOIN triage_decisions d ON d.tenant_id = x.tenant_id AND d.message_id = x.message_id
    WHERE x.tenant_id = l.tenant_id AND x.account_id = l.account_id AND x.label = l.name
) b ON true
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.definition IS NOT NULL
GROUP BY l.name, l.definition, l.set_by, l.set_at, l.matched_at
ORDER BY l.name;

-- name: TriageLabelFeatures :many
-- The features of some messages of an account.
SELECT d.message_id, d.features
FROM triage_decisions d
WHERE d.tenant_id = @tenant_id AND d.account_id = @account_id AND d.message_id = ANY (@message_ids::uuid[]) AND d.features IS NOT NULL;

-- name: TriageLabelHold :many
-- Locks the labels of an account that are in force, so that a change waits for the
-- matches of the present definitions.
WITH held AS (
    SELECT h.name, h.matched_at IS NULL AS fresh
    FROM triage_labels h
    WHERE h.tenant_id = @tenant_id AND h.account_id = @account_id AND h.definition IS NOT NULL
    ORDER BY h.name
    FOR UPDATE
)
UPDATE triage_labels l
SET matched_at = now()
FROM held h
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.name = h.name
RETURNING l.name, l.definition, h.fresh::boolean AS fresh;

-- name: TriageLabelJudge :many
-- Stores an owner's decision about a message and a label of its account.
INSERT INTO triage_labeled AS b (tenant_id, message_id, label, account_id, score, holds, decided_by)
SELECT d.tenant_id, d.message_id, l.name, d.account_id, 1, @holds::boolean, @decided_by
FROM triage_decisions d
JOIN triage_labels l ON l.tenant_id = d.tenant_id AND l.account_id = d.account_id AND l.name = @label AND l.definition IS NOT NULL
WHERE d.tenant_id = @tenant_id AND d.message_id = ANY (@message_ids::uuid[])
ON CONFLICT ON CONSTRAINT triage_labeled_pkey
DO UPDATE SET holds = excluded.holds, decided_by = excluded.decided_by, labeled_at = now()
RETURNING b.message_id;

-- name: TriageLabelMatch :exec
-- Stores matches; decisions of an owner stay.
INSERT INTO triage_labeled AS b (tenant_id, message_id, label, account_id, score, because)
SELECT @tenant_id, (r ->> 'message_id')::uuid, r ->> 'label', @account_id, (r ->> 'score')::double precision, ARRAY(SELECT jsonb_array_elements_text(r -> 'because'))
FROM jsonb_array_elements(@matches::jsonb) r
ON CONFLICT ON CONSTRAINT triage_labeled_pkey
DO UPDATE SET score = excluded.score, because = excluded.because, labeled_at = now()
WHERE b.holds IS NULL;

-- name: TriageLabelNext :many
-- The newest messages of people in the set that TriageLabelTake takes next, without deceptive ones.
SELECT m.message_id, m.sender, m.sender_name, m.subject, left(m.body, @characters::integer)::text AS body
FROM (SELECT x.message_id FROM triage_label_due x WHERE x.tenant_id = @tenant_id AND x.account_id = @account_id ORDER BY x.message_id LIMIT @most::bigint) t
JOIN triage_messages m ON m.tenant_id = @tenant_id AND m.message_id = t.message_id AND NOT m.outgoing
JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
    AND d.cohort <> ALL (@machines::text[])
    AND NOT (d.signals @> '{"injection": true}' OR d.signals @> '{"phishing": true}' OR d.signals @> '{"suspicious": true}')
ORDER BY m.received_at DESC, m.message_id
LIMIT @open::bigint;

-- name: TriageLabelPast :many
-- The newest messages that an account received, with the beginning of their text.
SELECT m.message_id, m.received_at, m.sender, m.sender_name, m.subject, left(m.body, @characters::integer)::text AS body, d.cohort, d.features,
    triage_label_state(NULL, d.cohort)::text AS state
FROM triage_messages m
JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
WHERE m.tenant_id = @tenant_id AND m.account_id = @account_id AND NOT m.outgoing
ORDER BY m.received_at DESC, m.message_id DESC
LIMIT @most::bigint;

-- name: TriageLabelPut :exec
INSERT INTO triage_labels AS l (tenant_id, account_id, name, definition, set_by)
VALUES (@tenant_id, @account_id, @name, @definition, @set_by)
ON CONFLICT ON CONSTRAINT triage_labels_pkey
DO UPDATE SET definition = excluded.definition, set_by = excluded.set_by, set_at = now(), matched_at = NULL;

-- name: TriageLabelReset :exec
-- Deletes the matches of a label. Decisions of its owner stay.
DELETE FROM triage_labeled b
WHERE b.tenant_id = @tenant_id AND b.account_id = @account_id AND b.label = @label AND b.holds IS NULL;

-- name: TriageLabelTake :many
-- Takes a set of the due messages of an account.
WITH taken AS (
    DELETE FROM triage_label_due u
    WHERE u.tenant_id = @tenant_id AND u.account_id = @account_id AND u.message_id IN (
        SELECT x.message_id FROM triage_label_due x WHERE x.tenant_id = @tenant_id AND x.account_id = @account_id ORDER BY x.message_id LIMIT @most::bigint)
    RETURNING u.message_id
)
SELECT m.message_id, m.sender, m.sender_name, m.subject, left(m.body, @characters::integer)::text AS body, d.features
FROM taken t
JOIN triage_messages m ON m.tenant_id = @tenant_id AND m.message_id = t.message_id AND NOT m.outgoing
JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id;

-- name: TriageLabelTried :exec
INSERT INTO triage_labels AS l (tenant_id, account_id, name, tried, set_by)
VALUES (@tenant_id, @account_id, @name, @tried, @set_by)
ON CONFLICT ON CONSTRAINT triage_labels_pkey
DO UPDATE SET tried = excluded.tried;

-- name: TriageLabelWasTried :many
-- Locks a label, and reports whether a definition was tried last.
SELECT (l.tried IS NOT DISTINCT FROM @tried::bytea)::boolean AS tried, (l.definition IS NOT NULL)::boolean AS holds
FROM triage_labels l
WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.name = @name
FOR UPDATE;

-- name: TriageLabelWork :one
-- Reports whether messages of an account are to be matched.
SELECT (EXISTS (SELECT FROM triage_label_due u WHERE u.tenant_id = @tenant_id AND u.account_id = @account_id)
    OR EXISTS (SELECT FROM triage_labels l WHERE l.tenant_id = @tenant_id AND l.account_id = @account_id AND l.definition IS NOT NULL AND l.matched_at IS NULL))::boolean AS work;
