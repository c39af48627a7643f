// Package accounts handles requests about identities: the caller itself,
// tokens, operators and identity providers.
package accounts

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// me describes the caller.
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

// GET /api/v1/me shows who the caller is and which operations it may call.
func Me(c *request.Call) error {
	is := me{
		Tenant: c.By.Tenant, Name: c.By.Name, Role: c.By.Role, Token: c.By.Token, Operator: c.By.Operator,
		Employee: c.By.Employee, Session: c.By.Session, Scopes: c.By.Scopes, Tools: c.By.Tools,
	}
	if uuid.UUID(is.Token) == is.Operator { // an issuer signed what it shows
		is.Token = identity.TokenID{}
	}
	is.Operations = c.Routes.Operations(c.By)
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		if is.TenantName, err = identity.TenantName(ctx, tx, c.By.Tenant); err != nil || is.Operator == uuid.Nil {
			return err
		}
		person, err := identity.OperatorByID(ctx, tx, c.By.Tenant, is.Operator)
		is.Email = person.Email
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, is)
}
