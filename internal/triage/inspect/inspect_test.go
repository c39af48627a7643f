package inspect_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
)

func TestStatusOfAccountsThatAreNotRead(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, append([]any{tenant.String()}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO tenants (tenant_id, name) VALUES ($1::uuid, 't-' || $1::text)")
	holder := uuid.New()
	quotas := map[string]string{
		"limited": `{"provider": "gmail-imap", "until": "2026-03-01T13:00:00Z", "reason": "the server's limit was reached",
			"levels": [{"of": "bytes", "per_seconds": 86400, "most": 1500000000, "left": 7, "at": "2026-03-01T11:59:00Z"}]}`,
		"reopened": `{"provider": "gmail-imap", "until": "2026-03-01T11:00:00Z", "reason": "the server's limit was reached"}`,
	}
	rows := map[string]struct {
		enabled  bool
		schedule string // the columns of a schedule, or "" without one
		state    string
		reason   string
	}{
		"disabled": {false, "now() - interval '1 day', NULL, NULL, NULL, NULL, 0", "disabled", "disabled"},
		"unseen":   {true, "", "unseen", "no triage process"},
		"never":    {true, "$3::timestamptz, $3::timestamptz - interval '1 hour', NULL, NULL, NULL, 0", "unseen", "no triage process"},
		"running":  {true, "$3::timestamptz, NULL, $4::uuid, $3::timestamptz + interval '30 seconds', $3::timestamptz, 0", "running", "reads the account now"},
		"watching": {true, "$3::timestamptz, NULL, $4::uuid, $3::timestamptz + interval '30 seconds', NULL, 0", "watching", "reads what comes"},
		"expired":  {true, "$3::timestamptz + interval '1 minute', NULL, $4::uuid, $3::timestamptz - interval '1 second', $3::timestamptz - interval '1 hour', 0", "waiting", "2026-03-01T12:01:00Z"},
		"asked":    {true, "$3::timestamptz + interval '1 hour', $3::timestamptz - interval '5 seconds', NULL, NULL, $3::timestamptz - interval '1 hour', 0", "asked", "asked for"},
		"late":     {true, "$3::timestamptz + interval '1 hour', $3::timestamptz - interval '5 minutes', NULL, NULL, $3::timestamptz - interval '1 hour', 0", "overdue", "did not begin"},
		"overdue":  {true, "$3::timestamptz - interval '5 minutes', NULL, NULL, NULL, $3::timestamptz - interval '1 hour', 2", "overdue", "did not begin"},
		"failing":  {true, "$3::timestamptz + interval '1 minute', NULL, NULL, NULL, $3::timestamptz - interval '1 hour', 3", "failing", "3 runs failed"},
		"limited": {true, "$3::timestamptz + interval '1 hour', NULL, NULL, NULL, $3::timestamptz - interval '1 hour', 1", "limited",
			"nothing is read until 2026-03-01T13:00:00Z: the server's limit was reached"},
		"reopened": {true, "$3::timestamptz + interval '1 minute', NULL, NULL, NULL, $3::timestamptz - interval '1 hour', 0", "waiting", "2026-03-01T12:01:00Z"},
		"waiting":  {true, "$3::timestamptz + interval '1 minute', NULL, NULL, NULL, $3::timestamptz - interval '1 hour', 0", "waiting", "2026-03-01T12:01:00Z"},
	}
	for name, row := range rows {
		exec("INSERT INTO triage_accounts (tenant_id, account_id, name, kind, enabled) VALUES ($1, gen_random_uuid(), $2, 'maildir', $3)", name, row.enabled)
		if row.schedule == "" {
			continue
		}
		exec(`INSERT INTO triage_schedules (tenant_id, account_id, next_run_at, asked_at, holder, lease_until, last_started_at, failures)
			SELECT a.tenant_id, a.account_id, `+row.schedule+` FROM triage_accounts a
			WHERE a.tenant_id = $1 AND a.name = $2 AND $3::timestamptz IS NOT NULL AND $4::uuid IS NOT NULL`, name, now, holder)
		if stored, ok := quotas[name]; ok {
			exec("UPDATE triage_schedules s SET quota = $3 FROM triage_accounts a WHERE a.tenant_id = $1 AND a.name = $2 AND s.account_id = a.account_id", name, stored)
		}
	}

	var got []wire.TriageStatus
	err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) (err error) {
		got, err = inspect.Status(t.Context(), tx, tenant, "", now)
		return err
	})

	if err != nil || len(got) != len(rows) {
		t.Fatalf("Status: %d accounts, %v, want %d", len(got), err, len(rows))
	}
	for _, s := range got {
		if want := rows[s.Account]; s.State != want.state || !strings.Contains(s.Reason, want.reason) {
			t.Errorf("%s is %s, %q; want %s with %q", s.Account, s.State, s.Reason, want.state, want.reason)
		}
		if (s.Quota != nil) != (quotas[s.Account] != "") {
			t.Errorf("%s has the quota %+v", s.Account, s.Quota)
		}
		if s.Account == "limited" && (len(s.Quota.Limits) != 1 || s.Quota.Limits[0].Left != 7 || s.Quota.Limits[0].Of != "bytes") {
			t.Errorf("limits are %+v", s.Quota.Limits)
		}
	}
}

