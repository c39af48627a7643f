package outbox_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
)

func TestSettleEndsAnEnvelope(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.queue(envelope.EffectKeyed, 2)
	items := d.claim(2)

	settled := d.settle(sent(items[0]), failed(items[1]))

	if diff := cmp.Diff([]outbox.Lease{items[0].Lease, items[1].Lease}, settled); diff != "" {
		t.Errorf("Settle (-want +got):\n%s", diff)
	}
	for i, want := range []outbox.Attempt{
		{Attempt: 1, Status: envelope.StatusSent, Result: []byte(`{"ok":true}`), ProviderID: "p1", Worker: "w1"},
		{Attempt: 1, Status: envelope.StatusFailed, Code: "rejected", Message: "no", Worker: "w1"},
	} {
		id := items[i].Action
		if d.scheduled(id) {
			t.Errorf("%s is still on the schedule", want.Status)
		}
		if diff := cmp.Diff([]outbox.Attempt{want}, d.ledger(id), cmpopts.IgnoreFields(outbox.Attempt{}, "StartedAt", "FinishedAt"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	}
	if took := took(d.ledger(items[0].Action)[0]); took < 900*time.Millisecond || took > 1100*time.Millisecond {
		t.Errorf("the ledger says that it took %v, want 1s", took)
	}
	letters := d.letters(outbox.LetterFilter{})
	want := []outbox.Letter{{Action: items[1].Action, Source: "src", Tool: "tool", Reason: outbox.Refused, Attempt: 1, Code: "rejected", Message: "no"}}
	if diff := cmp.Diff(want, letters, cmpopts.IgnoreFields(outbox.Letter{}, "At")); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

func took(a outbox.Attempt) time.Duration { return a.FinishedAt.Sub(*a.StartedAt) }

func TestSettleWithAnOldFenceWritesNothing(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.queue(envelope.EffectKeyed, 3)
	old := d.claim(3)
	d.expire(actionsOf(old)...)
	d.claim(3)

	settled := d.settle(sent(old[0]), failed(old[1]), again(old[2], 0))

	if len(settled) != 0 {
		t.Errorf("Settle settled %v, want nothing", settled)
	}
	for _, it := range old {
		if !d.scheduled(it.Action) || len(d.ledger(it.Action)) != 0 || len(d.letters(outbox.LetterFilter{})) != 0 {
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
			d := alone(t)
			d.queue(envelope.EffectKeyed, 1)
			old := d.claim(1)[0]
			d.expire(old.Action)
			now := d.claim(1)[0]

			settled := d.settle(back(old), back(now))

			if diff := cmp.Diff([]outbox.Lease{now.Lease}, settled); diff != "" {
				t.Errorf("Settle (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettleBackKeepsTheLedgerAndWaits(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.queue(envelope.EffectOnce, 1)
	it := d.claim(1)[0]
	d.start(it.Lease)

	d.settle(again(it, time.Hour))

	wait := one[float64](d, "SELECT extract(epoch FROM next_attempt_at - now())::float8 FROM outbox WHERE action_id = $1", it.Action.String())
	free := one[bool](d, "SELECT lease_until IS NULL AND status = 'pending' AND attempt = 1 FROM outbox WHERE action_id = $1", it.Action.String())
	if wait < 3590 || wait > 3610 || !free {
		t.Errorf("after a retry it waits %vs and is free and pending: %t; want an hour and true", wait, free)
	}
	want := []outbox.Attempt{{Attempt: 1, Status: envelope.StatusPending, Code: "unreachable", Message: "later", Worker: "w1"}}
	if diff := cmp.Diff(want, d.ledger(it.Action), cmpopts.IgnoreFields(outbox.Attempt{}, "StartedAt", "FinishedAt"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if got := d.claim(1); len(got) != 0 {
		t.Errorf("Claim before its time has %d items", len(got))
	}
	d.hasten(it.Action)
	if got := d.claim(1); len(got) != 1 || got[0].Attempt != 1 || got[0].Lost != 0 || got[0].Fence <= it.Fence {
		t.Errorf("Claim after its time = %+v, want the second attempt", got)
	}
}

func TestDeferredLeavesNoRowAndNoAttempt(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.queue(envelope.EffectOnce, 1)
	it := d.claim(1)[0]
	d.start(it.Lease)

	d.settle(outbox.GiveBack(it))

	if got := d.ledger(it.Action); len(got) != 0 {
		t.Errorf("the ledger has %d rows, want none", len(got))
	}
	if got := d.claim(1); len(got) != 1 || got[0].Attempt != 0 || got[0].Sending || got[0].Lost != 0 {
		t.Errorf("Claim = %+v, want it due at once and as it was", got)
	}
}

func TestParkTakesWhatIsHeldOffTheSchedule(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.queue(envelope.EffectKeyed, 2)
	items := d.claim(2)
	stale := items[1].Lease
	stale.Fence--

	var parked []outbox.Lease
	d.as(postgres.Worker(), func(tx pgx.Tx) (err error) {
		parked, err = outbox.Park(t.Context(), tx, []outbox.Parking{
			{Lease: items[0].Lease, ToolDigest: []byte{1}, Note: "policy changed", Needed: 1, Wait: time.Minute},
			{Lease: stale, ToolDigest: []byte{1}, Note: "policy changed", Needed: 1, Wait: time.Minute},
		})
		return err
	})

	if len(parked) != 1 || parked[0].Action != items[0].Action {
		t.Errorf("Park = %v, want %s alone", parked, items[0].Action)
	}
	v := d.view(items[0].Action)
	if v.Phase != envelope.PhasePending || v.Envelope.Approval != envelope.ApprovalRequired || v.ApprovalExpiresAt == nil || v.DecisionNote != "policy changed" {
		t.Errorf("parked view = %s, %s, %q, want it to wait for a person", v.Phase, v.Envelope.Approval, v.DecisionNote)
	}
	if !d.scheduled(items[1].Action) {
		t.Error("Park with an old fence took the envelope off the schedule")
	}
}

// The clock of a transaction is that of its begin. One that began early and
// waited for a lock must still write the later row.
func TestTheLedgerIsInTheOrderOfTheLocks(t *testing.T) {
	t.Parallel()
	d := shared(t)
	d.queue(envelope.EffectKeyed, 1)
	it := d.claim(1)[0]

	d.as(postgres.API(d.tenant), func(tx pgx.Tx) error {
		d.settle(again(it, time.Minute))
		return outbox.Undo(t.Context(), tx, d.tenant, it.Action, "ada")
	})

	if got := d.view(it.Action).Envelope.Result.Status; got != envelope.StatusSkipped {
		t.Errorf("status after an undo that began before the retry was settled = %s, want skipped", got)
	}
}

func TestSettlingTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.queue(envelope.EffectKeyed, 2)
	items := d.claim(2)
	batch := []outbox.Settlement{sent(items[0]), again(items[1], 0)}
	d.settle(batch...)

	// The answer to the first commit was lost, so the worker does it again.
	settled := d.settle(batch...)

	if len(settled) != 0 || len(d.ledger(items[0].Action)) != 1 || len(d.ledger(items[1].Action)) != 1 {
		t.Errorf("Settle again settled %v, want nothing and one row each in the ledger", settled)
	}
}

func TestALeaseOfBeforeAReplaySettlesNothing(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.queue(envelope.EffectKeyed, 1)
	slow := d.claim(1)[0]
	d.expire(slow.Action)
	d.settle(failed(d.claim(1)[0]))
	if _, err := d.replay(false, slow.Action); err != nil {
		t.Fatal(err)
	}
	d.claim(1)

	settled := d.settle(sent(slow))

	if len(settled) != 0 || !d.scheduled(slow.Action) {
		t.Errorf("Settle with a lease of before the replay settled %v", settled)
	}
}

func TestSettleOfNothing(t *testing.T) {
	t.Parallel()
	d := alone(t)

	d.as(postgres.Worker(), func(tx pgx.Tx) error {
		settled, err := outbox.Settle(t.Context(), tx, "w1", nil)
		if len(settled) != 0 {
			t.Errorf("Settle(nothing) = %v", settled)
		}
		return err
	})
}
