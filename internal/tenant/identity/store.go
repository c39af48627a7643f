package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// NewTenant creates a tenant without sources, rules and tokens. It needs a
// transaction of the scope postgres.Admin. A name in use is fault.Conflict, an
// invalid one fault.Invalid.
func NewTenant(ctx context.Context, tx pgx.Tx, name string) (envelope.TenantID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return envelope.TenantID{}, err
	}
	tenant := envelope.TenantID(id)
	return tenant, violations.Fault(dbsqlc.New().TenantInsert(ctx, tx, &dbsqlc.TenantInsertParams{TenantID: tenant, Name: name}))
}

// TenantByName finds a tenant, in a transaction of the scope postgres.Admin. If
// it does not exist, the error is fault.NotFound.
func TenantByName(ctx context.Context, tx pgx.Tx, name string) (envelope.TenantID, error) {
	id, err := dbsqlc.New().TenantByName(ctx, tx, name)
	return id, postgres.Found(err, fault.New(fault.NotFound, "no tenant of that name"))
}

// TenantName returns a tenant's name, in a transaction of its scope.
func TenantName(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (string, error) {
	return dbsqlc.New().TenantName(ctx, tx, tenant)
}

// PutProvider stores a provider, in a transaction of the tenant's scope. An
// empty audience means the tenant's own. An audience that is neither the
// tenant's own nor allowed by AllowAudience is fault.Denied: otherwise a tenant
// could claim the logins of another's people. An invalid provider is
// fault.Invalid. An issuer and audience of another provider, perhaps of another
// tenant, and the removal of the last owner's login are fault.Conflict.
func PutProvider(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, p Provider) error {
	p.Audience = cmp.Or(p.Audience, OwnAudience(tenant))
	if err := p.check(); err != nil {
		return err
	}
	if err := checkAudience(ctx, tx, tenant, &p); err != nil {
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
			TenantID: tenant, ProviderID: p.ID, Issuer: p.Issuer, Audience: p.Audience, Clients: append([]string{}, p.Clients...),
			RoleClaim: postgres.OrNull(p.RoleClaim), Roles: roles, DefaultRole: postgres.OrNull(string(p.DefaultRole)), AllowedDomains: append([]string{}, p.AllowedDomains...),
			Label: p.Label, WebClientID: postgres.OrNull(p.WebClientID), WebClientSecret: p.WebClientSecret,
		}))
	})
}

// OwnAudience returns the default audience of a tenant.
func OwnAudience(tenant envelope.TenantID) string { return "countersign-" + tenant.String() }

// checkAudience returns fault.Denied if a tenant may not use an audience.
func checkAudience(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, p *Provider) error {
	if strings.Contains(p.Audience, tenant.String()) {
		return nil
	}
	allowed, err := dbsqlc.New().TenantAudienceAllowed(ctx, tx, &dbsqlc.TenantAudienceAllowedParams{
		TenantID: tenant, Pair: audiencePair(p.Issuer, p.Audience),
	})
	if err == nil && !allowed {
		return fault.New(fault.Denied, "an audience contains the id of the tenant, such as %s; an administrator of this deployment can allow another one: countersign provider allow-audience", OwnAudience(tenant))
	}
	return err
}

// audiencePair joins an issuer, which contains no space, and an audience.
func audiencePair(issuer, audience string) string { return issuer + " " + audience }

// AllowAudience allows a tenant to use an issuer's audience that does not
// contain its id, or revokes that if allowed is false; an existing provider with
// the audience stays. It needs a transaction outside of any tenant's scope.
func AllowAudience(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, issuer, audience string, allowed bool) error {
	if err := (&Provider{Issuer: issuer, Audience: audience}).check(); err != nil {
		return err
	}
	n, err := dbsqlc.New().TenantAudienceAllow(ctx, tx, &dbsqlc.TenantAudienceAllowParams{
		TenantID: tenant, Pair: audiencePair(issuer, audience), Allowed: allowed,
	})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no such tenant"))
}

