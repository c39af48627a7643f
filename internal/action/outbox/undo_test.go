package outbox_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

func TestUndo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arrange func(fx fixture) envelope.ActionID
		want    error
	}{
		"takes what waits for its turn": {func(fx fixture) envelope.ActionID {
			return fx.Queue(envelope.EffectKeyed, 1)[0]
		}, nil},
		"takes what waits for a person": {func(fx fixture) envelope.ActionID {
			return fx.Propose(fx.Bucket, envelope.EffectKeyed, envelope.ApprovalRequired, 1)[0]
		}, nil},
		"takes a leased call of class once that was not started": {func(fx fixture) envelope.ActionID {
			fx.Queue(envelope.EffectOnce, 1)
			return fx.Claim(1)[0].Action
		}, nil},
		"takes what waits for another attempt": {func(fx fixture) envelope.ActionID {
			fx.Queue(envelope.EffectKeyed, 1)
			it := fx.Claim(1)[0]
			fx.Settle(outboxtest.Again(it, 0))
			return it.Action
		}, nil},
		"is too late for what waits after an unanswered attempt": {func(fx fixture) envelope.ActionID {
			fx.Queue(envelope.EffectKeyed, 1)
			it := fx.Claim(1)[0]
			s := outboxtest.Again(it, 0)
			s.Unsure = true
			fx.Settle(s)
			return it.Action
		}, fault.Conflict},
		"is too late for an unmarked call whose lease ran out": {func(fx fixture) envelope.ActionID {
			fx.Queue(envelope.EffectKeyed, 1)
			id := fx.Claim(1)[0].Action
			fx.Expire(id)
			return id
		}, fault.Conflict},
		"is too late for a leased call that is not marked": {func(fx fixture) envelope.ActionID {
			fx.Queue(envelope.EffectKeyed, 1)
			return fx.Claim(1)[0].Action
		}, fault.Conflict},
		"is too late for a started call": {func(fx fixture) envelope.ActionID {
			fx.Queue(envelope.EffectOnce, 1)
			it := fx.Claim(1)[0]
			fx.Start(it.Lease)
			return it.Action
		}, fault.Conflict},
		"is too late for a started call whose lease ran out": {func(fx fixture) envelope.ActionID {
			fx.Queue(envelope.EffectOnce, 1)
			it := fx.Claim(1)[0]
			fx.Start(it.Lease)
			fx.Expire(it.Action)
			return it.Action
		}, fault.Conflict},
		"is too late for what was sent": {func(fx fixture) envelope.ActionID {
			fx.Queue(envelope.EffectKeyed, 1)
			it := fx.Claim(1)[0]
			fx.Settle(outboxtest.Sent(it))
			return it.Action
		}, fault.Conflict},
		"does not know what is not there": {func(fixture) envelope.ActionID { return envelope.NewActionID() }, fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			id := test.arrange(fx)

			err := fx.Undo(id)

			if !errors.Is(err, test.want) {
				t.Fatalf("Undo = %v, want %v", err, test.want)
			}
			if test.want != nil {
				return
			}
			if v := fx.View(id); v.Envelope.Result.Status != envelope.StatusSkipped || v.Envelope.Result.Error.Code != outbox.CodeUndone || fx.Scheduled(id) {
				t.Errorf("after Undo it is %s (%v), want skipped as undone", v.Envelope.Result.Status, v.Envelope.Result.Error)
			}
			if err := fx.Undo(id); !errors.Is(err, fault.Conflict) {
				t.Errorf("Undo again = %v, want fault.Conflict", err)
			}
		})
	}
}

// An undo and a claim with its start race for one envelope, many times: one of
// them has it, and never both.
func TestUndoAndStartHaveOneWinner(t *testing.T) {
	t.Parallel()
	const rounds = 150
	fx := newSharedFixture(t)

	for _, effect := range []envelope.Effect{envelope.EffectOnce, envelope.EffectKeyed} {
		ids := fx.Queue(effect, rounds)
		var undone [rounds]bool
		sends := make(map[envelope.ActionID]bool)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i, id := range ids {
				err := fx.Undo(id)
				if err != nil && !errors.Is(err, fault.Conflict) {
					t.Errorf("Undo = %v", err)
				}
				undone[i] = err == nil
			}
		})
		wg.Go(func() {
			for range rounds {
				if t.Context().Err() != nil {
					return
				}
				for _, it := range tryClaim(t, fx, 2) {
					if effect != envelope.EffectOnce || tryStart(t, fx, it.Lease) {
						sends[it.Action] = true
					}
				}
			}
		})
		wg.Wait()
		for _, it := range fx.Claim(rounds) {
			if effect != envelope.EffectOnce || len(fx.Start(it.Lease)) == 1 {
				sends[it.Action] = true
			}
		}

		for i, id := range ids {
			if undone[i] == sends[id] {
				t.Errorf("%s of class %s: undone %t, sent %t; want one of them", id, effect, undone[i], sends[id])
			}
		}
	}
}

func tryClaim(t *testing.T, fx fixture, most int) []outbox.Item {
	var items []outbox.Item
	if err := postgres.InTx(t.Context(), fx.DB, postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		items, err = outbox.Claim(t.Context(), tx, outbox.Mark{}, []outbox.ClaimRequest{{Bucket: fx.Bucket, Quota: most}}, outboxtest.Term)
		return err
	}); err != nil {
		t.Errorf("Claim = %v", err)
	}
	return items
}

func tryStart(t *testing.T, fx fixture, lease outbox.Lease) bool {
	var started map[outbox.Lease]bool
	if err := postgres.InTx(t.Context(), fx.DB, postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		started, err = outbox.Start(t.Context(), tx, outbox.Mark{}, []outbox.Lease{lease}, outboxtest.Term)
		return err
	}); err != nil {
		t.Errorf("Start = %v", err)
	}
	return started[lease]
}
