package accounts

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// providers is the collection of issuers whose tokens are accepted.
var providers = request.Collection[wire.Provider]{
	Name: "identity-providers", Noun: "identity provider",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Provider, error) {
		all, err := identity.Providers(ctx, tx, c.By.Tenant)
		return request.Map(all, providerFrom), err
	},
	Key:  func(p wire.Provider) string { return p.ID },
	ETag: func(p *wire.Provider) *string { return &p.ETag },
}

func providerFrom(p identity.Provider) wire.Provider {
	return wire.Provider{ID: p.ID, HasWebClientSecret: len(p.WebClientSecret) > 0, ProviderFields: wire.ProviderFields{
		Issuer: p.Issuer, Audience: p.Audience, Clients: p.Clients, RoleClaim: p.RoleClaim, Roles: rolesOf[string](p.Roles),
		DefaultRole: string(p.DefaultRole), AllowedDomains: p.AllowedDomains,
		Label: p.Label, WebClientID: p.WebClientID,
	}}
}

// rolesOf converts roles by the values of a claim.
func rolesOf[To, From ~string](all map[string]From) map[string]To {
	roles := make(map[string]To, len(all))
	for value, role := range all {
		roles[value] = To(role)
	}
	return roles
}

// Providers handles GET /api/v1/identity-providers. It lists the identity
// providers.
func Providers(c *request.Call) error { return providers.List(c) }

// PutProvider handles PUT /api/v1/identity-providers/{id}. It sets an identity
// provider.
func PutProvider(c *request.Call, body wire.ProviderInput) error {
	id := c.R.PathValue("id")
	c.Detail = map[string]any{
		"issuer": body.Issuer, "audience": body.Audience, "clients": body.Clients, "role_claim": request.NilIfZero(body.RoleClaim),
		"roles": body.Roles, "default_role": request.NilIfZero(body.DefaultRole), "allowed_domains": body.AllowedDomains,
		"label": request.NilIfZero(body.Label), "web_client_id": request.NilIfZero(body.WebClientID), "web_client_secret": body.WebClientSecret != nil,
	}
	p := identity.Provider{
		ID: id, Issuer: body.Issuer, Audience: body.Audience, Clients: body.Clients, RoleClaim: body.RoleClaim,
		Roles: rolesOf[identity.Role](body.Roles), DefaultRole: identity.Role(body.DefaultRole), AllowedDomains: body.AllowedDomains,
		Label: body.Label, WebClientID: body.WebClientID,
	}
	if err := c.By.MayTrust(p); err != nil {
		return err
	}
	return providers.Put(c, id, "identity provider "+id+" set", func(ctx context.Context, tx pgx.Tx) (err error) {
		if p.WebClientSecret, err = webClientSecret(c, ctx, tx, p, body.WebClientSecret); err != nil {
			return err
		}
		return identity.PutProvider(ctx, tx, c.By.Tenant, p)
	})
}

// webClientSecret returns the encrypted secret of a provider's web client: the
// given one, or else the stored one. A stored secret is never reused for another
// issuer or another client.
func webClientSecret(c *request.Call, ctx context.Context, tx pgx.Tx, p identity.Provider, given *string) ([]byte, error) {
	switch {
	case given != nil && *given == "":
		return nil, nil
	case given != nil:
		return c.Vault.Encrypt(c.By.Tenant, secretOf(p.ID), []byte(*given))
	}
	old, err := identity.ProviderByID(ctx, tx, c.By.Tenant, p.ID)
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}
	if len(old.WebClientSecret) > 0 && (old.Issuer != p.Issuer || old.WebClientID != p.WebClientID) {
		return nil, request.Invalid("/web_client_secret", envelope.RuleRequired, "the issuer or the client changes: give the secret again, or an empty one for none")
	}
	return old.WebClientSecret, err
}

// DeleteProvider handles DELETE /api/v1/identity-providers/{id}. It deletes an
// identity provider.
func DeleteProvider(c *request.Call) error {
	id := c.R.PathValue("id")
	return providers.Delete(c, id, "identity provider "+id+" deleted", func(ctx context.Context, tx pgx.Tx) error {
		return identity.DeleteProvider(ctx, tx, c.By.Tenant, id)
	})
}
