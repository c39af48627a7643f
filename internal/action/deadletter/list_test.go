package deadletter_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// deadLetters ends n envelopes of class once: refused, or unknown.
func (fx fixture) deadLetters(n int, reason outbox.Reason) []envelope.ActionID {
	fx.t.Helper()
	fx.queue(envelope.EffectOnce, n)
	items := fx.claim(n)
	for _, it := range items {
		s := failed(it)
		if reason == outbox.Unknown {
			s = outbox.WorkerLost(it)
		}
		s.DeadLetter = reason
		fx.settle(s)
	}
	return actionsOf(items)
}

func TestReplayGivesNewAttemptsUnderTheOldKey(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.deadLetters(1, outbox.Exhausted)[0]

	replayed, err := fx.replay(false, id, envelope.NewActionID())

	if err != nil || !slices.Equal(replayed, []envelope.ActionID{id}) {
		t.Fatalf("Replay = %v, %v, want %s", replayed, err, id)
	}
	if got := fx.letters(deadletter.Filter{}); len(got) != 0 {
		t.Errorf("%d dead letters are left, want none", len(got))
	}
	if v := fx.view(id); v.Phase != envelope.PhaseApproved || v.Envelope.Result.Status != envelope.StatusPending {
		t.Errorf("replayed it is %s, %s", v.Phase, v.Envelope.Result.Status)
	}
	items := fx.claim(1)
	// The action's id is the key that the source sees, and it stays.
	if len(items) != 1 || items[0].Action != id || items[0].Attempt != 1 || items[0].MaxAttempts != 4 {
		t.Fatalf("Claim = %+v, want the same envelope with three more attempts", items)
	}
	fx.settle(sent(items[0]))
	if got := fx.ledger(id); len(got) != 2 || got[1].Attempt != 2 {
		t.Errorf("ledger = %+v, want attempts 1 and 2", got)
	}
}

func TestReplayOfAnUnknownNeedsAWord(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	unknown, refused := fx.deadLetters(1, outbox.Unknown)[0], fx.deadLetters(1, outbox.Refused)[0]

	_, err := fx.replay(false, refused, unknown)

	if !errors.Is(err, fault.Conflict) {
		t.Errorf("Replay without doubling = %v, want fault.Conflict", err)
	}
	if got := fx.letters(deadletter.Filter{}); len(got) != 2 {
		t.Errorf("%d dead letters are left after a refused replay, want 2", len(got))
	}
	if got, err := fx.replay(true, refused, unknown); err != nil || len(got) != 2 {
		t.Errorf("Replay with doubling = %v, %v, want both", got, err)
	}
}

func TestOfTwoReplaysOneTakesEachLetter(t *testing.T) {
	t.Parallel()
	const letters = 40
	fx := newSharedFixture(t)
	ids := fx.deadLetters(letters, outbox.Refused)

	var got [2][]envelope.ActionID
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for _, id := range ids {
				replayed, err := fx.replay(false, id)
				if err != nil {
					t.Errorf("Replay = %v", err)
				}
				got[i] = append(got[i], replayed...)
			}
		})
	}
	wg.Wait()

	all := texts(slices.Concat(got[0], got[1]))
	slices.Sort(all)
	want := texts(ids)
	slices.Sort(want)
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
	if n := len(fx.claim(2 * letters)); n != letters {
		t.Errorf("%d envelopes are on the schedule, want %d", n, letters)
	}
}

func TestDiscardKeepsTheLedger(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.deadLetters(1, outbox.Refused)[0]
	discard := func() (gone []envelope.ActionID) {
		fx.as(postgres.API(fx.tenant), func(tx pgx.Tx) error {
			done, err := deadletter.Discard(t.Context(), tx, fx.tenant, deadletter.BulkRequest{IDs: []envelope.ActionID{id}, Limit: 1, Actor: "ada", Note: "not needed"})
			gone = done.Actions
			return err
		})
		return gone
	}

	first, second := discard(), discard()

	if len(first) != 1 || len(second) != 0 {
		t.Errorf("Discard = %v, then %v, want it once", first, second)
	}
	if len(fx.letters(deadletter.Filter{})) != 0 || len(fx.ledger(id)) != 1 || fx.view(id).Phase != envelope.PhaseFailed {
		t.Error("after Discard want no letter, the ledger as it was and a failed envelope")
	}
	if got, err := fx.replay(false, id); err != nil || len(got) != 0 {
		t.Errorf("Replay of a discarded letter = %v, %v, want nothing", got, err)
	}
}

func TestLettersAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	refused, unknown := fx.deadLetters(2, outbox.Refused), fx.deadLetters(1, outbox.Unknown)
	fx.exec("UPDATE actions SET tool_name = 'other', source_id = 'crm' WHERE action_id = $1", refused[0].String())
	fx.exec("UPDATE dead_letters SET created_at = '2026-03-01T12:00:00Z' WHERE action_id = $1", refused[1].String())
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := func(f deadletter.Filter) (ids []envelope.ActionID) {
		for _, l := range fx.letters(f) {
			ids = append(ids, l.Action)
		}
		return ids
	}
	newest := slices.Concat(refused, unknown)
	slices.SortFunc(newest, func(a, b envelope.ActionID) int { return -slices.Compare(a[:], b[:]) })

	for name, test := range map[string]struct {
		filter deadletter.Filter
		want   []envelope.ActionID
	}{
		"all, newest first": {deadletter.Filter{}, newest},
		"by reason":         {deadletter.Filter{Reason: outbox.Unknown}, unknown},
		"by tool":           {deadletter.Filter{Tool: "other"}, refused[:1]},
		"by source":         {deadletter.Filter{Source: "crm"}, refused[:1]},
		"by code":           {deadletter.Filter{Code: "worker_lost"}, unknown},
		"made since":        {deadletter.Filter{Since: noon.Add(time.Second)}, slices.DeleteFunc(slices.Clone(newest), func(id envelope.ActionID) bool { return id == refused[1] })},
		"made from then on": {deadletter.Filter{Since: noon, Until: noon.Add(time.Second)}, refused[1:]},
		"made before":       {deadletter.Filter{Until: noon}, nil},
		"after a page":      {deadletter.Filter{Before: newest[0]}, newest[1:]},
	} {
		if diff := cmp.Diff(texts(test.want), texts(of(test.filter))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		test.filter.Before = envelope.ActionID{} // a matter of pages alone
		chosen := fx.dryRun(deadletter.BulkRequest{Filter: test.filter})
		if name != "after a page" && (len(chosen.Actions) != len(test.want) || chosen.Remaining != len(test.want)) {
			t.Errorf("%s: a lot chooses %d and counts %d, want %d", name, len(chosen.Actions), chosen.Remaining, len(test.want))
		}
	}
}

func TestLetterOf(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.deadLetters(1, outbox.Unknown)[0]
	letterOf := func(id envelope.ActionID) (l deadletter.Entry, err error) {
		err = postgres.InTx(t.Context(), fx.db, postgres.API(fx.tenant), func(tx pgx.Tx) (err error) {
			l, err = deadletter.Get(t.Context(), tx, fx.tenant, id)
			return err
		})
		return l, err
	}

	got, err := letterOf(id)
	_, missing := letterOf(envelope.NewActionID())

	want := deadletter.Entry{Action: id, Source: "src", Tool: "tool", Reason: outbox.Unknown, Attempt: 1, Code: "worker_lost"}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(deadletter.Entry{}, "CreatedAt", "Message")); diff != "" || err != nil {
		t.Errorf("LetterOf (-want +got), %v:\n%s", err, diff)
	}
	if !errors.Is(missing, fault.NotFound) {
		t.Errorf("LetterOf(no letter) = %v, want fault.NotFound", missing)
	}
}

func TestASecondLetterReplacesTheFirst(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.deadLetters(1, outbox.Refused)[0]
	if _, err := fx.replay(false, id); err != nil {
		t.Fatal(err)
	}
	it := fx.claim(1)[0]
	fx.start(it.Lease)
	fx.settle(outbox.WorkerLost(it))

	letters := fx.letters(deadletter.Filter{})

	if len(letters) != 1 || letters[0].Reason != outbox.Unknown || letters[0].Attempt != 2 {
		t.Errorf("letters = %+v, want one: unknown after attempt 2", letters)
	}
}
