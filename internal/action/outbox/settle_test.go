package outbox_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres"
)

func TestSettleEndsAnEnvelope(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectKeyed, 2)
	items := fx.Claim(2)

	settled := fx.Settle(outboxtest.Sent(items[0]), outboxtest.Failed(items[1]))

	if diff := cmp.Diff([]outbox.Lease{items[0].Lease, items[1].Lease}, settled); diff != "" {
		t.Errorf("Settle (-want +got):\n%s", diff)
	}
	for i, want := range []wire.Attempt{
		{Attempt: 1, Status: envelope.StatusSent, Result: []byte(`{"ok":true}`), ProviderID: "p1", Worker: "w1"},
		{Attempt: 1, Status: envelope.StatusFailed, Code: "rejected", Message: "no", Worker: "w1"},
	} {
		id := items[i].Action
		if fx.Scheduled(id) {
			t.Errorf("%s is still on the schedule", want.Status)
		}
		if diff := cmp.Diff([]wire.Attempt{want}, fx.Attempts(id), cmpopts.IgnoreFields(wire.Attempt{}, "StartedAt", "FinishedAt"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	}
	if took := took(fx.Attempts(items[0].Action)[0]); took < 900*time.Millisecond || took > 1100*time.Millisecond {
		t.Errorf("the attempt says that it took %v, want 1s", took)
	}
	letters := fx.DeadLetters(deadletter.Filter{})
	want := []deadletter.Entry{{Action: items[1].Action, Source: "src", Tool: "tool", Reason: outbox.Refused, Attempt: 1, Code: "rejected", Message: "no"}}
	if diff := cmp.Diff(want, letters, cmpopts.IgnoreFields(deadletter.Entry{}, "CreatedAt")); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

func took(a wire.Attempt) time.Duration { return a.FinishedAt.Sub(*a.StartedAt) }

func TestSettleWithAnOldFenceWritesNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectKeyed, 3)
	old := fx.Claim(3)
	fx.Expire(outboxtest.ActionsOf(old)...)
	fx.Claim(3)

	settled := fx.Settle(outboxtest.Sent(old[0]), outboxtest.Failed(old[1]), outboxtest.Again(old[2], 0))

	if len(settled) != 0 {
		t.Errorf("Settle settled %v, want nothing", settled)
	}
	for _, it := range old {
		if !fx.Scheduled(it.Action) || len(fx.Attempts(it.Action)) != 0 || len(fx.DeadLetters(deadletter.Filter{})) != 0 {
			t.Errorf("a late settlement of %s left a trace", it.Action)
		}
	}
}

