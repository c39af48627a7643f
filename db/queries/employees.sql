-- name: EmployeeDelete :exec
DELETE FROM employees WHERE tenant_id = @tenant_id AND employee_id = @employee_id;

-- name: EmployeeList :many
-- All employees of a tenant, or those with the ids.
SELECT e.employee_id, e.name, e.trust, e.scopes
FROM employees e
WHERE e.tenant_id = @tenant_id
    AND (cardinality(@employee_ids::uuid[]) = 0 OR e.employee_id = ANY (@employee_ids::uuid[]))
ORDER BY e.employee_id;

-- name: EmployeeUpsert :exec
INSERT INTO employees (tenant_id, employee_id, name, trust, scopes, updated_by)
VALUES (@tenant_id, @employee_id, @name, @trust, @scopes, @updated_by)
ON CONFLICT ON CONSTRAINT employees_pkey DO UPDATE
SET name = excluded.name, trust = excluded.trust, scopes = excluded.scopes, updated_at = now(), updated_by = excluded.updated_by;
