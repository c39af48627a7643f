package rest

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// me is what a caller is told of itself.
type me struct {
	Tenant     envelope.TenantID   `json:"tenant_id"`
	TenantName string              `json:"tenant"`
	Name       string              `json:"name"`
	Role       identity.Role       `json:"role"`
	Token      identity.TokenID    `json:"token_id,omitzero"`
	Operator   uuid.UUID           `json:"operator_id,omitzero"`
	Email      string              `json:"email,omitzero"`
	Employee   envelope.EmployeeID `json:"employee_id,omitzero"`
	Session    string              `json:"session_id,omitzero"`
	Scopes     []identity.Scope    `json:"scopes,omitempty"`
	Tools      []string            `json:"tools,omitempty"`
	Operations []string            `json:"operations"`
}

func (s *Server) getMe(c *call) error {
	is := me{
		Tenant: c.by.Tenant, Name: c.by.Name, Role: c.by.Role, Token: c.by.Token, Operator: c.by.Operator,
		Employee: c.by.Employee, Session: c.by.Session, Scopes: c.by.Scopes, Tools: c.by.Tools,
	}
	if uuid.UUID(is.Token) == is.Operator { // an issuer signed what it shows
		is.Token = identity.TokenID{}
	}
	for _, rt := range routes() {
		if rt.roles != nil && rt.admit(c.by) == nil {
			is.Operations = append(is.Operations, rt.operation)
		}
	}
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) (err error) {
		if is.TenantName, err = identity.TenantName(ctx, tx, c.by.Tenant); err != nil || is.Operator == uuid.Nil {
			return err
		}
		person, err := identity.OperatorByID(ctx, tx, c.by.Tenant, is.Operator)
		is.Email = person.Email
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, is)
}
