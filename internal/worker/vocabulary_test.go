package worker_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

// TestTheSchemaKnowsTheWordsOfTheCode compares the lists of words that CHECK
// constraints hold with the constants.
func TestTheSchemaKnowsTheWordsOfTheCode(t *testing.T) {
	t.Parallel()
	effects := words(envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed, envelope.EffectOnce)
	risks := words(policy.RiskRead, policy.RiskWrite, policy.RiskDanger)
	modes := words(envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeDeny)
	checks := map[string][]string{
		"outbox_status_check": words(envelope.StatusPending, envelope.StatusSending),
		"tool_executions_status_check": words(envelope.StatusPending, envelope.StatusSent, envelope.StatusConflict,
			envelope.StatusFailed, envelope.StatusSkipped, envelope.StatusUnknown),
		"actions_approval_state_check": words(envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted,
			envelope.ApprovalDenied, envelope.ApprovalExpired),
		"actions_effect_check":        effects,
		"tools_effect_check":          effects,
		"tools_effect_override_check": effects,
		"actions_risk_check":          words(envelope.RiskLow, envelope.RiskMedium, envelope.RiskHigh),
		"decisions_mode_check":        modes,
		"sources_default_risk_check":  risks,
		"tools_risk_override_check":   risks,
		"tenants_danger_mode_check":   words(envelope.ModeDeny, envelope.ModeRequireApproval),
		"dead_letters_reason_check":   words(outbox.Refused, outbox.Exhausted, outbox.Unknown),
		"sources_kind_check": words(catalog.KindMCP, catalog.KindBuiltin, catalog.KindToolGateway, catalog.KindComposio,
			catalog.KindSlack, catalog.KindLinear, catalog.KindSentry, catalog.KindWebhook, catalog.KindMail, catalog.KindDAV),
		"sources_on_lost_login_check": words(catalog.LostLoginWaits, catalog.LostLoginFails),
		"sources_drift_guard_check":   words(catalog.GuardFull, catalog.GuardInterface),
		"reviews_risk_check":          words(envelope.RiskLow, envelope.RiskMedium, envelope.RiskHigh),
		"web_sessions_via_check":      words(identity.ViaCode, identity.ViaOIDC, identity.ViaToken),
		"votes_decision_check":        words(envelope.DecisionGrant, envelope.DecisionDeny),
		"breakers_state_check":        words(breaker.StateClosed, breaker.StateOpen, breaker.StateHalfOpen),
		"buckets_calendar_check":      words(limits.PeriodHour, limits.PeriodDay, limits.PeriodWeek, limits.PeriodMonth),
		"do_not_contact_kind_check":   words(contact.Email, contact.Domain, contact.Phone, contact.Handle),
		"employees_trust_check":       words(policy.TrustNone, policy.TrustLow, policy.TrustMedium, policy.TrustHigh),
		"pauses_scope_check": words(pause.Everything, pause.Tenant, pause.Employee, pause.Source,
			pause.Bucket, pause.Tool, pause.Automation),
		"pauses_subject_check":    words(pause.Everything, pause.Tenant),
		"quiet_hours_scope_check": words(limits.QuietTenant, limits.QuietEmployee, limits.QuietBucket, limits.QuietRecipient),
		"dry_runs_effect_check":   effects,
		"dry_runs_mode_check":     modes,
		"dry_runs_risk_check":     words(envelope.RiskLow, envelope.RiskMedium, envelope.RiskHigh),
		"snapshots_stage_check":   words(snapshot.StageBefore, snapshot.StageAfter),
		"fence_state_check":       words(fence.StateNew, fence.StateOpen, fence.StateChecking, fence.StateHeld),
		"retention_action_check":  words(retention.Delete, retention.Report),
		"retention_kind_check":    words(retention.Actions, retention.Events),
		"workflows_state_check": words(workflow.StateRunning, workflow.StateReverting, workflow.StateStuck, workflow.StateCompensationFailed,
			workflow.StateCompleted, workflow.StateFailed, workflow.StateCancelled, workflow.StateReverted, workflow.StateResolved),
		"workflow_steps_state_check": words(workflow.StepPlanned, workflow.StepRunning, workflow.StepDone, workflow.StepFailed, workflow.StepSkipped,
			workflow.StepKept, workflow.StepReverting, workflow.StepReverted, workflow.StepRevertFailed, workflow.StepResolved),
		"subscriptions_min_risk_check": words(envelope.RiskLow, envelope.RiskMedium, envelope.RiskHigh),
		// Roles belong to a package above this one.
		"api_tokens_role_check":                 {"admin", "agent", "operator", "owner", "viewer"},
		"operators_role_check":                  {"admin", "operator", "owner", "viewer"},
		"operators_role_set_check":              {"admin", "operator", "owner", "viewer"},
		"identity_providers_default_role_check": {"operator", "viewer"},
		// Triage does not belong to the worker.
		"triage_accounts_kind_check":     {"eml", "imap", "maildir", "mbox", "mcp"},
		"triage_corrections_head_check":  {"act", "category", "priority", "unwanted"},
		"triage_decisions_again_check":   {"answered", "brought_back", "corrected"},
		"triage_decisions_reason_check":  {"answered", "asked", "brought_back", "copied", "corrected", "new"},
		"triage_decisions_tier_check":    {"embedded", "t1", "t2a", "t2b"},
		"triage_proposals_outcome_check": {"approved", "denied", "expired", "reverted", "undone", "withdrawn"},
		"triage_set_aside_step_check":    {"list", "read", "store"},
		"triage_runs_kind_check":         {"asked", "backfill", "changes"},
		"triage_findings_kind_check":     {"contact", "meeting", "receipt", "task", "travel"},
		"triage_texts_kind_check":        {"draft", "summary"},
		"triage_briefs_kind_check":       {"alert", "evening", "morning"},
		"triage_tags_state_check":        {"due", "gone", "leaving", "open", "skipped"},
		"triage_tags_open_check":         {"leaving", "open"},
		"triage_tag_log_status_check":    {"failed", "skipped", "success"},
	}
	tx := dbtest.Tx(t)

	rows, err := tx.Query(t.Context(), `
		SELECT conname::text, pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
		WHERE c.contype = 'c' AND r.relnamespace = 'countersign_data'::regnamespace AND NOT r.relispartition AND pg_get_constraintdef(c.oid) ~ '= ANY'`)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for rows.Next() {
		var name, definition string
		if err := rows.Scan(&name, &definition); err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`'([a-z0-9_-]+)'::text`).FindAllStringSubmatch(definition, -1) {
			got[name] = append(got[name], match[1])
		}
		slices.Sort(got[name])
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(checks, got); diff != "" {
		t.Errorf("words per constraint (-code +schema):\n%s", diff)
	}
}

func words[T ~string](constants ...T) []string {
	all := make([]string, len(constants))
	for i, c := range constants {
		all[i] = string(c)
	}
	slices.Sort(all)
	return all
}
