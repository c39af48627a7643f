package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// automation names the automation of a proposal.
func automation(name string) func(p *envelope.Proposal) {
	return func(p *envelope.Proposal) { p.AutomationID = name }
}

// triaged returns a proposal of triage of a mail account, with triage's own row.
func (y *fixture) triaged(account string) *envelope.Proposal {
	y.t.Helper()
	digest := sha256.Sum256([]byte(uuid.NewString()))
	external := "triage:" + hex.EncodeToString(digest[:])
	y.exec("INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ($1, $2, $3, 'maildir') ON CONFLICT DO NOTHING", y.tenant.String(), uuid.NewString(), account)
	y.exec(`WITH m AS (
		INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
		SELECT a.tenant_id, $3, a.account_id, $4, $3, false, now(), 1 FROM triage_accounts a WHERE a.tenant_id = $1 AND a.name = $2
		RETURNING tenant_id, account_id, message_id)
	INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope)
	SELECT m.tenant_id, $5, m.account_id, m.message_id, 'archive', '[{"pointer":"/account","value":"work","origin":"config"}]',
		jsonb_build_object('type', 'mcp.exec', 'external_id', $5::text, 'tool', '{"source":"mail","name":"message.archive"}'::jsonb, 'args', '{"account":"work"}'::jsonb)
	FROM m`, y.tenant.String(), account, uuid.NewString(), digest[:], external)
	return proposal(func(p *envelope.Proposal) { p.ExternalID = external })
}

// tried runs a change of settings and returns its error.
func (y *fixture) tried(fn func(ctx context.Context, tx pgx.Tx) error) error {
	return postgres.InTx(y.t.Context(), y.db, postgres.API(y.tenant), func(tx pgx.Tx) error { return fn(y.t.Context(), tx) })
}

// order pauses, kills or sets an automation travelling.
func (y *fixture) order(subject string, kill, travelling bool) error {
	return y.tried(func(ctx context.Context, tx pgx.Tx) error {
		_, err := pause.Set(ctx, tx, y.tenant, pause.Order{Target: pause.Target{Scope: pause.Automation, Subject: subject}, Kill: kill, Travelling: travelling, Reason: "because", By: "ada"})
		return err
	})
}

// TestPauseOfAnAutomation covers the actions of the automation, and of triage,
// of all accounts or of one, and no others.
func TestPauseOfAnAutomation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		subject string
		held    []bool // of nightly, no automation, triage of work, triage of home
	}{
		{"nightly", []bool{true, false, false, false}},
		{"triage", []bool{false, false, true, true}},
		{"triage/work", []bool{false, false, true, false}},
	} {
		t.Run(test.subject, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			proposals := []*envelope.Proposal{proposal(automation("nightly")), proposal(), y.triaged("work"), y.triaged("home")}
			if err := y.order(test.subject, false, false); err != nil {
				t.Fatal(err)
			}
			ids := y.propose(proposals...)
			stop := y.run(y.pipeline(y.db, y.src, config("w1")))
			y.settled()
			stop()

			for i, id := range ids {
				if held := len(y.history(id)) == 0; held != test.held[i] {
					t.Errorf("action %d: held: %v, want %v", i, held, test.held[i])
				}
			}

			y.resume(pause.Target{Scope: pause.Automation, Subject: test.subject})
			y.sweep()
			y.work()
			for i, id := range ids {
				if got := y.history(id); len(got) != 1 || got[0] != "1 sent" {
					t.Errorf("action %d after the resume: %v", i, got)
				}
			}
		})
	}
}

// TestKillOfTriageWhileItRuns kills triage of an account in the call about the
// thirteenth of 25 messages.
func TestKillOfTriageWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"triage", "triage/work"} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			var proposals []*envelope.Proposal
			for range 25 {
				proposals = append(proposals, y.triaged("work"))
			}
			other := y.propose(proposal())[0]
			ids := y.propose(proposals...)
			var calls atomic.Int64
			killed := make(chan error, 1)
			y.src.On(toolOnce, func(context.Context, source.Call) sourcetest.Step {
				if calls.Add(1) == 13 {
					killed <- y.order(subject, true, false)
				}
				return sourcetest.Done("")
			})
			cfg := config("w1")
			cfg.Concurrency = 1

			stop := y.run(y.pipeline(y.db, y.src, cfg))
			if err := <-killed; err != nil {
				t.Fatal(err)
			}
			y.settled()
			stop()
			y.exec("UPDATE outbox SET lease_until = NULL") // as of a claim that was cut by the stop
			y.sweep()

			count := map[string]int{}
			for _, id := range ids {
				count[fmt.Sprint(y.history(id))]++
			}
			if sent := count["[1 sent]"]; sent > 13 || sent+count["[0 skipped killed]"]+count["[1 skipped killed]"] != 25 {
				t.Errorf("attempts of the 25: %v, want at most 13 sent and the others killed", count)
			}
			if got := y.history(other); len(got) != 1 || got[0] != "1 sent" {
				t.Errorf("the action of nobody: %v", got)
			}
			if n := one[int](y, "SELECT cancelled FROM pauses"); n != 25-count["[1 sent]"] {
				t.Errorf("the kill counts %d, want %d", n, 25-count["[1 sent]"])
			}
		})
	}
}

