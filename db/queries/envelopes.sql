-- name: ActionAboutPerID :many
-- The sessions and tools of some envelopes, for streams of events.
SELECT a.action_id, coalesce(a.session_id, '')::text AS session_id, a.source_id, a.tool_name
FROM actions a
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[]);

-- name: ActionEndedPerID :many
-- The envelopes among the given ones that have ended.
SELECT f.action_id
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id) k
CROSS JOIN LATERAL (
    SELECT v.action_id, v.status
    FROM envelopes v
    WHERE v.tenant_id = @tenant_id AND v.action_id = k.action_id
    LIMIT 1
) f
WHERE f.status IN ('sent', 'conflict', 'failed', 'skipped', 'unknown');

-- name: EnvelopePerID :many
-- Envelopes by id, in any order, with the last ended reversal of each, whose
-- name is derived from the id of its action. It is read for every awaited call.
-- Each id is looked up separately, because a generic plan for `= ANY` reads all
-- of the tenant's actions.
SELECT
    f.action_id, f.external_id, f.tenant_id, f.employee_id, f.session_id, f.automation_id, f.proposed_by,
    f.source_id, f.tool_name, f.composio_app, f.args, f.risk, f.effect, f.mode, f.mode_source, f.trace,
    f.tool_digest, f.approval_state, f.approval_expires_at, f.decided_at, f.decided_by, f.decision_note,
    f.rate_bucket, f.not_before, f.must_run_before, f.traceparent, f.created_at,
    f.status, f.attempt, f.next_attempt_at, f.code, f.message, f.result, f.provider_id, f.started_at, f.finished_at,
    f.urgent, coalesce(f.waits_for, '')::text AS waits_for,
    coalesce(f.waits_until, '0001-01-01 00:00:00+00')::timestamptz AS waits_until,
    f.proposed_args, coalesce(f.approvals_needed, 0)::integer AS approvals_needed,
    f.approvals_given::integer AS approvals_given,
    coalesce(f.edited_by, '')::text AS edited_by, f.edits, coalesce(f.approval_round, 0)::integer AS approval_round, f.decision_id,
    coalesce(CASE
        WHEN f.status IN ('sent', 'conflict', 'failed', 'skipped', 'unknown') THEN (
            SELECT a.action_id
            FROM actions a
            WHERE a.tenant_id = @tenant_id
                AND a.external_id BETWEEN 'revert:' || f.action_id || ':000' AND 'revert:' || f.action_id || ':999'
            ORDER BY a.external_id DESC
            LIMIT 1
        )
    END, '00000000-0000-0000-0000-000000000000')::uuid AS reversal_id
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id) k
CROSS JOIN LATERAL (
    SELECT
        v.action_id, v.external_id, v.tenant_id, v.employee_id, v.session_id, v.automation_id, v.proposed_by,
        v.source_id, v.tool_name, v.composio_app, v.args, v.risk, v.effect, v.mode, v.mode_source, v.trace,
        v.tool_digest, v.approval_state, v.approval_expires_at, v.decided_at, v.decided_by, v.decision_note,
        v.rate_bucket, v.not_before, v.must_run_before, v.traceparent, v.created_at,
        v.status, v.attempt, v.next_attempt_at, v.code, v.message, v.result, v.provider_id, v.started_at, v.finished_at,
        v.urgent, v.waits_for, v.waits_until, v.proposed_args, v.approvals_needed,
        CASE
            WHEN v.approval_state = 'required' AND v.approvals_given > 0 THEN (
                SELECT count(1) FROM votes g
                WHERE g.tenant_id = v.tenant_id AND g.action_id = v.action_id AND g.round = v.approval_round AND g.decision = 'grant'
                    AND vote_counts(g.tenant_id, g.person, g.token, v.proposed_by, v.source_id, v.tool_name)
            )
            ELSE coalesce(v.approvals_given, 0)
        END AS approvals_given,
        v.edited_by, v.edits, v.approval_round, v.decision_id
    FROM envelopes v
    WHERE v.tenant_id = @tenant_id AND v.action_id = k.action_id
    LIMIT 1
) f;

-- name: EnvelopePhasePerID :many
-- The phases of actions.
SELECT f.action_id, f.phase
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id) k
CROSS JOIN LATERAL (
    SELECT v.action_id, v.phase
    FROM envelopes v
    WHERE v.tenant_id = @tenant_id AND v.action_id = k.action_id
    LIMIT 1
) f;

-- name: EnvelopeStatusPerID :many
-- The statuses of actions.
SELECT f.action_id, f.status
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id) k
CROSS JOIN LATERAL (
    SELECT v.action_id, v.status
    FROM envelopes v
    WHERE v.tenant_id = @tenant_id AND v.action_id = k.action_id
    LIMIT 1
) f;
