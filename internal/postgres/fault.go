package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/fault"
)

// Fault turns an error of the database into a fault where the outside can
// tell it apart, by the name of the constraint that was broken; any other
// error comes back as it is. It is the only place that does so.
func Fault(err error) error {
	if err == nil || fault.KindOf(err) != "" {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Wrap(err, fault.NotFound, "not found")
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	if kind, text := ofConstraint(pg.ConstraintName); kind != "" {
		return fault.Wrap(err, kind, "%s", text)
	}
	switch pg.Code {
	case "55P03", "57014", "53300": // lock not available, statement timeout, too many connections
		return fault.Wrap(err, fault.Busy, "the database is busy; try again")
	}
	return err
}

func ofConstraint(name string) (fault.Kind, string) {
	switch name {
	case "tenants_name_key":
		return fault.Conflict, "a tenant of that name exists"
	case "tenants_name_check":
		return fault.Invalid, "a tenant's name is 1 to 63 of a-z, 0-9 and -, and starts with a letter or a digit"
	case "tenants_pkey":
		return fault.Conflict, "a tenant of that id exists"
	case "sources_pkey":
		return fault.Conflict, "a source of that id exists"
	case "sources_source_id_check":
		return fault.Invalid, "a source's id is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"
	case "sources_kind_check":
		return fault.Invalid, "a source's kind is mcp or builtin"
	case "sources_default_risk_check", "tools_risk_override_check":
		return fault.Invalid, "a risk is read, write or danger"
	case "tools_effect_override_check":
		return fault.Invalid, "an effect is read, idempotent, keyed or once"
	case "tools_max_attempts_check":
		return fault.Invalid, "max_attempts is 1 to 100"
	case "tools_source_id_fkey":
		return fault.NotFound, "no such source"
	case "api_tokens_tenant_id_fkey", "sources_tenant_id_fkey", "policy_modes_tenant_id_fkey", "buckets_tenant_id_fkey":
		return fault.NotFound, "no such tenant"
	case "api_tokens_role_check":
		return fault.Invalid, "a token's role is agent, operator or admin"
	case "actions_pkey", "actions_external_id_key", "outbox_pkey", "dead_letters_pkey":
		return fault.Conflict, "an envelope of that id exists"
	}
	return "", ""
}

// Duplicate says that err is a unique constraint's. The transaction it came
// from is over.
func Duplicate(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23505"
}
