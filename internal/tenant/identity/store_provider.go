package identity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// PutProvider sets a provider up, in a transaction of the tenant's scope. What
// breaks the rules is fault.Invalid; an issuer and audience that is another
// provider's, perhaps another tenant's, and the last owner's way in are
// fault.Conflict.
func PutProvider(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, p Provider) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.Roles == nil {
		p.Roles = map[string]Role{}
	}
	roles, err := json.Marshal(p.Roles)
	if err != nil {
		return err
	}
	return keepOwner(ctx, tx, tenant, func() error {
		return violations.Fault(dbsqlc.New().IdentityProviderPut(ctx, tx, &dbsqlc.IdentityProviderPutParams{
			TenantID: uuid.UUID(tenant), ProviderID: p.ID, Issuer: p.Issuer, Audience: p.Audience, Clients: append([]string{}, p.Clients...),
			RoleClaim: postgres.OrNull(p.RoleClaim), Roles: roles, DefaultRole: postgres.OrNull(string(p.DefaultRole)), AllowedDomains: append([]string{}, p.AllowedDomains...),
		}))
	})
}

// DeleteProvider has the tokens of a provider taken no more, in a transaction
// of the tenant's scope. The people stay, and their tokens of Countersign's
// own. A provider that is not there is fault.NotFound, the last owner's way in
// fault.Conflict.
func DeleteProvider(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) error {
	return keepOwner(ctx, tx, tenant, func() error {
		n, err := dbsqlc.New().IdentityProviderDelete(ctx, tx, &dbsqlc.IdentityProviderDeleteParams{TenantID: uuid.UUID(tenant), ProviderID: id})
		return postgres.Affected(n, err, fault.New(fault.NotFound, "no such provider"))
	})
}

// Providers lists the providers of a tenant, in a transaction of its scope.
func Providers(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Provider, error) {
	rows, err := dbsqlc.New().IdentityProviders(ctx, tx, uuid.UUID(tenant))
	return postgres.TryMap(rows, err, providerFromRow)
}

// tenantProvider is a provider with its tenant.
type tenantProvider struct {
	Provider
	tenant envelope.TenantID
}

// providerOf returns the provider that a token of an issuer and audiences is
// for. No provider, or more than one, is ErrToken. The function reads across
// tenants; sqlc does not know its columns, which are those of
// IdentityProvidersRow.
func providerOf(ctx context.Context, tx pgx.Tx, issuer string, audiences []string) (tenantProvider, error) {
	const query = "SELECT tenant_id, provider_id, issuer, audience, clients, role_claim, roles, default_role, allowed_domains FROM providers_of($1, $2)"
	rows, err := tx.Query(ctx, query, issuer, audiences)
	if err != nil {
		return tenantProvider{}, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[dbsqlc.IdentityProvidersRow])
	if err != nil {
		return tenantProvider{}, err
	}
	if len(found) != 1 {
		return tenantProvider{}, ErrToken
	}
	p, err := providerFromRow(found[0])
	return tenantProvider{p, envelope.TenantID(found[0].TenantID)}, err
}

func providerFromRow(r dbsqlc.IdentityProvidersRow) (Provider, error) {
	p := Provider{
		ID: r.ProviderID, Issuer: r.Issuer, Audience: r.Audience, Clients: r.Clients, RoleClaim: postgres.OrZero(r.RoleClaim),
		DefaultRole: Role(postgres.OrZero(r.DefaultRole)), AllowedDomains: r.AllowedDomains,
	}
	if err := json.Unmarshal(r.Roles, &p.Roles); err != nil {
		return p, fmt.Errorf("roles of provider %s: %w", r.ProviderID, err)
	}
	return p, nil
}
