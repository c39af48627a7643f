package worker_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// mode sets the mode of a tool.
func (f *mailFixture) mode(tool string, mode envelope.Mode) {
	f.t.Helper()
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, f.tenant, "", tool, mode, "test")
	})
}

// snooze snoozes the message of the fixture, and returns when the call has ended.
func (f *mailFixture) snooze(until time.Time) envelope.ActionID {
	f.t.Helper()
	id := f.propose(mail.ToolSnooze, map[string]any{"until": until.Format(time.RFC3339)})
	stop := f.run(worker.NewPipeline(f.db, settings.NewCache(), f.mail, config("w1")))
	f.until("SELECT EXISTS (SELECT 1 FROM tool_executions WHERE action_id = $1 AND status = 'sent')", id.String())
	stop()
	return id
}

// TestSnoozedMailReturns snoozes a message with one worker. Another returns it at
// the time of the snooze, although policy requires approval of every other call.
func TestSnoozedMailReturns(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	f.mode("*", envelope.ModeRequireApproval)
	f.mode("mailbox:"+mail.ToolSnooze, envelope.ModeAllow)
	before := f.stored()

	until := time.Now().Add(8 * time.Second).Truncate(time.Second)
	id := f.snooze(until)
	snoozed := f.places()
	f.work()

	if snoozed != `Snoozed[\Seen]` {
		t.Errorf("snoozed = %s", snoozed)
	}
	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("returned (-want +got):\n%s", diff)
	}
	got := one[string](f.fixture, `SELECT a.automation_id || ' ' || d.mode_source || ' ' || (e.finished_at >= $2)::text
		FROM actions a JOIN decisions d USING (tenant_id, decision_id) JOIN tool_executions e USING (tenant_id, action_id)
		WHERE a.external_id = 'return:' || $1 || ':1'`, id.String(), until)
	if want := "countersign.return org_default+grant:countersign.return true"; got != want {
		t.Errorf("the return is %s, want %s", got, want)
	}
}

// TestASnoozeIsRevertedBeforeItsReturn reverts a snooze. The return then finds the
// message where it belongs.
func TestASnoozeIsRevertedBeforeItsReturn(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	before := f.stored()
	id := f.snooze(time.Now().Add(8 * time.Second))

	f.revert(id)

	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("reverted (-want +got):\n%s", diff)
	}
	if n := one[int](f.fixture, "SELECT count(*)::integer FROM tool_executions WHERE status = 'conflict'"); n != 1 {
		t.Errorf("%d calls found nothing to do, want the return", n)
	}
}

// TestASnoozeWhoseAnswerIsLostReturnsOnce loses the answer of a snooze.
func TestASnoozeWhoseAnswerIsLostReturnsOnce(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	lost, _, release := f.losing()
	close(release)
	f.mail = lost

	f.snooze(time.Now().Add(time.Hour))

	if n := one[int](f.fixture, "SELECT count(*)::integer FROM outbox"); n != 1 || f.places() != `Snoozed[\Seen]` {
		t.Errorf("%d returns wait, want 1; the message is %s", n, f.places())
	}
}

// TestADeniedReturnIsReported denies the return. The action of the snooze has the
// reason.
func TestADeniedReturnIsReported(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	f.mode("mailbox:"+mail.ToolReturn, envelope.ModeDeny)

	id := f.snooze(time.Now().Add(time.Hour))

	got := one[string](f.fixture, "SELECT message FROM tool_executions WHERE action_id = $1", id.String())
	if want := "policy denies the call that would return the message by itself"; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
}

