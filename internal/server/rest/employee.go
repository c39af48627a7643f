package rest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func (s *Server) listEmployees(c *call) error {
	var all []limits.Employee
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = limits.Employees(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return items(c, all)
}

// employee is the one in the path.
func (c *call) employee() (envelope.EmployeeID, error) {
	id, err := limits.ParseEmployee(c.r.PathValue("id"))
	if err != nil {
		return id, invalid("/path/id", envelope.RuleFormat, "must be a UUID, or default")
	}
	return id, nil
}

func (s *Server) putEmployee(c *call) error {
	var body struct {
		Name   string
		Trust  policy.Trust
		Scopes []string
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	id, err := c.employee()
	if err != nil {
		return err
	}
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutEmployee(ctx, tx, c.by.Tenant, limits.Employee{ID: id, Name: body.Name, Trust: body.Trust, Scopes: body.Scopes}, c.by.Name)
	})
}

func (s *Server) deleteEmployee(c *call) error {
	id, err := c.employee()
	if err != nil {
		return err
	}
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.DeleteEmployee(ctx, tx, c.by.Tenant, id, c.by.Name)
	})
}