// TestKillOfTriageEndsProposalsThatBecomeActionsLater has a proposal of triage
// become an action after the kill.
func TestKillOfTriageEndsProposalsThatBecomeActionsLater(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	late, next := y.triaged("work"), y.triaged("work")
	login, id := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	y.exec("INSERT INTO db_logins (tenant_id, login_id, login) VALUES ($1, $2, $3)", y.tenant.String(), login, "l"+login.String()[:8])
	y.exec("UPDATE triage_proposals SET proposal_id = $2 WHERE external_id = $1", late.ExternalID, id)
	y.exec("INSERT INTO proposals (tenant_id, proposal_id, login_id, body, bytes) VALUES ($1, $2, $3, '{}', 2)", y.tenant.String(), id, login)
	if err := y.order("triage/work", true, false); err != nil {
		t.Fatal(err)
	}
	y.exec("UPDATE triage_proposals SET proposed_at = proposed_at - interval '5 minutes', external_id = external_id WHERE external_id = $1", late.ExternalID)
	y.exec("UPDATE pauses SET killed_at = killed_at - interval '2 minutes'")

	y.sweep()
	if one[bool](y, "SELECT swept_at IS NOT NULL FROM pauses") {
		t.Error("the kill is complete while a proposal of triage waits to become an action")
	}
	ids := y.propose(late, next)
	y.exec("UPDATE proposals SET answered_at = now(), action_id = proposal_id")
	y.exec("UPDATE triage_proposals SET proposed_at = now() + interval '1 minute' WHERE external_id = $1", next.ExternalID)
	y.sweep()

	if got := y.history(ids[0]); len(got) != 1 || got[0] != "0 skipped killed" {
		t.Errorf("proposed before the kill: %v, want it killed", got)
	}
	if got := y.history(ids[1]); len(got) != 0 {
		t.Errorf("proposed after the kill: %v, want it held", got)
	}
	if !one[bool](y, "SELECT swept_at IS NOT NULL AND cancelled = 1 FROM pauses") {
		t.Error("the kill is not complete, or counts another number than 1")
	}
}

// TestTravelling holds what no person approved, and becomes a pause, a kill, and
// nothing weaker.
func TestTravelling(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	if err := y.order("triage", false, true); err != nil {
		t.Fatal(err)
	}
	asked := y.triaged("work")
	asked.Approval = envelope.ApprovalRequired
	ids := y.propose(y.triaged("work"), asked, proposal())
	y.approve(ids[1], approval.Approval{})
	stop := y.run(y.pipeline(y.db, y.src, config("w1")))
	y.settled()
	stop()

	for i, sent := range []bool{false, true, true} {
		if got := y.history(ids[i]); (len(got) == 1 && got[0] == "1 sent") != sent {
			t.Errorf("action %d: %v, sent: want %v", i, got, sent)
		}
	}
	for _, step := range []struct {
		kill, travelling bool
		want             string
	}{{false, true, "false true"}, {false, false, "false false"}, {false, true, "false false"}, {true, false, "true false"}, {false, true, "true false"}} {
		if err := y.order("triage", step.kill, step.travelling); err != nil {
			t.Fatal(err)
		}
		if got := one[string](y, "SELECT concat_ws(' ', kill::text, travelling::text) FROM pauses"); got != step.want {
			t.Errorf("after kill %v, travelling %v: %s, want %s", step.kill, step.travelling, got, step.want)
		}
	}
}

// TestAutomationPauseErrors covers the orders that are rejected.
func TestAutomationPauseErrors(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.triaged("work")
	for _, subject := range []string{"", " ", "triage/home", "a\nb"} {
		if err := y.order(subject, false, false); !errors.Is(err, fault.Invalid) {
			t.Errorf("pause of %q: %v, want it rejected", subject, err)
		}
	}
	if err := y.order("triage/work", true, true); !errors.Is(err, fault.Invalid) {
		t.Errorf("a kill that is travelling: %v", err)
	}
	err := y.tried(func(ctx context.Context, tx pgx.Tx) error {
		_, err := pause.Set(ctx, tx, y.tenant, pause.Order{Target: pause.Target{Scope: pause.Tenant}, Travelling: true, Reason: "because", By: "ada"})
		return err
	})
	if !errors.Is(err, fault.Invalid) {
		t.Errorf("a tenant that is travelling: %v", err)
	}
}

// TestPauseOfTriageAmongThousands pauses triage in the call about the 500th of 2,000
// messages: after the pause is committed, at most the calls begin that the other
// slots had already checked.
func TestPauseOfTriageAmongThousands(t *testing.T) {
	t.Parallel()
	const messages, slots = 2000, 8
	y := newFixture(t)
	var proposals []*envelope.Proposal
	for range messages {
		proposals = append(proposals, y.triaged("work"))
	}
	ids := append(y.propose(proposals[:messages/2]...), y.propose(proposals[messages/2:]...)...)
	var calls, begun, after atomic.Int64
	var paused atomic.Bool
	ordered := make(chan error, 1)
	y.src.On(toolOnce, func(context.Context, source.Call) sourcetest.Step {
		switch n := calls.Add(1); {
		case n == 500:
			err := y.order("triage/work", false, false)
			begun.Store(calls.Load())
			paused.Store(true)
			ordered <- err
		case paused.Load():
			after.Add(1)
		}
		return sourcetest.Done("")
	})
	cfg := config("w1")
	cfg.Concurrency = slots

	stop := y.run(y.pipeline(y.db, y.src, cfg))
	if err := <-ordered; err != nil {
		t.Fatal(err)
	}
	y.until("SELECT count(1) >= 100 FROM outbox WHERE waits_for IS NOT NULL")
	stop()

	sent := one[int](y, "SELECT count(1)::int FROM tool_executions WHERE status = 'sent'")
	if n := int(after.Load()); n >= slots || sent >= int(begun.Load())+slots {
		t.Errorf("%d calls began after the pause, and %d actions were sent in all, want at most %d after the %d before it", n, sent, slots-1, begun.Load())
	}
	if held := one[int](y, "SELECT count(1)::int FROM outbox"); held != len(ids)-sent {
		t.Errorf("%d actions wait, want %d", held, len(ids)-sent)
	}
}
