-- name: DbLoginBind :exec
INSERT INTO db_logins (tenant_id, login_id, login, employee_id, session_id, operator_id, tools, automations, employees, sessions, external_id_prefix, waiting_max, bound_by)
VALUES (@tenant_id, @login_id, @login, @employee_id, @session_id, @operator_id, @tools, @automations, @employees, @sessions, sqlc.narg(external_id_prefix), @waiting_max, @bound_by);

-- name: DbLoginList :many
SELECT l.login_id, l.login, l.employee_id, l.session_id, l.operator_id, l.tools, l.automations, l.employees, l.sessions, l.external_id_prefix, l.waiting_max, l.bound_at, l.bound_by
FROM db_logins l
WHERE l.tenant_id = @tenant_id AND l.unbound_at IS NULL
ORDER BY l.login;

-- name: DbLoginRole :one
-- Reports whether a role of the database is a superuser, and whether it can log
-- in.
SELECT coalesce(r.rolsuper, false)::boolean AS superuser, coalesce(r.rolcanlogin, false)::boolean AS can_login FROM pg_catalog.pg_roles r WHERE r.rolname = @login::text;

-- name: DbLoginUnbind :execrows
-- Ends the binding of a login. The row stays, since actions refer to it.
UPDATE db_logins l SET unbound_at = now() WHERE l.tenant_id = @tenant_id AND l.login = @login AND l.unbound_at IS NULL;
