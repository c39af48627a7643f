package outbox_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
)

func TestSettleEndsAnEnvelope(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.queue(envelope.EffectKeyed, 2)
	items := fx.claim(2)

	settled := fx.settle(sent(items[0]), failed(items[1]))

	if diff := cmp.Diff([]outbox.Lease{items[0].Lease, items[1].Lease}, settled); diff != "" {
		t.Errorf("Settle (-want +got):\n%s", diff)
	}
	for i, want := range []outbox.Attempt{
		{Attempt: 1, Status: envelope.StatusSent, Result: []byte(`{"ok":true}`), ProviderID: "p1", Worker: "w1"},
		{Attempt: 1, Status: envelope.StatusFailed, Code: "rejected", Message: "no", Worker: "w1"},
	} {
		id := items[i].Action
		if fx.scheduled(id) {
			t.Errorf("%s is still on the schedule", want.Status)
		}
		if diff := cmp.Diff([]outbox.Attempt{want}, fx.ledger(id), cmpopts.IgnoreFields(outbox.Attempt{}, "StartedAt", "FinishedAt"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	}
	if took := took(fx.ledger(items[0].Action)[0]); took < 900*time.Millisecond || took > 1100*time.Millisecond {
		t.Errorf("the ledger says that it took %v, want 1s", took)
	}
	letters := fx.letters(deadletter.Filter{})
	want := []deadletter.Entry{{Action: items[1].Action, Source: "src", Tool: "tool", Reason: outbox.Refused, Attempt: 1, Code: "rejected", Message: "no"}}
	if diff := cmp.Diff(want, letters, cmpopts.IgnoreFields(deadletter.Entry{}, "CreatedAt")); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

func took(a outbox.Attempt) time.Duration { return a.FinishedAt.Sub(*a.StartedAt) }

func TestSettleWithAnOldFenceWritesNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.queue(envelope.EffectKeyed, 3)
	old := fx.claim(3)
	fx.expire(actionsOf(old)...)
	fx.claim(3)

	settled := fx.settle(sent(old[0]), failed(old[1]), again(old[2], 0))

	if len(settled) != 0 {
		t.Errorf("Settle settled %v, want nothing", settled)
	}
	for _, it := range old {
		if !fx.scheduled(it.Action) || len(fx.ledger(it.Action)) != 0 || len(fx.letters(deadletter.Filter{})) != 0 {
			t.Errorf("a late settlement of %s left a trace", it.Action)
		}
	}
}

func TestSettleTellsAnOldLeaseFromANewOneInOneBatch(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(outbox.Item) outbox.Settlement{
		"ended":     sent,
		"goes back": func(it outbox.Item) outbox.Settlement { return again(it, time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			fx.queue(envelope.EffectKeyed, 1)
			old := fx.claim(1)[0]
			fx.expire(old.Action)
			now := fx.claim(1)[0]

			settled := fx.settle(back(old), back(now))

			if diff := cmp.Diff([]outbox.Lease{now.Lease}, settled); diff != "" {
				t.Errorf("Settle (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettleBackKeepsTheLedgerAndWaits(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.queue(envelope.EffectOnce, 1)
	it := fx.claim(1)[0]
	fx.start(it.Lease)

	fx.settle(again(it, time.Hour))

	wait := one[float64](fx, "SELECT extract(epoch FROM next_attempt_at - now())::float8 FROM outbox WHERE action_id = $1", it.Action.String())
	free := one[bool](fx, "SELECT lease_until IS NULL AND status = 'pending' AND attempt = 1 FROM outbox WHERE action_id = $1", it.Action.String())
	if wait < 3590 || wait > 3610 || !free {
		t.Errorf("after a retry it waits %vs and is free and pending: %t; want an hour and true", wait, free)
	}
	want := []outbox.Attempt{{Attempt: 1, Status: envelope.StatusPending, Code: "unreachable", Message: "later", Worker: "w1"}}
	if diff := cmp.Diff(want, fx.ledger(it.Action), cmpopts.IgnoreFields(outbox.Attempt{}, "StartedAt", "FinishedAt"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if got := fx.claim(1); len(got) != 0 {
		t.Errorf("Claim before its time has %d items", len(got))
	}
	fx.hasten(it.Action)
	if got := fx.claim(1); len(got) != 1 || got[0].Attempt != 1 || got[0].LeasesLost != 0 || got[0].Fence <= it.Fence {
		t.Errorf("Claim after its time = %+v, want the second attempt", got)
	}
}

func TestDeferredLeavesNoRowAndNoAttempt(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.queue(envelope.EffectOnce, 1)
	it := fx.claim(1)[0]
	fx.start(it.Lease)

	fx.settle(outbox.Release(it))

	if got := fx.ledger(it.Action); len(got) != 0 {
		t.Errorf("the ledger has %d rows, want none", len(got))
	}
	if got := fx.claim(1); len(got) != 1 || got[0].Attempt != 0 || got[0].Sending || got[0].LeasesLost != 0 {
		t.Errorf("Claim = %+v, want it due at once and as it was", got)
	}
}

func TestParkTakesWhatIsHeldOffTheSchedule(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.queue(envelope.EffectKeyed, 2)
	items := fx.claim(2)
	stale := items[1].Lease
	stale.Fence--

	var parked []outbox.Lease
	fx.as(postgres.Worker(), func(tx pgx.Tx) (err error) {
		parked, err = outbox.ReturnToApproval(t.Context(), tx, []outbox.ApprovalReturn{
			{Lease: items[0].Lease, ToolDigest: []byte{1}, Note: "policy changed", Needed: 1, Wait: time.Minute},
			{Lease: stale, ToolDigest: []byte{1}, Note: "policy changed", Needed: 1, Wait: time.Minute},
		})
		return err
	})

	if len(parked) != 1 || parked[0].Action != items[0].Action {
		t.Errorf("Park = %v, want %s alone", parked, items[0].Action)
	}
	v := fx.view(items[0].Action)
	if v.Phase != envelope.PhasePending || v.Envelope.Approval != envelope.ApprovalRequired || v.ApprovalExpiresAt == nil || v.DecisionNote != "policy changed" {
		t.Errorf("parked view = %s, %s, %q, want it to wait for a person", v.Phase, v.Envelope.Approval, v.DecisionNote)
	}
	if !fx.scheduled(items[1].Action) {
		t.Error("Park with an old fence took the envelope off the schedule")
	}
}

// The clock of a transaction is that of its begin. One that began early and
// waited for a lock must still write the later row.
func TestTheLedgerIsInTheOrderOfTheLocks(t *testing.T) {
	t.Parallel()
	fx := newSharedFixture(t)
	fx.queue(envelope.EffectKeyed, 1)
	it := fx.claim(1)[0]

	fx.as(postgres.API(fx.tenant), func(tx pgx.Tx) error {
		fx.settle(again(it, time.Minute))
		return outbox.Undo(t.Context(), tx, fx.tenant, it.Action, "ada")
	})

	if got := fx.view(it.Action).Envelope.Result.Status; got != envelope.StatusSkipped {
		t.Errorf("status after an undo that began before the retry was settled = %s, want skipped", got)
	}
}

func TestSettlingTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.queue(envelope.EffectKeyed, 2)
	items := fx.claim(2)
	batch := []outbox.Settlement{sent(items[0]), again(items[1], 0)}
	fx.settle(batch...)

	// The answer to the first commit was lost, so the worker does it again.
	settled := fx.settle(batch...)

	if len(settled) != 0 || len(fx.ledger(items[0].Action)) != 1 || len(fx.ledger(items[1].Action)) != 1 {
		t.Errorf("Settle again settled %v, want nothing and one row each in the ledger", settled)
	}
}

func TestALeaseOfBeforeAReplaySettlesNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.queue(envelope.EffectKeyed, 1)
	slow := fx.claim(1)[0]
	fx.expire(slow.Action)
	fx.settle(failed(fx.claim(1)[0]))
	if _, err := fx.replay(false, slow.Action); err != nil {
		t.Fatal(err)
	}
	fx.claim(1)

	settled := fx.settle(sent(slow))

	if len(settled) != 0 || !fx.scheduled(slow.Action) {
		t.Errorf("Settle with a lease of before the replay settled %v", settled)
	}
}

func TestSettleOfNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)

	fx.as(postgres.Worker(), func(tx pgx.Tx) error {
		settled, err := outbox.Settle(t.Context(), tx, "w1", nil)
		if len(settled) != 0 {
			t.Errorf("Settle(nothing) = %v", settled)
		}
		return err
	})
}
