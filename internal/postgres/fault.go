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
	case "tenants_session_pending_max_check", "tenants_session_minute_max_check":
		return fault.Invalid, "a session's limits are 0 to 1000000"
	case "sources_pkey":
		return fault.Conflict, "a source of that id exists"
	case "sources_source_id_check":
		return fault.Invalid, "a source's id is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"
	case "sources_kind_check":
		return fault.Invalid, "a source's kind is mcp, builtin, tool_gateway, composio, slack, linear, sentry or webhook"
	case "subscriptions_name_check":
		return fault.Invalid, "a subscription's name is 1 to 63 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"
	case "subscriptions_kinds_check":
		return fault.Invalid, "a subscription is for 1 to 50 kinds of event"
	case "subscriptions_min_risk_check":
		return fault.Invalid, "a risk is low, medium or high"
	case "subscriptions_source_id_fkey":
		return fault.NotFound, "no such source"
	case "subscriptions_tenant_id_fkey":
		return fault.NotFound, "no such tenant"
	case "dry_runs_tenant_id_fkey":
		return fault.NotFound, "no such tenant"
	case "snapshot_rules_source_id_fkey":
		return fault.NotFound, "no such source"
	case "subscriptions_pkey", "subscriptions_subscription_id_key", "subscriptions_id_key":
		return fault.Conflict, "a subscription of that name exists"
	case "notices_pkey", "notices_subscription_id_fkey":
		return fault.Conflict, "the subscription is not there any more"
	case "sources_default_risk_check", "tools_risk_override_check":
		return fault.Invalid, "a risk is read, write or danger"
	case "tools_effect_override_check":
		return fault.Invalid, "an effect is read, idempotent, keyed or once"
	case "sources_drift_guard_check":
		return fault.Invalid, "a drift guard is full or interface"
	case "tools_words_check":
		return fault.Invalid, "a part of a tool's full name is 1 to 100 of a-z, 0-9, - and _, and starts with a letter or a digit"
	case "tools_max_attempts_check", "tools_retry_max_attempts_check":
		return fault.Invalid, "max_attempts is 1 to 100"
	case "tools_source_id_fkey":
		return fault.NotFound, "no such source"
	case "api_tokens_tenant_id_fkey", "sources_tenant_id_fkey", "policy_modes_tenant_id_fkey", "buckets_tenant_id_fkey",
		"quiet_hours_tenant_id_fkey", "do_not_contact_tenant_id_fkey", "employees_tenant_id_fkey", "pauses_tenant_id_fkey",
		"retention_tenant_id_fkey", "retention_checks_tenant_id_fkey", "batches_tenant_id_fkey", "policy_rules_tenant_id_fkey", "session_modes_tenant_id_fkey",
		"preferences_tenant_id_fkey", "grants_tenant_id_fkey":
		return fault.NotFound, "no such tenant"
	case "buckets_name_check":
		return fault.Invalid, "a bucket's name is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"
	case "buckets_rate_check":
		return fault.Invalid, "a bucket's rate has a limit of at least 1, an interval of at least a millisecond, and a burst of at least 1"
	case "buckets_calendar_check":
		return fault.Invalid, "a bucket's calendar is hour, day, week or month, with a limit of at least 1"
	case "buckets_concurrency_check":
		return fault.Invalid, "a bucket's concurrency is at least 1"
	case "tools_retry_check":
		return fault.Invalid, "a retry's base and cap are at least a millisecond, and its jitter is 0 to 1"
	case "quiet_hours_scope_check":
		return fault.Invalid, "quiet hours are of a tenant, an employee, a bucket or a recipient"
	case "quiet_hours_spread_seconds_check":
		return fault.Invalid, "quiet hours are followed by a spread of at most a day"
	case "do_not_contact_kind_check":
		return fault.Invalid, "an entry's kind is email, domain, phone or handle"
	case "employees_trust_check":
		return fault.Invalid, "a trust is none, low, medium or high"
	case "pauses_scope_check", "pauses_everything_check", "pauses_subject_check":
		return fault.Invalid, "a pause is of everything, a tenant, an employee, a source, a bucket or a tool, and names which"
	case "pauses_reason_check":
		return fault.Invalid, "a pause says why"
	case "pauses_standing_key":
		return fault.Conflict, "it is paused already"
	case "policy_rules_rule_id_check":
		return fault.Invalid, "a rule's id is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"
	case "grants_pins_check":
		return fault.Invalid, "a grant's pins are JSON Pointers with values"
	case "grants_expires_at_check":
		return fault.Invalid, "a grant holds for 1 second to 90 days"
	case "breakers_source_id_fkey":
		return fault.NotFound, "no such source"
	case "retention_kind_check":
		return fault.Invalid, "what is kept is the ledger or events"
	case "retention_days_check":
		return fault.Invalid, "days are 1 to 36500"
	case "retention_action_check":
		return fault.Invalid, "a retention's action is delete or notice"
	case "api_tokens_role_check":
		return fault.Invalid, "a token's role is owner, admin, operator, viewer or agent"
	case "api_tokens_operator_id_fkey":
		return fault.NotFound, "no such person"
	case "api_tokens_scopes_check", "api_tokens_tools_check", "api_tokens_previous_check":
		return fault.Invalid, "a token's scopes and tools are left out, or name at least one"
	case "operators_tenant_id_fkey", "identity_providers_tenant_id_fkey":
		return fault.NotFound, "no such tenant"
	case "operators_pkey", "operators_operator_id_key", "operators_login_key":
		return fault.Conflict, "another person logs in like this"
	case "operators_slack_key":
		return fault.Conflict, "another person is this Slack user"
	case "operators_role_check", "operators_role_set_check":
		return fault.Invalid, "a person's role is owner, admin, operator or viewer"
	case "operators_login_check", "operators_slack_check":
		return fault.Invalid, "an issuer and a subject, and a Slack team and user, go together"
	case "identity_providers_pkey":
		return fault.Conflict, "a provider of that id exists"
	case "identity_providers_audience_key":
		return fault.Conflict, "another provider, perhaps another tenant's, has this issuer and audience"
	case "identity_providers_provider_id_check":
		return fault.Invalid, "a provider's id is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"
	case "identity_providers_default_role_check":
		return fault.Invalid, "a default role is operator or viewer"
	case "reviews_tenant_id_fkey":
		return fault.NotFound, "no such tenant"
	case "reviews_risk_check":
		return fault.Invalid, "a risk is low, medium or high"
	case "reviews_approvals_needed_check":
		return fault.Invalid, "an envelope needs 1 to 5 approvals"
	case "reviews_wait_seconds_check", "reviews_warn_seconds_check", "reviews_escalate_seconds_check":
		return fault.Invalid, "the times of a review are at most 30 days"
	case "votes_pkey":
		return fault.Conflict, "you have decided about this envelope already"
	case "batches_external_id_key", "batches_pkey":
		return fault.Conflict, "a batch of that external_id exists"
	case "batch_steps_batch_id_fkey":
		return fault.NotFound, "no such batch"
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
