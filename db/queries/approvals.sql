-- name: ActionsDecide :many
-- Grants or denies envelopes that wait for a decision. Compare-and-set, under
-- the lock that ApprovalLock took.
UPDATE actions a
SET approval_state = @approval_state,
    approval_digest = nullif(d.approval_digest, ''::bytea),
    decided_at = now(),
    decided_by = @decided_by::text,
    decision_note = nullif(@decision_note::text, '')
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id, unnest(@approval_digests::bytea[]) AS approval_digest) d
WHERE a.tenant_id = @tenant_id AND a.action_id = d.action_id AND a.approval_state = 'required'
RETURNING a.action_id;

-- name: ActionEdit :one
-- Sets the edited arguments and the decision of policy about them, and returns
-- the stored ones. Requires the lock of ApprovalLock.
UPDATE actions a
SET args = @args, decision_id = @decision_id, config_version = @config_version
WHERE a.tenant_id = @tenant_id AND a.action_id = @action_id AND a.approval_state = 'required'
RETURNING a.args;

-- name: ApprovalEdit :exec
-- Records an edit. Earlier votes become void, so another round begins.
INSERT INTO approvals (tenant_id, action_id, needed, proposed_args, edits, edited_by, editors)
VALUES (@tenant_id, @action_id, 1, @was, jsonb_build_array(@edit::jsonb), @edited_by::text, ARRAY[@person::uuid])
ON CONFLICT ON CONSTRAINT approvals_pkey
DO UPDATE SET proposed_args = coalesce(approvals.proposed_args, excluded.proposed_args), edits = approvals.edits || excluded.edits,
    edited_by = excluded.edited_by, editors = CASE WHEN approvals.editors @> excluded.editors THEN approvals.editors ELSE approvals.editors || excluded.editors END, round = approvals.round + 1, given = 0, approval_digest = NULL;

-- name: ApprovalInsertMany :exec
-- Inserts the initial approvals of envelopes that need a person.
INSERT INTO approvals (tenant_id, action_id, needed, asked, warn_at, escalate_at)
SELECT @tenant_id, p.action_id, p.needed, p.asked,
    CASE WHEN p.warn_after > 0 THEN now() + make_interval(secs => p.warn_after) END,
    CASE WHEN p.escalate_after > 0 THEN now() + make_interval(secs => p.escalate_after) END
FROM (
    SELECT
        unnest(@action_ids::uuid[]) AS action_id,
        unnest(@needed::integer[]) AS needed,
        unnest(@asked::boolean[]) AS asked,
        unnest(@warn_after::float8[]) AS warn_after,
        unnest(@escalate_after::float8[]) AS escalate_after
) p;

-- name: ApprovalLock :many
-- Serializes decisions about an envelope: votes, edits, undo, the sweep and the
-- kill switch all write its row in actions. The fixed order prevents deadlocks
-- of overlapping batches.
SELECT a.action_id
FROM actions a
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[])
ORDER BY a.action_id
FOR NO KEY UPDATE OF a;

-- name: ApprovalRead :many
-- Reads all data for a decision. A separate statement, so that it sees changes
-- that were committed while ApprovalLock waited.
SELECT
    a.action_id, a.approval_state, coalesce(a.approval_expires_at <= clock_timestamp(), false)::boolean AS overdue,
    a.proposed_by, a.person, a.source_id, a.tool_name, a.args, a.risk, a.employee_id, a.session_id, a.automation_id,
    a.tool_digest, a.decision_id, clock_timestamp()::timestamptz AS now,
    coalesce(p.round, 1)::integer AS round, coalesce(p.needed, 1)::integer AS needed, coalesce(p.given, 0)::integer AS given,
    coalesce(p.approval_digest, '')::bytea AS approval_digest, coalesce(p.asked, false)::boolean AS asked,
    (p.edited_by IS NOT NULL)::boolean AS edited, coalesce(p.editors, '{}')::uuid[] AS editors,
    coalesce(v.voters, '{}')::uuid[] AS voters, coalesce(v.void, '{}')::uuid[] AS void,
    coalesce((SELECT t.shown_to FROM api_tokens t WHERE t.tenant_id = a.tenant_id AND t.token_id = a.proposed_by), '{}')::uuid[] AS shown_to
FROM actions a
LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id
LEFT JOIN LATERAL (
    SELECT array_agg(c.person) FILTER (WHERE c.counts) AS voters, array_agg(c.person) FILTER (WHERE NOT c.counts) AS void
    FROM (
        SELECT g.person, vote_counts(g.tenant_id, g.person, g.token, a.proposed_by, a.source_id, a.tool_name) AS counts
        FROM votes g
        WHERE g.tenant_id = a.tenant_id AND g.action_id = a.action_id AND g.round = p.round AND g.decision = 'grant'
    ) c
) v ON true
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[]);

-- name: ApprovalsEscalating :many
-- Claims due escalations, except those of actions that were decided meanwhile.
-- FOR NO KEY UPDATE SKIP LOCKED: the next run handles actions that are being
-- decided now.
WITH due AS MATERIALIZED (
    SELECT p.tenant_id, p.action_id, p.needed, p.given, a.approval_expires_at, a.approval_state = 'required' AS waits
    FROM approvals p
    JOIN actions a ON a.tenant_id = p.tenant_id AND a.action_id = p.action_id
    WHERE p.escalate_at <= now()
    ORDER BY p.escalate_at
    LIMIT @most::bigint
    FOR NO KEY UPDATE OF p, a SKIP LOCKED
)
UPDATE approvals p
SET escalate_at = NULL, escalated_at = CASE WHEN d.waits THEN now() ELSE p.escalated_at END
FROM due d
WHERE p.tenant_id = d.tenant_id AND p.action_id = d.action_id
RETURNING p.tenant_id, p.action_id, d.needed, d.given, coalesce(d.approval_expires_at, now())::timestamptz AS expires_at, d.waits::boolean AS waits;

