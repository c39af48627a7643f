package rest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// provider is an issuer whose tokens are taken, as the outside sees it.
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

func (s *Server) listProviders(c *call) error {
	var all []identity.Provider
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = identity.Providers(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]provider, len(all))
	for i, p := range all {
		shown[i] = provider(p)
	}
	return items(c, shown)
}

func (s *Server) putProvider(c *call) error {
	var body provider
	if err := c.decode(&body); err != nil {
		return err
	}
	body.ID = c.r.PathValue("id")
	c.detail = map[string]any{
		"issuer": body.Issuer, "audience": body.Audience, "clients": body.Clients, "role_claim": orNil(body.RoleClaim),
		"roles": body.Roles, "default_role": orNil(body.DefaultRole), "allowed_domains": body.AllowedDomains,
	}
	return s.configure(c, "identity provider "+body.ID+" set", func(ctx context.Context, tx pgx.Tx) error {
		return identity.PutProvider(ctx, tx, c.by.Tenant, identity.Provider(body))
	})
}

func (s *Server) deleteProvider(c *call) error {
	id := c.r.PathValue("id")
	return s.configure(c, "identity provider "+id+" deleted", func(ctx context.Context, tx pgx.Tx) error {
		return identity.DeleteProvider(ctx, tx, c.by.Tenant, id)
	})
}