func TestSettleSeparatesOldAndNewLeasesInABatch(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(outbox.Item) outbox.Settlement{
		"ended":     outboxtest.Sent,
		"goes back": func(it outbox.Item) outbox.Settlement { return outboxtest.Again(it, time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			fx.Queue(envelope.EffectKeyed, 1)
			old := fx.Claim(1)[0]
			fx.Expire(old.Action)
			now := fx.Claim(1)[0]

			settled := fx.Settle(back(old), back(now))

			if diff := cmp.Diff([]outbox.Lease{now.Lease}, settled); diff != "" {
				t.Errorf("Settle (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettleBackStoresTheAttemptAndWaits(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectOnce, 1)
	it := fx.Claim(1)[0]
	fx.Start(it.Lease)

	fx.Settle(outboxtest.Again(it, time.Hour))

	wait := outboxtest.One[float64](fx.Fixture, "SELECT extract(epoch FROM next_attempt_at - now())::float8 FROM outbox WHERE action_id = $1", it.Action.String())
	free := outboxtest.One[bool](fx.Fixture, "SELECT lease_until IS NULL AND status = 'pending' AND attempt = 1 FROM outbox WHERE action_id = $1", it.Action.String())
	if wait < 3590 || wait > 3610 || !free {
		t.Errorf("after a retry it waits %vs and is free and pending: %t; want an hour and true", wait, free)
	}
	want := []wire.Attempt{{Attempt: 1, Status: envelope.StatusPending, Code: "unreachable", Message: "later", Worker: "w1"}}
	if diff := cmp.Diff(want, fx.Attempts(it.Action), cmpopts.IgnoreFields(wire.Attempt{}, "StartedAt", "FinishedAt"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if got := fx.Claim(1); len(got) != 0 {
		t.Errorf("Claim before its time has %d items", len(got))
	}
	fx.Hasten(it.Action)
	if got := fx.Claim(1); len(got) != 1 || got[0].Attempt != 1 || got[0].LeasesLost != 0 || got[0].Fence <= it.Fence {
		t.Errorf("Claim after its time = %+v, want the second attempt", got)
	}
}

func TestDeferredLeavesNoRowAndNoAttempt(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectOnce, 1)
	it := fx.Claim(1)[0]
	fx.Start(it.Lease)

	fx.Settle(outbox.Release(it))

	if got := fx.Attempts(it.Action); len(got) != 0 {
		t.Errorf("%d attempts are stored, want none", len(got))
	}
	if got := fx.Claim(1); len(got) != 1 || got[0].Attempt != 0 || got[0].Sending || got[0].LeasesLost != 0 {
		t.Errorf("Claim = %+v, want it due at once and as it was", got)
	}
}

func TestReturnToApprovalTakesActionsOffTheSchedule(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectKeyed, 2)
	items := fx.Claim(2)
	stale := items[1].Lease
	stale.Fence--

	var returned []outbox.Lease
	fx.As(postgres.Worker(), func(tx pgx.Tx) (err error) {
		returned, err = outbox.ReturnToApproval(t.Context(), tx, []outbox.ApprovalReturn{
			{Lease: items[0].Lease, ToolDigest: []byte{1}, Note: "policy changed", Needed: 1, Wait: time.Minute},
			{Lease: stale, ToolDigest: []byte{1}, Note: "policy changed", Needed: 1, Wait: time.Minute},
		})
		return err
	})

	if len(returned) != 1 || returned[0].Action != items[0].Action {
		t.Errorf("ReturnToApproval = %v, want only %s", returned, items[0].Action)
	}
	v := fx.View(items[0].Action)
	if v.Phase != envelope.PhasePending || v.Envelope.Approval != envelope.ApprovalRequired || v.ApprovalExpiresAt == nil || v.DecisionNote != "policy changed" {
		t.Errorf("view = %s, %s, %q, want it to wait for a person", v.Phase, v.Envelope.Approval, v.DecisionNote)
	}
	if !fx.Scheduled(items[1].Action) {
		t.Error("ReturnToApproval with an old fence took the envelope off the schedule")
	}
}

// now() is the start of a transaction. One that began early and waited for a
// lock must still write the later row.
func TestAttemptsAreInTheOrderOfTheLocks(t *testing.T) {
	t.Parallel()
	fx := newSharedFixture(t)
	fx.Queue(envelope.EffectKeyed, 1)
	it := fx.Claim(1)[0]

	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error {
		fx.Settle(outboxtest.Again(it, time.Minute))
		return outbox.Undo(t.Context(), tx, fx.Tenant, it.Action, "ada")
	})

	if got := fx.View(it.Action).Envelope.Result.Status; got != envelope.StatusSkipped {
		t.Errorf("status after an undo that began before the retry was settled = %s, want skipped", got)
	}
}

func TestSettlingTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectKeyed, 2)
	items := fx.Claim(2)
	batch := []outbox.Settlement{outboxtest.Sent(items[0]), outboxtest.Again(items[1], 0)}
	fx.Settle(batch...)

	// The answer to the first commit was lost, so the worker does it again.
	settled := fx.Settle(batch...)

	if len(settled) != 0 || len(fx.Attempts(items[0].Action)) != 1 || len(fx.Attempts(items[1].Action)) != 1 {
		t.Errorf("Settle again settled %v, want nothing and one attempt each", settled)
	}
}

func TestALeaseOfBeforeAReplaySettlesNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectKeyed, 1)
	slow := fx.Claim(1)[0]
	fx.Expire(slow.Action)
	fx.Settle(outboxtest.Failed(fx.Claim(1)[0]))
	if _, err := fx.Replay(false, slow.Action); err != nil {
		t.Fatal(err)
	}
	fx.Claim(1)

	settled := fx.Settle(outboxtest.Sent(slow))

	if len(settled) != 0 || !fx.Scheduled(slow.Action) {
		t.Errorf("Settle with a lease of before the replay settled %v", settled)
	}
}

func TestSettleOfNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)

	fx.As(postgres.Worker(), func(tx pgx.Tx) error {
		settled, err := outbox.Settle(t.Context(), tx, outbox.Mark{}, "w1", nil)
		if len(settled) != 0 {
			t.Errorf("Settle(nothing) = %v", settled)
		}
		return err
	})
}
