package identity

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"tenants_pkey":                          fault.New(fault.Conflict, "a tenant of that id exists"),
	"tenants_name_key":                      fault.New(fault.Conflict, "a tenant of that name exists"),
	"tenants_name_check":                    fault.New(fault.Invalid, "a tenant's name is 1 to 63 of a-z, 0-9 and -, and starts with a letter or a digit"),
	"api_tokens_tenant_id_fkey":             fault.New(fault.NotFound, "no such tenant"),
	"api_tokens_operator_id_fkey":           fault.New(fault.NotFound, "no such person"),
	"api_tokens_role_check":                 fault.New(fault.Invalid, "a token's role is owner, admin, operator, viewer or agent"),
	"api_tokens_scopes_check":               fault.New(fault.Invalid, "a token's scopes and tools are left out, or name at least one"),
	"api_tokens_tools_check":                fault.New(fault.Invalid, "a token's scopes and tools are left out, or name at least one"),
	"api_tokens_previous_check":             fault.New(fault.Invalid, "a token's scopes and tools are left out, or name at least one"),
	"operators_tenant_id_fkey":              fault.New(fault.NotFound, "no such tenant"),
	"operators_pkey":                        fault.New(fault.Conflict, "another person has this login"),
	"operators_operator_id_key":             fault.New(fault.Conflict, "another person has this login"),
	"operators_login_key":                   fault.New(fault.Conflict, "another person has this login"),
	"operators_slack_key":                   fault.New(fault.Conflict, "another person is this Slack user"),
	"operators_role_check":                  fault.New(fault.Invalid, "a person's role is owner, admin, operator or viewer"),
	"operators_role_set_check":              fault.New(fault.Invalid, "a person's role is owner, admin, operator or viewer"),
	"operators_login_check":                 fault.New(fault.Invalid, "an issuer and a subject, and a Slack team and user, go together"),
	"operators_slack_check":                 fault.New(fault.Invalid, "an issuer and a subject, and a Slack team and user, go together"),
	"identity_providers_tenant_id_fkey":     fault.New(fault.NotFound, "no such tenant"),
	"identity_providers_pkey":               fault.New(fault.Conflict, "a provider of that id exists"),
	"identity_providers_audience_key":       fault.New(fault.Conflict, "another provider, perhaps another tenant's, has this issuer and audience"),
	"identity_providers_provider_id_check":  fault.New(fault.Invalid, "a provider's id is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"),
	"identity_providers_default_role_check": fault.New(fault.Invalid, "a default role is operator or viewer"),
}
