package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// employees is the collection of employees.
var employees = request.Collection[wire.Employee]{
	Name: "employees", Noun: "employee",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Employee, error) {
		var ids []envelope.EmployeeID
		if c.R.PathValue("id") != "" {
			id, _, err := employee(c)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		all, err := limits.Employees(ctx, tx, c.By.Tenant, ids...)
		return request.Map(all, func(e limits.Employee) wire.Employee {
			return wire.Employee{ID: limits.EmployeeText(e.ID), Name: e.Name, Trust: string(e.Trust), Scopes: e.Scopes}
		}), err
	},
	Key:  func(e wire.Employee) string { return e.ID },
	ETag: func(e *wire.Employee) *string { return &e.ETag },
}

// employee returns the {id} in the path, and the key of its entry.
func employee(c *request.Call) (id envelope.EmployeeID, key string, err error) {
	if id, err = limits.ParseEmployee(c.R.PathValue("id")); err != nil {
		return id, "", request.Invalid("/path/id", envelope.RuleFormat, "must be a UUID, or default")
	}
	return id, limits.EmployeeText(id), nil
}

// Employees handles GET /api/v1/employees. It lists the employees.
func Employees(c *request.Call) error { return employees.List(c) }

// PutEmployee handles PUT /api/v1/employees/{id}. It sets an employee.
func PutEmployee(c *request.Call, body wire.Employee) error {
	id, key, err := employee(c)
	if err == nil {
		err = c.CheckTools("*")
	}
	if err != nil {
		return err
	}
	return employees.Put(c, key, "", func(ctx context.Context, tx pgx.Tx) error {
		set := limits.Employee{ID: id, Name: body.Name, Trust: policy.Trust(body.Trust), Scopes: body.Scopes}
		return limits.PutEmployee(ctx, tx, c.By.Tenant, set, c.By.Actor())
	})
}

// DeleteEmployee handles DELETE /api/v1/employees/{id}. It deletes an employee.
func DeleteEmployee(c *request.Call) error {
	id, key, err := employee(c)
	if err != nil {
		return err
	}
	return employees.Delete(c, key, "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.DeleteEmployee(ctx, tx, c.By.Tenant, id, c.By.Actor())
	})
}
