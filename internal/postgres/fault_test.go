package postgres_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// constraints are those of our tables that have a name for an error to carry:
// constraints, and unique indexes.
func constraints(t *testing.T) []string {
	t.Helper()
	h := newHouse(t)
	return query[string](h, postgres.Admin(), `
		SELECT c.conname::text FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
		WHERE r.relnamespace = 'public'::regnamespace AND NOT r.relispartition AND r.relname NOT LIKE 'goose%' AND c.contype IN ('p', 'u', 'c', 'f', 'x')
		UNION
		SELECT r.relname::text FROM pg_index i JOIN pg_class r ON r.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
		WHERE i.indisunique AND r.relnamespace = 'public'::regnamespace AND NOT r.relispartition AND t.relname NOT LIKE 'goose%'
		ORDER BY 1`)
}

// internal are constraints that only a bug of ours can break: no caller's
// input leads there.
func internal() []string {
	return []string{
		"actions_approval_expires_at_check", "actions_approval_state_check", "actions_effect_check", "actions_risk_check",
		"approvals_action_id_fkey", "approvals_needed_check", "approvals_pkey", "reviews_pkey", "votes_action_id_fkey", "votes_decision_check",
		"api_tokens_pkey", "api_tokens_previous_hash_key", "api_tokens_token_hash_key", "buckets_pkey", "buckets_tenant_id_name_key",
		"dry_runs_effect_check", "dry_runs_mode_check", "dry_runs_pkey", "dry_runs_risk_check", "snapshot_rules_pkey", "snapshots_pkey", "snapshots_stage_check",
		"batch_steps_pkey", "batch_steps_state_check", "batches_state_check",
		"dead_letters_reason_check", "decisions_mode_check", "decisions_pkey", "events_pkey", "outbox_status_check",
		"breakers_pkey", "breakers_state_check", "do_not_contact_pkey", "employees_pkey", "pauses_pkey", "quiet_hours_pkey", "wakes_pkey",
		"retention_checks_pkey", "retention_pkey", "seals_events_check", "seals_pkey", "seals_pruned_check", "seals_until_key",
		"grants_pkey", "policy_modes_pkey", "policy_rules_pkey", "preferences_enabled_check", "preferences_pkey", "session_modes_pkey", "replay_schedules_pkey", "notes_key_key", "notes_pkey", "session_usage_pkey", "tool_executions_pkey", "tool_executions_status_check", "tools_effect_check", "tools_pkey",
	}
}

func TestEveryConstraintIsAFaultOrOurOwnBug(t *testing.T) {
	t.Parallel()
	all := constraints(t)

	for _, name := range all {
		kind := fault.KindOf(postgres.Fault(&pgconn.PgError{Code: "23505", ConstraintName: name}))
		if mapped, own := kind != "", slices.Contains(internal(), name); mapped == own {
			t.Errorf("constraint %s is a fault: %t, and listed as internal: %t; want one of them", name, mapped, own)
		}
	}
	for _, name := range internal() {
		if !slices.Contains(all, name) {
			t.Errorf("constraint %s is listed as internal and does not exist", name)
		}
	}
}

func TestFaultNamesOnlyConstraintsThatExist(t *testing.T) {
	t.Parallel()
	all := constraints(t)
	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}

	for _, match := range regexp.MustCompile(`"([a-z_]+_(?:key|pkey|fkey|check))"`).FindAllStringSubmatch(string(source), -1) {
		if !slices.Contains(all, match[1]) {
			t.Errorf("Fault knows the constraint %s, which does not exist", match[1])
		}
	}
}

func TestConstraintsAreNamedByUs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)

	for _, name := range constraints(t) {
		if !slices.ContainsFunc(h.tables, func(table string) bool { return strings.HasPrefix(name, table+"_") }) {
			t.Errorf("constraint %s does not begin with the name of its table", name)
		}
	}
}

func TestFault(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	known := fault.New(fault.Gone, "gone")
	pg := func(code string) error { return &pgconn.PgError{Code: code, Message: "secret detail"} }

	for name, test := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"no rows":              {pgx.ErrNoRows, fault.NotFound},
		"lock not available":   {pg("55P03"), fault.Busy},
		"statement timeout":    {pg("57014"), fault.Busy},
		"too many connections": {pg("53300"), fault.Busy},
		"a fault already":      {known, fault.Gone},
		"anything else":        {plain, ""},
		"another SQLSTATE":     {pg("XX000"), ""},
		"nothing":              {nil, ""},
	} {
		got := postgres.Fault(test.err)
		if fault.KindOf(got) != test.want {
			t.Errorf("%s: Fault = %v, want kind %q", name, got, test.want)
		}
		if test.want == "" && got != test.err {
			t.Errorf("%s: Fault = %v, want the error as it is", name, got)
		}
		if typed, ok := errors.AsType[*fault.Error](got); ok && strings.Contains(typed.Text, "secret") {
			t.Errorf("%s: the text shows the database's words: %s", name, typed.Text)
		}
	}
}