func TestRunsCanBeRequestedBeforeAndAfterTheFirst(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant, account := envelope.TenantID(uuid.Must(uuid.NewV7())), uuid.New()
	for _, sql := range []string{
		"INSERT INTO tenants (tenant_id, name) VALUES ($1::uuid, 't-' || $2::text)",
		"INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ($1, $2::uuid, 'a', 'maildir')",
	} {
		if _, err := db.Exec(t.Context(), sql, tenant.String(), account.String()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
			return inspect.AskRun(t.Context(), tx, tenant, account)
		}); err != nil {
			t.Fatal(err)
		}
	}
	var asked int
	if err := db.QueryRow(context.WithoutCancel(t.Context()), "SELECT count(asked_at) FROM triage_schedules WHERE account_id = $1", account).Scan(&asked); err != nil || asked != 1 {
		t.Errorf("%d runs are asked for (%v), want 1", asked, err)
	}
}

func TestExplainShowsOriginsAndOutcomes(t *testing.T) {
	t.Parallel()
	action, reversal := envelope.ActionID(uuid.New()), envelope.ActionID(uuid.New())
	m := wire.TriageMessageDetail{
		TriageMessage: wire.TriageMessage{ID: uuid.New(), Account: "ann", DecidedAt: new(time.Now())},
		Decision:      json.RawMessage(`{"bucket":"archived","category":"newsletters","cohort":"newsletters","asked":"L4","allowed":"L4","confidence":0.9,"trace":[]}`),
		Undone:        []string{"archive"},
		Proposals: []wire.TriageProposal{
			{
				Action: "archive", Tool: "mail:message.archive", ExternalID: "triage:1", ActionID: &action, Phase: "completed", Reversals: []envelope.ActionID{reversal},
				Fields: []wire.TriageField{{Pointer: "/account", Value: "ann", Origin: "config", Ref: "/account"}, {Pointer: "/message/key", Value: "1:2", Origin: "header", Ref: "mailbox/key"}},
			},
			{Action: "label", Tool: "mail:message.label", ExternalID: "triage:2", Problem: "no such tool"},
			{Action: "flag", Tool: "mail:message.flag", ExternalID: "triage:3"},
		},
		Corrections: []wire.TriageCorrection{{Head: "category", Label: "receipts", MadeBy: "ann", RetractedAt: new(time.Now())}},
	}

	m.DecidedBecause = "answered"
	policies := map[envelope.ActionID]wire.PolicyDecision{action: {
		Mode: envelope.ModeAllow, Source: "preference", Trace: []wire.PolicyStep{
			{Layer: "organisation", Said: envelope.ModeRequireApproval, Rule: "r7", Version: "3", Detail: "mail is moved"}, {Layer: "session"},
		},
	}}

	why, err := inspect.Explain(m, policies)

	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"archive is completed", "label was refused: no such tool", "flag waits for a worker"} {
		if !strings.Contains(why.Summary, want) {
			t.Errorf("summary %q does not tell %q", why.Summary, want)
		}
	}
	linked := 0
	var told strings.Builder
	for _, s := range why.Steps {
		told.WriteString(s.Stage + ": " + s.Text + "\n")
		if s.ActionID != nil {
			linked++
		}
	}
	for _, want := range []string{`value: /account = "ann" from config /account`, `value: /message/key = "1:2" from header mailbox/key`, reversal.String(), "taken back, and not proposed again: archive", "and withdrawn at",
		"policy: the mode is allow, set by preference", "policy: organisation says require_approval, rule r7, version 3: mail is moved", "somebody answered what its owner waited for"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("the steps do not tell %q:\n%s", want, told.String())
		}
	}
	if linked != 7 {
		t.Errorf("%d steps name an action, want 7: the proposal, two values, two of policy, the outcome and the reversal", linked)
	}
}

