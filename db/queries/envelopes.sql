-- name: ActionAboutPerID :many
-- What streams of events ask of some envelopes: their sessions and tools.
SELECT a.action_id, coalesce(a.session_id, '')::text AS session_id, a.source_id, a.tool_name
FROM actions a
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[]);

-- name: ActionEndedPerID :many
-- Those of some envelopes to which nothing more happens by itself.
SELECT v.action_id
FROM envelopes v
WHERE v.tenant_id = @tenant_id
    AND v.action_id = ANY (@action_ids::uuid[])
    AND v.status IN ('sent', 'conflict', 'failed', 'skipped', 'unknown');

-- name: EnvelopePerID :many
-- Envelopes by id, in no order. It is read for every call that somebody waits
-- for, so that it joins nothing else (EnvelopeReversal).
SELECT
    v.action_id, v.external_id, v.tenant_id, v.employee_id, v.session_id, v.automation_id, v.proposed_by,
    v.source_id, v.tool_name, v.composio_app, v.args, v.risk, v.effect, v.mode, v.mode_source, v.trace,
    v.tool_digest, v.approval_state, v.approval_expires_at, v.decided_at, v.decided_by, v.decision_note,
    v.rate_bucket, v.not_before, v.must_run_before, v.traceparent, v.created_at,
    v.status, v.attempt, v.next_attempt_at, v.code, v.message, v.result, v.provider_id, v.started_at, v.finished_at,
    v.urgent, coalesce(v.waits_for, '')::text AS waits_for,
    coalesce(v.waits_until, '0001-01-01 00:00:00+00')::timestamptz AS waits_until,
    v.proposed_args, coalesce(v.approvals_needed, 0)::integer AS approvals_needed,
    CASE
        WHEN v.approval_state = 'required' AND v.approvals_given > 0 THEN (
            SELECT count(1) FROM votes g
            WHERE g.tenant_id = v.tenant_id AND g.action_id = v.action_id AND g.round = v.approval_round AND g.decision = 'grant'
                AND vote_counts(g.tenant_id, g.person, g.token, v.proposed_by, v.source_id, v.tool_name)
        )
        ELSE coalesce(v.approvals_given, 0)
    END::integer AS approvals_given,
    coalesce(v.edited_by, '')::text AS edited_by, v.edits, coalesce(v.approval_round, 0)::integer AS approval_round, v.decision_id
FROM envelopes v
WHERE v.tenant_id = @tenant_id AND v.action_id = ANY (@action_ids::uuid[]);

-- name: EnvelopePhasePerID :many
-- The phases of actions.
SELECT v.action_id, v.phase
FROM envelopes v
WHERE v.tenant_id = @tenant_id AND v.action_id = ANY (@action_ids::uuid[]);

-- name: EnvelopeReversal :many
-- The last reversals of actions that have one. A reversal's name follows from the
-- id of its action.
SELECT i.action_id::uuid AS action_id, n.action_id AS reversal_id
FROM unnest(@action_ids::uuid[]) AS i (action_id)
CROSS JOIN LATERAL (
    SELECT a.action_id
    FROM actions a
    WHERE a.tenant_id = @tenant_id
        AND a.external_id BETWEEN 'revert:' || i.action_id || ':000' AND 'revert:' || i.action_id || ':999'
    ORDER BY a.external_id DESC
    LIMIT 1
) n;