-- name: ApprovalsExpiring :many
-- Claims due warnings, like ApprovalsEscalating.
WITH due AS MATERIALIZED (
    SELECT p.tenant_id, p.action_id, p.needed, p.given, a.approval_expires_at, a.approval_state = 'required' AS waits
    FROM approvals p
    JOIN actions a ON a.tenant_id = p.tenant_id AND a.action_id = p.action_id
    WHERE p.warn_at <= now()
    ORDER BY p.warn_at
    LIMIT @most::bigint
    FOR NO KEY UPDATE OF p, a SKIP LOCKED
)
UPDATE approvals p
SET warn_at = NULL, warned_at = CASE WHEN d.waits THEN now() ELSE p.warned_at END
FROM due d
WHERE p.tenant_id = d.tenant_id AND p.action_id = d.action_id
RETURNING p.tenant_id, p.action_id, d.needed, d.given, coalesce(d.approval_expires_at, now())::timestamptz AS expires_at, d.waits::boolean AS waits;

-- name: ApprovalsVoid :many
-- Voids the votes on actions of class once that wait for people, and notes the reason:
-- before a recovery they may have been approved and sent.
WITH waiting AS (
    UPDATE actions a
    SET decision_note = @note::text
    WHERE a.approval_state = 'required' AND a.effect = 'once'
    RETURNING a.tenant_id, a.action_id
), voided AS (
    UPDATE approvals p
    SET round = p.round + 1, given = 0, approval_digest = NULL
    FROM waiting w
    WHERE p.tenant_id = w.tenant_id AND p.action_id = w.action_id
)
SELECT w.tenant_id, w.action_id FROM waiting w ORDER BY w.tenant_id, w.action_id;

-- name: ApprovalVoted :exec
-- Stores the progress of the rounds of some envelopes.
INSERT INTO approvals (tenant_id, action_id, round, needed, given, approval_digest)
SELECT @tenant_id, unnest(@action_ids::uuid[]), unnest(@rounds::integer[]), unnest(@needed::integer[]), unnest(@given::integer[]), unnest(@approval_digests::bytea[])
ON CONFLICT ON CONSTRAINT approvals_pkey
DO UPDATE SET round = excluded.round, needed = excluded.needed, given = excluded.given, approval_digest = excluded.approval_digest;

-- name: VoteCountMany :many
-- The valid votes for granted actions of any tenant.
SELECT a.tenant_id, a.action_id, count(1)::integer AS votes
FROM (SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@action_ids::uuid[]) AS action_id) k
JOIN actions a ON a.tenant_id = k.tenant_id AND a.action_id = k.action_id
JOIN approvals p ON p.tenant_id = k.tenant_id AND p.action_id = k.action_id
JOIN votes v ON v.tenant_id = k.tenant_id AND v.action_id = k.action_id AND v.round = p.round AND v.decision = 'grant'
WHERE vote_counts(v.tenant_id, v.person, v.token, a.proposed_by, a.source_id, a.tool_name)
GROUP BY a.tenant_id, a.action_id;

-- name: VoteInsertMany :exec
INSERT INTO votes (tenant_id, action_id, round, person, token, actor, decision, note, approval_digest)
SELECT @tenant_id, v.action_id, v.round, @person, @token, @actor, @decision, nullif(@note::text, ''), nullif(v.approval_digest, ''::bytea)
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id, unnest(@rounds::integer[]) AS round, unnest(@approval_digests::bytea[]) AS approval_digest) v;

-- name: VoteList :many
-- The votes about an envelope, oldest first.
SELECT v.round, v.person, v.actor, v.decision, v.note, v.at
FROM votes v
WHERE v.tenant_id = @tenant_id AND v.action_id = @action_id
ORDER BY v.at, v.person;

-- name: TriageWithdrawalsDue :many
-- Actions of triage whose message was moved or flagged by its owner. FOR UPDATE
-- SKIP LOCKED: actions that another worker withdraws now are skipped. A proposal
-- that is not an action yet is handled later.
SELECT p.tenant_id, p.external_id, coalesce(q.action_id, p.proposal_id, '00000000-0000-0000-0000-000000000000')::uuid AS action_id,
    (q.proposal_id IS NOT NULL AND q.answered_at IS NULL)::boolean AS waiting
FROM triage_proposals p
LEFT JOIN proposals q ON q.tenant_id = p.tenant_id AND q.proposal_id = p.proposal_id
WHERE p.withdraw_at <= now()
ORDER BY p.withdraw_at
LIMIT @most::bigint
FOR UPDATE OF p SKIP LOCKED;

-- name: TriageWithdrawn :exec
-- Ends the withdrawal of proposals: withdrawn, or already decided or done. A
-- withdrawal is not an act of a person, so triage learns nothing from it.
UPDATE triage_proposals p
SET outcome = CASE WHEN w.withdrawn THEN 'withdrawn' ELSE p.outcome END, outcome_due = p.outcome_due AND NOT w.withdrawn,
    withdraw_at = CASE WHEN w.later THEN now() + interval '5 seconds' END
FROM (
    SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@external_ids::text[]) AS external_id, unnest(@withdrawn::boolean[]) AS withdrawn,
        unnest(@later::boolean[]) AS later
) w
WHERE p.tenant_id = w.tenant_id AND p.external_id = w.external_id;
