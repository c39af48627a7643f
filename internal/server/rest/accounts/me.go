// Package accounts handles requests about identities: the caller itself,
// tokens, operators and identity providers.
package accounts

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Me handles GET /api/v1/me. It shows who the caller is and which operations it
// may call.
func Me(c *request.Call) error {
	return c.Result(me(c))
}

// me returns who the caller is.
func me(c *request.Call) (wire.Me, error) {
	by := c.By
	is := wire.Me{TenantID: by.Tenant.String(), TokenGrant: by.Grant(), Operations: c.Routes.Operations(by)}
	names := by.MayName()
	is.Automations, is.Employees, is.Sessions = names.Automations, names.Employees, names.Sessions
	if uuid.UUID(by.Token) != by.Operator { // otherwise the issuer signed it
		is.TokenID = by.Token.String()
	}
	if by.Browser.ID != uuid.Nil {
		is.Session = sessionEnds(by.Browser)
	}
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		if is.Tenant, err = identity.TenantName(ctx, tx, c.By.Tenant); err != nil || by.Operator == uuid.Nil {
			return err
		}
		person, err := identity.OperatorByID(ctx, tx, c.By.Tenant, by.Operator)
		is.Email = person.Email
		return err
	})
	return is, err
}
