package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// GET /api/v1/employees lists the employees.
func Employees(c *request.Call) error {
	var all []limits.Employee
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = limits.Employees(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return request.Items(c, all)
}

// employee returns the {id} in the path.
func employee(c *request.Call) (envelope.EmployeeID, error) {
	id, err := limits.ParseEmployee(c.R.PathValue("id"))
	if err != nil {
		return id, request.Invalid("/path/id", envelope.RuleFormat, "must be a UUID, or default")
	}
	return id, nil
}

// PUT /api/v1/employees/{id} sets an employee.
func PutEmployee(c *request.Call) error {
	var body struct {
		Name   string
		Trust  policy.Trust
		Scopes []string
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	id, err := employee(c)
	if err != nil {
		return err
	}
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutEmployee(ctx, tx, c.By.Tenant, limits.Employee{ID: id, Name: body.Name, Trust: body.Trust, Scopes: body.Scopes}, c.By.Name)
	})
}

// DELETE /api/v1/employees/{id} deletes an employee.
func DeleteEmployee(c *request.Call) error {
	id, err := employee(c)
	if err != nil {
		return err
	}
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		return limits.DeleteEmployee(ctx, tx, c.By.Tenant, id, c.By.Name)
	})
}