// DeleteProvider deletes a provider, in a transaction of the tenant's scope, so
// that its tokens are rejected. The people and their tokens of Countersign stay.
// The error is fault.NotFound if there is no such provider, and fault.Conflict
// if it is the last owner's login.
func DeleteProvider(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) error {
	return keepOwner(ctx, tx, tenant, func() error {
		n, err := dbsqlc.New().IdentityProviderDelete(ctx, tx, &dbsqlc.IdentityProviderDeleteParams{TenantID: tenant, ProviderID: id})
		return postgres.Affected(n, err, fault.New(fault.NotFound, "no such provider"))
	})
}

// Providers lists the providers of a tenant, in a transaction of its scope.
func Providers(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Provider, error) {
	rows, err := dbsqlc.New().IdentityProviders(ctx, tx, tenant)
	return postgres.TryMap(rows, err, providerFromRow)
}

// ProviderByID finds a provider of a tenant, in a transaction of its scope. If
// it does not exist, the error is fault.NotFound.
func ProviderByID(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) (Provider, error) {
	r, err := dbsqlc.New().IdentityProviderGet(ctx, tx, &dbsqlc.IdentityProviderGetParams{TenantID: tenant, ProviderID: id})
	if err != nil {
		return Provider{}, postgres.Found(err, fault.New(fault.NotFound, "no such provider"))
	}
	return providerFromRow(dbsqlc.IdentityProvidersRow(r))
}

// tenantProvider is a provider with its tenant.
type tenantProvider struct {
	Provider
	tenant envelope.TenantID
}

// providerOf returns the provider for a token of an issuer and audiences. If
// there is none or more than one, the error is ErrToken. The function reads
// across tenants; sqlc does not support its columns, which are those of
// IdentityProvidersRow without the web client.
func providerOf(ctx context.Context, tx pgx.Tx, issuer string, audiences []string) (tenantProvider, error) {
	const query = "SELECT tenant_id, provider_id, issuer, audience, clients, role_claim, roles, default_role, allowed_domains FROM providers_of($1, $2)"
	rows, err := tx.Query(ctx, query, issuer, audiences)
	if err != nil {
		return tenantProvider{}, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[dbsqlc.IdentityProvidersRow])
	if err != nil {
		return tenantProvider{}, err
	}
	if len(found) != 1 {
		return tenantProvider{}, ErrToken
	}
	p, err := providerFromRow(found[0])
	return tenantProvider{p, found[0].TenantID}, err
}

