-- name: PolicyUsage :many
-- Counts the latest actions by the rules about arguments that applied to their
-- decisions, and by the grants that allowed them. The row without a layer counts
-- all, since the oldest. A decision is read once, however many actions have it.
WITH recent AS MATERIALIZED (
    SELECT a.decision_id, a.created_at
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.action_id >= @floor AND a.created_at >= @since
    ORDER BY a.action_id DESC
    LIMIT @most::bigint
), counted AS (
    SELECT r.decision_id, count(1) AS actions, max(r.created_at) AS last_at, min(r.created_at) AS first_at
    FROM recent r
    GROUP BY r.decision_id
)
SELECT (s.step ->> 'layer')::text AS layer, (s.step ->> 'rule')::text AS id, sum(c.actions)::bigint AS actions, max(c.last_at)::timestamptz AS last_at
FROM counted c
JOIN decisions d ON d.tenant_id = @tenant_id AND d.decision_id = c.decision_id
CROSS JOIN LATERAL jsonb_array_elements(d.trace) AS s (step)
WHERE s.step ->> 'rule' <> ''
    AND (s.step ->> 'layer' = 'arguments' OR d.mode_source LIKE '%+grant:' || (s.step ->> 'rule'))
GROUP BY 1, 2
UNION ALL
SELECT '', '', coalesce(sum(c.actions), 0)::bigint, coalesce(min(c.first_at), @since)::timestamptz FROM counted c
ORDER BY 1, 2;

-- name: SimulationPage :many
-- The next envelopes below an id, newest first, with the inputs and the result
-- of policy at the time of proposal; the tools of the token are the current
-- ones. wanted is false for rows that the time or the tool excludes: they have
-- no arguments and only show the progress of the scan.
SELECT
    a.action_id, a.wanted, a.employee_id, a.session_id, a.automation_id, a.source_id, a.tool_name, a.risk, a.created_at,
    CASE WHEN a.wanted THEN coalesce(p.proposed_args, a.args) ELSE '{}' END::jsonb AS args,
    d.mode, d.mode_source,
    (coalesce(p.asked, false) OR d.trace @> '[{"layer": "asked_approval", "said": "require_approval"}]')::boolean AS asked,
    t.tools, a.person
FROM (
    SELECT
        r.tenant_id, r.action_id, r.employee_id, coalesce(r.session_id, '')::text AS session_id,
        coalesce(r.automation_id, '')::text AS automation_id, r.source_id, r.tool_name, r.risk, r.created_at, r.args, r.decision_id,
        r.proposed_by, r.person,
        (
            r.created_at >= @since AND r.created_at < @until
            AND (@source::text = '*' OR r.source_id = @source::text)
            AND (@tool::text = '*' OR r.tool_name = @tool::text)
        )::boolean AS wanted
    FROM actions r
    WHERE r.tenant_id = @tenant_id AND r.action_id < @before AND r.action_id >= @floor
    ORDER BY r.action_id DESC
    LIMIT @most::bigint
) a
JOIN decisions d ON d.tenant_id = a.tenant_id AND d.decision_id = a.decision_id
LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id
LEFT JOIN api_tokens t ON t.tenant_id = a.tenant_id AND t.token_id = a.proposed_by
ORDER BY a.action_id DESC;
