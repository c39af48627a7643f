package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// provider is an issuer whose tokens are accepted.
type provider struct {
	ID             string                   `json:"provider_id"`
	Issuer         string                   `json:"issuer"`
	Audience       string                   `json:"audience"`
	Clients        []string                 `json:"clients,omitempty"`
	RoleClaim      string                   `json:"role_claim,omitzero"`
	Roles          map[string]identity.Role `json:"roles,omitempty"`
	DefaultRole    identity.Role            `json:"default_role,omitzero"`
	AllowedDomains []string                 `json:"allowed_domains,omitempty"`
}

// GET /api/v1/identity-providers lists the identity providers.
func Providers(c *request.Call) error {
	var all []identity.Provider
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = identity.Providers(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]provider, len(all))
	for i, p := range all {
		shown[i] = provider(p)
	}
	return request.Items(c, shown)
}

// PUT /api/v1/identity-providers/{id} sets an identity provider.
func PutProvider(c *request.Call) error {
	var body provider
	if err := c.Decode(&body); err != nil {
		return err
	}
	body.ID = c.R.PathValue("id")
	c.Detail = map[string]any{
		"issuer": body.Issuer, "audience": body.Audience, "clients": body.Clients, "role_claim": request.NilIfZero(body.RoleClaim),
		"roles": body.Roles, "default_role": request.NilIfZero(body.DefaultRole), "allowed_domains": body.AllowedDomains,
	}
	return c.Configure("identity provider "+body.ID+" set", func(ctx context.Context, tx pgx.Tx) error {
		return identity.PutProvider(ctx, tx, c.By.Tenant, identity.Provider(body))
	})
}

// DELETE /api/v1/identity-providers/{id} deletes an identity provider.
func DeleteProvider(c *request.Call) error {
	id := c.R.PathValue("id")
	return c.Configure("identity provider "+id+" deleted", func(ctx context.Context, tx pgx.Tx) error {
		return identity.DeleteProvider(ctx, tx, c.By.Tenant, id)
	})
}