func TestStatusShowsModelsAndRefusals(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	for _, sql := range []string{
		"INSERT INTO tenants (tenant_id, name) VALUES ($1::uuid, 't-' || $1::text)",
		"INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ($1, $1, 'asking', 'maildir'), ($1, gen_random_uuid(), 'plain', 'maildir')",
		`INSERT INTO triage_schedules (tenant_id, account_id, models, model_refused, model_refused_at)
			VALUES ($1, $1, '[{"server": "here", "model": "small", "tiers": ["t1"], "usable": false, "kind": "remote", "why": "it runs elsewhere"}]', 'server here', now())`,
		`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
			SELECT $1, x.id, $1, sha256(convert_to(x.id::text, 'UTF8')), x.id, false, now(), 1 FROM (SELECT md5(n::text)::uuid AS id FROM generate_series(1, 3) n) x`,
		`INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question, decision,
				signals, prediction, model, wanted, wanted_at, withheld)
			SELECT $1, m.message_id, $1, $1, 'fyi', 'primary', 'fyi', 'informational', 'default', 2, 1, false, '{}', '{}', '{}', 'm', '{t1}',
				now() - interval '1 hour', row_number() OVER () = 1
			FROM triage_messages m WHERE m.tenant_id = $1`,
	} {
		if _, err := db.Exec(t.Context(), sql, tenant.String()); err != nil {
			t.Fatal(err)
		}
	}

	var got []wire.TriageStatus
	err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) (err error) {
		got, err = inspect.Status(t.Context(), tx, tenant, "", time.Now())
		return err
	})

	if err != nil || len(got) != 2 || got[0].Models == nil || got[1].Models != nil {
		t.Fatalf("Status = %+v, %v, want models of the first account alone", got, err)
	}
	m := got[0].Models
	if m.Withheld != 1 || m.Degraded != 2 || m.Since == nil || m.Refused != "server here" || m.RefusedAt == nil ||
		len(m.Servers) != 1 || m.Servers[0].Usable || m.Servers[0].Kind != "remote" {
		t.Errorf("models are %+v", m)
	}
}

func TestExplainShowsTheTierAndMissingTiers(t *testing.T) {
	t.Parallel()
	m := wire.TriageMessageDetail{
		TriageMessage: wire.TriageMessage{ID: uuid.New(), DecidedAt: new(time.Now())}, DecidedBecause: "asked",
		Decision: json.RawMessage(`{"bucket":"actionable","trace":[]}`), Tier: "t1", Model: "small", Prompt: "t1.v1", Degraded: "t2a: unavailable", Waiting: []string{"t2a"},
	}
	for _, withheld := range []bool{false, true} {
		m.Withheld = withheld
		why, err := inspect.Explain(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		var told strings.Builder
		for _, s := range why.Steps {
			told.WriteString(s.Text + "\n")
		}
		for _, want := range []string{"the tier t1, model small, prompt t1.v1, without t2a: unavailable", "t2a", "a language model was asked"} {
			if !strings.Contains(told.String(), want) {
				t.Errorf("the steps do not tell %q:\n%s", want, told.String())
			}
		}
		if strings.Contains(why.Summary, "a language model is asked first") != withheld {
			t.Errorf("withheld %t: the summary is %q", withheld, why.Summary)
		}
	}
}