// TestNoPolicyReplacesThePerson allows everything, for everybody and for the
// automation, and grants the tool: a person is asked about each call all the same.
func TestNoPolicyReplacesThePerson(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	for _, automation := range []string{"", "nightly"} {
		f.configure(func(ctx context.Context, tx pgx.Tx) error {
			return settings.PutMode(ctx, tx, f.tenant, automation, "*", envelope.ModeAllow, "test")
		})
	}
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		s, err := settings.NewCache().Current(ctx, tx, f.tenant)
		if err != nil {
			return err
		}
		for _, tool := range []string{mail.ToolUnsubscribe, mail.ToolRSVP, mail.ToolAway, mail.ToolArchive} {
			found, _ := s.Tool(policy.Key{Source: "mailbox", Action: tool})
			g := settings.Grant{Tool: found.Key, Digest: found.Binding, Loose: []string{""}, By: "ada"}
			if _, err := settings.PutGrant(ctx, tx, f.tenant, g); err != nil {
				return err
			}
		}
		return nil
	})

	args := map[string]map[string]any{mail.ToolRSVP: {"answer": "accepted"}, mail.ToolAway: absence(nil)}
	for tool, want := range map[string]envelope.Phase{mail.ToolAway: envelope.PhasePending, mail.ToolUnsubscribe: envelope.PhasePending, mail.ToolRSVP: envelope.PhasePending, mail.ToolArchive: envelope.PhaseApproved} {
		if got := f.view(f.propose(tool, args[tool])).Phase; got != want {
			t.Errorf("%s is %s, want %s", tool, got, want)
		}
	}
}

// absence returns arguments of an answer in its owner's absence, with changes.
func absence(changes map[string]any) map[string]any {
	args := map[string]any{"to": "bob@example.com", "subject": "Away", "text": "Back on Monday", "since": "2026-01-01T00:00:00Z", "until": "2026-01-08T00:00:00Z"}
	maps.Copy(args, changes)
	return args
}

// TestAGrantApprovesAnswersInAbsence grants one text for one period: no other text and
// no other period runs without a person, nobody on the do-not-contact list gets one, and
// none runs after a kill or after the grant is revoked, though every mode allows it.
func TestAGrantApprovesAnswersInAbsence(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	f.mode("*", envelope.ModeAllow)
	var id uuid.UUID
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		s, err := settings.NewCache().Current(ctx, tx, f.tenant)
		if err != nil {
			return err
		}
		found, _ := s.Tool(policy.Key{Source: "mailbox", Action: mail.ToolAway})
		pins := map[string]json.RawMessage{"/account": json.RawMessage(`"home"`)}
		for _, name := range []string{"subject", "text", "since", "until"} {
			if pins["/"+name], err = json.Marshal(absence(nil)[name]); err != nil {
				return err
			}
		}
		g := settings.Grant{Tool: found.Key, Digest: found.Binding, By: "ada"}
		if g.Pins, g.Loose, err = policy.Only(pins, "/to", "/message"); err != nil {
			return err
		}
		if id, err = settings.PutGrant(ctx, tx, f.tenant, g); err != nil {
			return err
		}
		_, err = contact.PutEntries(ctx, tx, f.tenant, []contact.Entry{{Value: "eve@example.com"}}, "ada")
		return err
	})
	phase := func(changes map[string]any) envelope.Phase {
		return f.view(f.propose(mail.ToolAway, absence(changes))).Phase
	}

	for name, test := range map[string]struct {
		changes map[string]any
		want    envelope.Phase
	}{
		"granted":                {nil, envelope.PhaseApproved},
		"another recipient":      {map[string]any{"to": "cy@example.com"}, envelope.PhaseApproved},
		"another text":           {map[string]any{"text": "Send money"}, envelope.PhasePending},
		"another subject":        {map[string]any{"subject": "Hello"}, envelope.PhasePending},
		"another end":            {map[string]any{"until": "2026-02-08T00:00:00Z"}, envelope.PhasePending},
		"on do-not-contact list": {map[string]any{"to": "eve@example.com"}, envelope.PhaseDenied},
	} {
		if got := phase(test.changes); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	killed := f.propose(mail.ToolAway, absence(nil))
	f.pause(pause.Target{Scope: pause.Tool, Subject: "mailbox:" + mail.ToolAway}, true)
	f.sweep()
	if got := f.view(killed).Phase; got != envelope.PhaseSkipped {
		t.Errorf("killed: %s, want skipped", got)
	}
	f.configure(func(ctx context.Context, tx pgx.Tx) error { return settings.RevokeGrant(ctx, tx, f.tenant, id, "ada") })
	if got := phase(nil); got != envelope.PhasePending {
		t.Errorf("revoked: %s, want pending", got)
	}
}
