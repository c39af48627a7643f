package identity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
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
			TenantID: uuid.UUID(tenant), ProviderID: p.ID, Issuer: p.Issuer, Audience: p.Audience, Clients: orEmpty(p.Clients),
			RoleClaim: unless(p.RoleClaim), Roles: roles, DefaultRole: unless(string(p.DefaultRole)), AllowedDomains: orEmpty(p.AllowedDomains),
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
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "no such provider")
		}
		return err
	})
}

// Providers lists the providers of a tenant, in a transaction of its scope.
func Providers(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Provider, error) {
	rows, err := dbsqlc.New().IdentityProviders(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	all := make([]Provider, len(rows))
	for i, r := range rows {
		all[i] = Provider{
			ID: r.ProviderID, Issuer: r.Issuer, Audience: r.Audience, Clients: r.Clients, RoleClaim: or(r.RoleClaim),
			DefaultRole: Role(or(r.DefaultRole)), AllowedDomains: r.AllowedDomains,
		}
		if all[i].Roles, err = readRoles(r.Roles); err != nil {
			return nil, fmt.Errorf("provider %s: %w", r.ProviderID, err)
		}
	}
	return all, nil
}

// providerOf finds the one provider that a token of an issuer and audiences is
// for. None, or more than one, is ErrToken. The function looks across tenants;
// sqlc does not see its columns, so that it is written out here.
func providerOf(ctx context.Context, tx pgx.Tx, issuer string, audiences []string) (stored, error) {
	const query = "SELECT tenant_id, provider_id, issuer, audience, clients, role_claim, roles, default_role, allowed_domains FROM providers_of($1, $2)"
	rows, err := tx.Query(ctx, query, issuer, audiences)
	if err != nil {
		return stored{}, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p stored, err error) {
		var tenant uuid.UUID
		var claim, role *string
		var roles []byte
		if err = row.Scan(&tenant, &p.ID, &p.Issuer, &p.Audience, &p.Clients, &claim, &roles, &role, &p.AllowedDomains); err == nil {
			p.Roles, err = readRoles(roles)
		}
		p.tenant, p.RoleClaim, p.DefaultRole = envelope.TenantID(tenant), or(claim), Role(or(role))
		return p, err
	})
	switch {
	case err != nil:
		return stored{}, err
	case len(found) != 1:
		return stored{}, ErrToken
	}
	return found[0], nil
}

// orEmpty is a list that is stored as one, even if it is empty.
func orEmpty(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}
