-- name: OperatorByLogin :one
SELECT o.operator_id, o.name, o.email, o.role, o.role_set, o.disabled_at
FROM operators o
WHERE o.tenant_id = @tenant_id AND o.issuer = @issuer::text AND o.subject = @subject::text;

-- name: OperatorBySlack :one
SELECT o.operator_id, o.name, coalesce(o.role_set, o.role) AS role
FROM operators o
WHERE o.tenant_id = @tenant_id AND o.slack_team = @slack_team::text AND o.slack_user = @slack_user::text
    AND o.disabled_at IS NULL AND coalesce(o.role_set, o.role) IS NOT NULL;

-- name: OperatorGet :one
SELECT o.operator_id, o.name, o.email, o.issuer, o.subject, o.role, o.role_set, o.slack_team, o.slack_user, o.created_at, o.disabled_at, o.last_seen_at
FROM operators o
WHERE o.tenant_id = @tenant_id AND o.operator_id = @operator_id;

-- name: OperatorInsert :exec
INSERT INTO operators (tenant_id, operator_id, name, email, issuer, subject, role, role_set, slack_team, slack_user, disabled_at)
VALUES (@tenant_id, @operator_id, @name, @email, @issuer, @subject, @role, @role_set, @slack_team, @slack_user, @disabled_at);

-- name: OperatorLogin :one
-- Two concurrent first logins of one person create one row. A person who becomes
-- an administrator or owner loses the Slack user: an administrator of lower
-- rights may have set it to a user of their own, who could then act as that
-- person.
INSERT INTO operators AS o (tenant_id, operator_id, name, email, issuer, subject, role)
VALUES (@tenant_id, @operator_id, @name, @email, @issuer, @subject, @role)
ON CONFLICT (tenant_id, issuer, subject) WHERE issuer IS NOT NULL
DO UPDATE SET name = excluded.name, email = excluded.email, role = excluded.role,
    slack_team = CASE WHEN excluded.role IN ('admin', 'owner') AND o.role IS DISTINCT FROM excluded.role THEN NULL ELSE o.slack_team END,
    slack_user = CASE WHEN excluded.role IN ('admin', 'owner') AND o.role IS DISTINCT FROM excluded.role THEN NULL ELSE o.slack_user END
RETURNING o.operator_id, o.name, o.email, o.role, o.role_set, o.disabled_at;

-- name: OperatorUpdate :exec
UPDATE operators o
SET name = @name, email = @email, issuer = @issuer, subject = @subject, role_set = @role_set,
    role = CASE WHEN o.issuer IS DISTINCT FROM @issuer OR o.subject IS DISTINCT FROM @subject THEN NULL ELSE o.role END,
    slack_team = @slack_team, slack_user = @slack_user,
    disabled_at = CASE WHEN @disabled::boolean THEN coalesce(o.disabled_at, now()) END
WHERE o.tenant_id = @tenant_id AND o.operator_id = @operator_id;

-- name: Operators :many
-- All people of a tenant, or those with the ids.
SELECT o.operator_id, o.name, o.email, o.issuer, o.subject, o.role, o.role_set, o.slack_team, o.slack_user, o.created_at, o.disabled_at, o.last_seen_at
FROM operators o
WHERE o.tenant_id = @tenant_id
    AND (coalesce(cardinality(@operator_ids::uuid[]), 0) = 0 OR o.operator_id = ANY (@operator_ids::uuid[]))
ORDER BY o.name, o.operator_id;
