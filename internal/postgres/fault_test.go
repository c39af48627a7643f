package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// constraints returns the constraints and unique indexes of our tables, whose
// names errors can have.
func constraints(t *testing.T) []string {
	t.Helper()
	h := newFixture(t)
	return query[string](h, postgres.Admin(), `
		SELECT c.conname::text FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
		WHERE r.relnamespace = 'countersign_data'::regnamespace AND NOT r.relispartition AND r.relname NOT LIKE 'goose%' AND c.contype IN ('p', 'u', 'c', 'f', 'x')
		UNION
		SELECT r.relname::text FROM pg_index i JOIN pg_class r ON r.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
		WHERE i.indisunique AND r.relnamespace = 'countersign_data'::regnamespace AND NOT r.relispartition AND t.relname NOT LIKE 'goose%'
		ORDER BY 1`)
}

// internal returns the constraints that a caller's input cannot violate, or
// whose violation is handled by the package that owns the table.
func internal() []string {
	return []string{
		"actions_approval_expires_at_check", "actions_approval_state_check", "actions_effect_check", "actions_external_id_key",
		"actions_pkey", "actions_risk_check", "api_tokens_external_id_prefix_check", "api_tokens_pkey", "api_tokens_previous_hash_key", "api_tokens_token_hash_key",
		"db_logins_external_id_prefix_check", "login_codes_credential_check", "login_codes_operator_id_fkey", "login_codes_pkey", "login_codes_tenant_id_fkey",
		"program_logins_code_hash_key", "program_logins_pkey", "program_logins_tenant_id_fkey", "program_logins_token_id_fkey",
		"refresh_tokens_pkey", "refresh_tokens_tenant_id_fkey", "refresh_tokens_token_id_fkey", "refresh_tokens_used_check",
		"source_clients_pkey", "source_clients_tenant_id_fkey", "source_login_states_pkey", "source_logins_lost_check", "source_logins_pkey", "source_logins_renewal_check",
		"web_sessions_credential_check", "web_sessions_operator_id_fkey", "web_sessions_pkey", "web_sessions_secret_hash_key",
		"web_sessions_tenant_id_fkey", "web_sessions_via_check", "refused_logins_pkey", "refused_logins_tenant_id_fkey",
		"approvals_action_id_fkey", "approvals_needed_check", "approvals_pkey", "workflow_steps_workflow_id_fkey", "workflow_steps_pkey",
		"workflow_steps_state_check", "workflows_external_id_key", "workflows_pkey", "workflows_state_check", "breakers_pkey",
		"breakers_state_check", "bucket_claims_pkey", "buckets_pkey", "buckets_tenant_id_name_key", "dead_letters_pkey", "dead_letters_reason_check",
		"decisions_mode_check", "decisions_pkey", "do_not_contact_pkey", "dry_runs_effect_check", "dry_runs_mode_check",
		"fence_one_check", "fence_pkey", "fence_reason_check", "fence_state_check", "lost_calls_pkey", "lost_calls_tenant_id_fkey",
		"worker_commits_pkey", "workers_pkey", "fleet_samples_pkey", "backlog_samples_pkey", "backlog_samples_tenant_id_fkey",
		"dry_runs_pkey", "dry_runs_risk_check", "employees_pkey", "events_pkey", "grants_pkey", "notes_key_key", "notes_pkey",
		"outbox_status_check", "pauses_pkey", "policy_modes_pkey", "policy_rules_pkey", "preferences_enabled_check",
		"preferences_pkey", "quiet_hours_pkey", "replay_schedules_pkey", "retention_checks_pkey", "retention_pkey", "reviews_pkey",
		"checkpoints_events_check", "checkpoints_pkey", "checkpoints_pruned_check", "checkpoints_until_key", "session_modes_pkey", "session_usage_pkey",
		"snapshot_rules_pkey", "snapshots_pkey", "snapshots_stage_check", "tool_executions_pkey", "tool_executions_status_check",
		"known_addresses_action_id_fkey", "known_addresses_pkey", "action_word_cursors_pkey", "action_word_cursors_tenant_id_fkey", "action_words_action_id_fkey", "action_words_pkey",
		"proposals_answer_check", "proposals_pkey", "tools_effect_check", "tools_headline_digest_check", "tools_pkey", "votes_action_id_fkey", "votes_decision_check", "wakes_pkey",
		// Triage writes rows from mail; accounts are checked before they are stored.
		"triage_accounts_backfill_check", "triage_accounts_every_check", "triage_accounts_kind_check", "triage_accounts_name_check",
		"triage_accounts_name_key", "triage_accounts_pkey", "triage_accounts_secret_check", "triage_accounts_secret_from_check",
		"triage_accounts_tenant_id_fkey", "triage_corrections_head_check", "triage_corrections_label_check", "triage_corrections_message_fkey",
		"triage_corrections_pkey", "triage_decisions_again_check", "triage_decisions_message_fkey", "triage_decisions_pkey", "triage_decisions_reason_check",
		"triage_texts_kind_check", "triage_texts_message_fkey", "triage_texts_note_check", "triage_texts_pkey", "triage_texts_waiting_key",
		"triage_decisions_tier_check",
		"triage_folders_account_fkey", "triage_folders_pkey",
		"triage_locations_message_fkey", "triage_locations_pkey", "triage_messages_account_fkey", "triage_messages_identity_check",
		"triage_messages_identity_key", "triage_messages_pkey", "triage_proposals_envelope_check", "triage_proposals_message_fkey",
		"triage_proposals_origin_check", "triage_proposals_outcome_check", "triage_proposals_parts_check", "triage_proposals_pkey",
		"triage_refs_message_fkey", "triage_refs_pkey", "triage_runs_account_fkey", "triage_runs_kind_check", "triage_runs_pkey",
		"triage_schedules_account_fkey", "triage_schedules_pkey", "triage_senders_account_fkey", "triage_senders_pkey",
		"triage_proposals_repeats_key", "triage_set_aside_account_fkey", "triage_set_aside_pkey", "triage_set_aside_step_check",
		"triage_calendars_account_fkey", "triage_calendars_pkey", "triage_briefs_account_fkey", "triage_briefs_due_key", "triage_briefs_external_id_check", "triage_briefs_kind_check", "triage_briefs_pkey", "triage_follow_ups_message_fkey", "triage_follow_ups_pkey", "triage_tag_log_message_fkey", "triage_tag_log_pkey", "triage_tag_log_status_check",
		"triage_findings_kind_check", "triage_findings_message_fkey", "triage_findings_pkey",
		"triage_label_due_message_fkey", "triage_label_due_pkey", "triage_labeled_label_fkey", "triage_labeled_message_fkey", "triage_labeled_pkey",
		"triage_labeled_holds_check", "triage_labels_account_fkey", "triage_labels_name_check", "triage_labels_pkey",
		"triage_tags_action_check", "triage_tags_message_fkey", "triage_tags_open_check", "triage_tags_pkey", "triage_tags_state_check",
	}
}

