-- name: Search :many
-- Things whose id or name begins with a text, up to a number of each requested
-- kind. Ids and external ids have indexes; a tenant's configured things are few.
(
    SELECT 'action'::text AS kind, f.action_id::text AS id, (coalesce(f.external_id || ' ', '') || f.source_id || ':' || f.tool_name)::text AS label
    FROM (
        (
            SELECT a.action_id, a.external_id, a.source_id, a.tool_name
            FROM actions a
            WHERE a.tenant_id = @tenant_id AND a.action_id BETWEEN @first_id AND @last_id
            ORDER BY a.action_id
            LIMIT @most::bigint
        )
        UNION
        (
            SELECT a.action_id, a.external_id, a.source_id, a.tool_name
            FROM actions a
            WHERE a.tenant_id = @tenant_id AND a.external_id BETWEEN @q::text AND @q_end::text AND starts_with(a.external_id, @q::text)
            ORDER BY a.external_id
            LIMIT @most::bigint
        )
    ) f
    WHERE 'action' = ANY (@kinds::text[])
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'dead_letter', f.action_id::text, coalesce(f.external_id || ' ', '') || f.source_id || ':' || f.tool_name
    FROM (
        (
            SELECT a.action_id, a.external_id, a.source_id, a.tool_name
            FROM dead_letters d
            JOIN actions a ON a.tenant_id = d.tenant_id AND a.action_id = d.action_id
            WHERE d.tenant_id = @tenant_id AND d.action_id BETWEEN @first_id AND @last_id
            ORDER BY d.action_id
            LIMIT @most::bigint
        )
        UNION
        (
            SELECT a.action_id, a.external_id, a.source_id, a.tool_name
            FROM (
                SELECT n.tenant_id, n.action_id, n.external_id, n.source_id, n.tool_name
                FROM actions n
                WHERE n.tenant_id = @tenant_id AND n.external_id BETWEEN @q::text AND @q_end::text AND starts_with(n.external_id, @q::text)
                ORDER BY n.external_id
                LIMIT 1000
            ) a
            JOIN dead_letters d ON d.tenant_id = a.tenant_id AND d.action_id = a.action_id
            LIMIT @most::bigint
        )
    ) f
    WHERE 'dead_letter' = ANY (@kinds::text[])
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'workflow', f.workflow_id::text, f.external_id
    FROM (
        (
            SELECT w.workflow_id, w.external_id
            FROM workflows w
            WHERE w.tenant_id = @tenant_id AND w.workflow_id BETWEEN @first_id AND @last_id
            ORDER BY w.workflow_id
            LIMIT @most::bigint
        )
        UNION
        (
            SELECT w.workflow_id, w.external_id
            FROM workflows w
            WHERE w.tenant_id = @tenant_id AND w.external_id BETWEEN @q::text AND @q_end::text AND starts_with(w.external_id, @q::text)
            ORDER BY w.external_id
            LIMIT @most::bigint
        )
    ) f
    WHERE 'workflow' = ANY (@kinds::text[])
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'session', f.session_id, f.session_id
    FROM (
        SELECT u.session_id FROM session_usage u WHERE u.tenant_id = @tenant_id
        UNION
        SELECT m.session_id FROM session_modes m WHERE m.tenant_id = @tenant_id
        UNION
        SELECT a.session_id FROM actions a
        WHERE a.tenant_id = @tenant_id AND a.approval_state = 'required' AND a.session_id BETWEEN @q::text AND @q_end::text
    ) f
    WHERE 'session' = ANY (@kinds::text[]) AND starts_with(f.session_id, @q::text)
    ORDER BY f.session_id
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'automation', f.automation_id, f.automation_id
    FROM (
        SELECT m.automation_id FROM policy_modes m WHERE m.tenant_id = @tenant_id
        UNION
        SELECT r.automation_id FROM policy_rules r WHERE r.tenant_id = @tenant_id
        UNION
        SELECT g.automation_id FROM grants g WHERE g.tenant_id = @tenant_id AND g.automation_id IS NOT NULL
    ) f
    WHERE 'automation' = ANY (@kinds::text[]) AND f.automation_id <> '' AND starts_with(f.automation_id, @q::text)
    ORDER BY f.automation_id
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'employee', e.employee_id::text, e.name
    FROM employees e
    WHERE 'employee' = ANY (@kinds::text[]) AND e.tenant_id = @tenant_id
        AND (e.employee_id BETWEEN @first_id AND @last_id OR starts_with(lower(e.name), lower(@q::text)))
    ORDER BY e.name, e.employee_id
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'person', p.operator_id::text, p.name
    FROM operators p
    WHERE 'person' = ANY (@kinds::text[]) AND p.tenant_id = @tenant_id
        AND (p.operator_id BETWEEN @first_id AND @last_id OR starts_with(lower(p.name), lower(@q::text)) OR starts_with(lower(p.email), lower(@q::text)))
    ORDER BY p.name, p.operator_id
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'tool', t.source_id || ':' || t.name, t.source_id || ':' || t.name
    FROM tools t
    WHERE 'tool' = ANY (@kinds::text[]) AND t.tenant_id = @tenant_id
        AND (starts_with(lower(t.source_id || ':' || t.name), lower(@q::text)) OR starts_with(lower(t.name), lower(@q::text)))
    ORDER BY t.source_id, t.name
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'source', s.source_id, s.source_id
    FROM sources s
    WHERE 'source' = ANY (@kinds::text[]) AND s.tenant_id = @tenant_id AND starts_with(s.source_id, lower(@q::text))
    ORDER BY s.source_id
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT 'bucket', b.name, b.name
    FROM buckets b
    WHERE 'bucket' = ANY (@kinds::text[]) AND b.tenant_id = @tenant_id AND starts_with(lower(b.name), lower(@q::text))
    ORDER BY b.name
    LIMIT @most::bigint
);