func providerFromRow(r dbsqlc.IdentityProvidersRow) (Provider, error) {
	p := Provider{
		ID: r.ProviderID, Issuer: r.Issuer, Audience: r.Audience, Clients: r.Clients, RoleClaim: postgres.OrZero(r.RoleClaim),
		DefaultRole: Role(postgres.OrZero(r.DefaultRole)), AllowedDomains: r.AllowedDomains,
		Label: r.Label, WebClientID: postgres.OrZero(r.WebClientID), WebClientSecret: r.WebClientSecret,
	}
	if err := json.Unmarshal(r.Roles, &p.Roles); err != nil {
		return p, fmt.Errorf("roles of provider %s: %w", r.ProviderID, err)
	}
	return p, nil
}

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"tenants_pkey":                          fault.New(fault.Conflict, "a tenant with that id exists"),
	"tenants_name_key":                      fault.New(fault.Conflict, "a tenant with that name exists"),
	"tenants_name_check":                    fault.New(fault.Invalid, "a tenant's name must be 1 to 63 of a-z, 0-9 and -, and start with a letter or a digit"),
	"api_tokens_tenant_id_fkey":             fault.New(fault.NotFound, "no such tenant"),
	"api_tokens_operator_id_fkey":           fault.New(fault.NotFound, "no such person"),
	"api_tokens_role_check":                 fault.New(fault.Invalid, "a token's role must be owner, admin, operator, viewer or agent"),
	"api_tokens_scopes_check":               fault.New(fault.Invalid, "a token's scopes and tools must be omitted, or name at least one"),
	"api_tokens_tools_check":                fault.New(fault.Invalid, "a token's scopes and tools must be omitted, or name at least one"),
	"api_tokens_automations_check":          fault.New(fault.Invalid, "a token's automations, employees and sessions must be omitted, or name at least one"),
	"api_tokens_employees_check":            fault.New(fault.Invalid, "a token's automations, employees and sessions must be omitted, or name at least one"),
	"api_tokens_sessions_check":             fault.New(fault.Invalid, "a token's automations, employees and sessions must be omitted, or name at least one"),
	"api_tokens_previous_check":             fault.New(fault.Invalid, "a token's scopes and tools must be omitted, or name at least one"),
	"db_logins_tenant_id_fkey":              fault.New(fault.NotFound, "no such tenant"),
	"db_logins_operator_id_fkey":            fault.New(fault.NotFound, "no such person"),
	"db_logins_pkey":                        fault.New(fault.Conflict, "another request is binding the login; try again"),
	"db_logins_login_key":                   fault.New(fault.Conflict, "the login is bound to another tenant; unbind it there first"),
	"db_logins_login_check":                 fault.New(fault.Invalid, "a login's name must be 1 to 63 characters long"),
	"db_logins_tools_check":                 fault.New(fault.Invalid, "a login's tools must be omitted, or name at least one"),
	"db_logins_automations_check":           fault.New(fault.Invalid, "a login's automations, employees and sessions must be omitted, or name at least one"),
	"db_logins_employees_check":             fault.New(fault.Invalid, "a login's automations, employees and sessions must be omitted, or name at least one"),
	"db_logins_sessions_check":              fault.New(fault.Invalid, "a login's automations, employees and sessions must be omitted, or name at least one"),
	"db_logins_waiting_max_check":           fault.New(fault.Invalid, "the waiting proposals of a login must be limited to 1 to 10000000"),
	"db_logins_waiting_bytes_max_check":     fault.New(fault.Invalid, "the bytes of a login's waiting proposals must be limited to at least 1"),
	"operators_tenant_id_fkey":              fault.New(fault.NotFound, "no such tenant"),
	"operators_pkey":                        fault.New(fault.Conflict, "another person has this login"),
	"operators_operator_id_key":             fault.New(fault.Conflict, "another person has this login"),
	"operators_login_key":                   fault.New(fault.Conflict, "another person has this login"),
	"operators_slack_key":                   fault.New(fault.Conflict, "another person is this Slack user"),
	"operators_role_check":                  fault.New(fault.Invalid, "a person's role must be owner, admin, operator or viewer"),
	"operators_role_set_check":              fault.New(fault.Invalid, "a person's role must be owner, admin, operator or viewer"),
	"operators_login_check":                 fault.New(fault.Invalid, "give an issuer with a subject, and a Slack team with a user"),
	"operators_slack_check":                 fault.New(fault.Invalid, "give an issuer with a subject, and a Slack team with a user"),
	"identity_providers_tenant_id_fkey":     fault.New(fault.NotFound, "no such tenant"),
	"identity_providers_pkey":               fault.New(fault.Conflict, "a provider with that id exists"),
	"identity_providers_audience_key":       fault.New(fault.Conflict, "another provider, perhaps another tenant's, has this issuer and audience"),
	"identity_providers_provider_id_check":  fault.New(fault.Invalid, "a provider's id must be 1 to 100 of a-z, 0-9, dot, - and _, and start with a letter or a digit"),
	"identity_providers_web_client_check":   fault.New(fault.Invalid, "a web client's secret requires the client's id"),
	"identity_providers_default_role_check": fault.New(fault.Invalid, "a default role must be operator or viewer"),
}