// explained returns the constraints that the packages above have faults for:
// the names in their files violations.go and store*.go.
func explained(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err != nil || entry.IsDir() || name != "violations.go" && !(strings.HasPrefix(name, "store") && strings.HasSuffix(name, ".go")) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range regexp.MustCompile(`"([a-z_]+)":\s+fault\.(?:New|Coded)\(`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestEveryConstraintHasAFaultOrIsInternal(t *testing.T) {
	t.Parallel()
	all, known := constraints(t), explained(t)

	for _, name := range all {
		if mapped, own := slices.Contains(known, name), slices.Contains(internal(), name); mapped == own {
			t.Errorf("constraint %s has a fault: %t, and is listed as internal: %t; want one of them", name, mapped, own)
		}
	}
	for _, name := range append(known, internal()...) {
		if !slices.Contains(all, name) {
			t.Errorf("constraint %s has a fault or is listed as internal, and does not exist", name)
		}
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	violations := postgres.Violations{"tools_pkey": fault.New(fault.Conflict, "the tool exists")}
	violated := func(name string) error { return &pgconn.PgError{Code: "23505", ConstraintName: name} }
	plain := errors.New("plain")

	got := violations.Fault(fmt.Errorf("insert: %w", violated("tools_pkey")))

	if typed, ok := errors.AsType[*fault.Error](got); !ok || typed.Kind != fault.Conflict || typed.Text != "the tool exists" || !postgres.Duplicate(got) {
		t.Errorf("Fault = %#v, want a conflict with the cause", got)
	}
	for _, err := range []error{nil, plain, violated("other_pkey")} {
		if got := violations.Fault(err); got != err {
			t.Errorf("Fault(%v) = %v, want the error as it is", err, got)
		}
	}
}

func TestConstraintsAreNamedByUs(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	h.tables = append(h.tables, "fence", "fleet_samples", "worker_commits", "workers") // of no tenant
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
		"shut down":            {pg("57P01"), fault.Busy},
		"starting up":          {pg("57P03"), fault.Busy},
		"cannot connect":       {&pgconn.ConnectError{}, fault.Busy},
		"connection reset":     {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, fault.Busy},
		"connection closed":    {io.ErrUnexpectedEOF, fault.Busy},
		"a fault already":      {known, fault.Gone},
		"anything else":        {plain, ""},
		"another SQLSTATE":     {pg("XX000"), ""},
		"cancelled":            {context.Canceled, ""},
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
