package outbox_test

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
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// deadLetters ends n envelopes of class once: refused, or unknown.
func (d desk) deadLetters(n int, reason outbox.Reason) []envelope.ActionID {
	d.t.Helper()
	d.queue(envelope.EffectOnce, n)
	items := d.claim(n)
	for _, it := range items {
		s := failed(it)
		if reason == outbox.Unknown {
			s = outbox.Lose(it)
		}
		s.Letter = reason
		d.settle(s)
	}
	return actionsOf(items)
}

func TestReplayGivesNewAttemptsUnderTheOldKey(t *testing.T) {
	t.Parallel()
	d := alone(t)
	id := d.deadLetters(1, outbox.Exhausted)[0]

	replayed, err := d.replay(false, id, envelope.NewActionID())

	if err != nil || !slices.Equal(replayed, []envelope.ActionID{id}) {
		t.Fatalf("Replay = %v, %v, want %s", replayed, err, id)
	}
	if got := d.letters(outbox.LetterFilter{}); len(got) != 0 {
		t.Errorf("%d dead letters are left, want none", len(got))
	}
	if v := d.view(id); v.Phase != envelope.PhaseApproved || v.Envelope.Result.Status != envelope.StatusPending {
		t.Errorf("replayed it is %s, %s", v.Phase, v.Envelope.Result.Status)
	}
	items := d.claim(1)
	// The action's id is the key that the source sees, and it stays.
	if len(items) != 1 || items[0].Action != id || items[0].Attempt != 1 || items[0].MaxAttempts != 4 {
		t.Fatalf("Claim = %+v, want the same envelope with three more attempts", items)
	}
	d.settle(sent(items[0]))
	if got := d.ledger(id); len(got) != 2 || got[1].Attempt != 2 {
		t.Errorf("ledger = %+v, want attempts 1 and 2", got)
	}
}

func TestReplayOfAnUnknownNeedsAWord(t *testing.T) {
	t.Parallel()
	d := alone(t)
	unknown, refused := d.deadLetters(1, outbox.Unknown)[0], d.deadLetters(1, outbox.Refused)[0]

	_, err := d.replay(false, refused, unknown)

	if !errors.Is(err, fault.Conflict) {
		t.Errorf("Replay without doubling = %v, want fault.Conflict", err)
	}
	if got := d.letters(outbox.LetterFilter{}); len(got) != 2 {
		t.Errorf("%d dead letters are left after a refused replay, want 2", len(got))
	}
	if got, err := d.replay(true, refused, unknown); err != nil || len(got) != 2 {
		t.Errorf("Replay with doubling = %v, %v, want both", got, err)
	}
}

func TestOfTwoReplaysOneTakesEachLetter(t *testing.T) {
	t.Parallel()
	const letters = 40
	d := shared(t)
	ids := d.deadLetters(letters, outbox.Refused)

	var got [2][]envelope.ActionID
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for _, id := range ids {
				replayed, err := d.replay(false, id)
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
	if n := len(d.claim(2 * letters)); n != letters {
		t.Errorf("%d envelopes are on the schedule, want %d", n, letters)
	}
}

func TestDiscardKeepsTheLedger(t *testing.T) {
	t.Parallel()
	d := alone(t)
	id := d.deadLetters(1, outbox.Refused)[0]
	discard := func() (gone []envelope.ActionID) {
		d.as(postgres.API(d.tenant), func(tx pgx.Tx) error {
			done, err := outbox.Discard(t.Context(), tx, d.tenant, outbox.Lot{IDs: []envelope.ActionID{id}, Most: 1, Actor: "ada", Note: "not needed"})
			gone = done.Actions
			return err
		})
		return gone
	}

	first, second := discard(), discard()

	if len(first) != 1 || len(second) != 0 {
		t.Errorf("Discard = %v, then %v, want it once", first, second)
	}
	if len(d.letters(outbox.LetterFilter{})) != 0 || len(d.ledger(id)) != 1 || d.view(id).Phase != envelope.PhaseFailed {
		t.Error("after Discard want no letter, the ledger as it was and a failed envelope")
	}
	if got, err := d.replay(false, id); err != nil || len(got) != 0 {
		t.Errorf("Replay of a discarded letter = %v, %v, want nothing", got, err)
	}
}

func TestLettersAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	d := alone(t)
	refused, unknown := d.deadLetters(2, outbox.Refused), d.deadLetters(1, outbox.Unknown)
	d.exec("UPDATE actions SET tool_name = 'other', source_id = 'crm' WHERE action_id = $1", refused[0].String())
	d.exec("UPDATE dead_letters SET created_at = '2026-03-01T12:00:00Z' WHERE action_id = $1", refused[1].String())
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := func(f outbox.LetterFilter) (ids []envelope.ActionID) {
		for _, l := range d.letters(f) {
			ids = append(ids, l.Action)
		}
		return ids
	}
	newest := slices.Concat(refused, unknown)
	slices.SortFunc(newest, func(a, b envelope.ActionID) int { return -slices.Compare(a[:], b[:]) })

	for name, test := range map[string]struct {
		filter outbox.LetterFilter
		want   []envelope.ActionID
	}{
		"all, newest first": {outbox.LetterFilter{}, newest},
		"by reason":         {outbox.LetterFilter{Reason: outbox.Unknown}, unknown},
		"by tool":           {outbox.LetterFilter{Tool: "other"}, refused[:1]},
		"by source":         {outbox.LetterFilter{Source: "crm"}, refused[:1]},
		"by code":           {outbox.LetterFilter{Code: "worker_lost"}, unknown},
		"made since":        {outbox.LetterFilter{Since: noon.Add(time.Second)}, slices.DeleteFunc(slices.Clone(newest), func(id envelope.ActionID) bool { return id == refused[1] })},
		"made from then on": {outbox.LetterFilter{Since: noon, Until: noon.Add(time.Second)}, refused[1:]},
		"made before":       {outbox.LetterFilter{Until: noon}, nil},
		"after a page":      {outbox.LetterFilter{Before: newest[0]}, newest[1:]},
	} {
		if diff := cmp.Diff(texts(test.want), texts(of(test.filter))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		test.filter.Before = envelope.ActionID{} // a matter of pages alone
		chosen := d.dryRun(outbox.Lot{Filter: test.filter})
		if name != "after a page" && (len(chosen.Actions) != len(test.want) || chosen.Left != len(test.want)) {
			t.Errorf("%s: a lot chooses %d and counts %d, want %d", name, len(chosen.Actions), chosen.Left, len(test.want))
		}
	}
}

func TestLetterOf(t *testing.T) {
	t.Parallel()
	d := alone(t)
	id := d.deadLetters(1, outbox.Unknown)[0]
	letterOf := func(id envelope.ActionID) (l outbox.Letter, err error) {
		err = postgres.InTx(t.Context(), d.db, postgres.API(d.tenant), func(tx pgx.Tx) (err error) {
			l, err = outbox.LetterOf(t.Context(), tx, d.tenant, id)
			return err
		})
		return l, err
	}

	got, err := letterOf(id)
	_, missing := letterOf(envelope.NewActionID())

	want := outbox.Letter{Action: id, Source: "src", Tool: "tool", Reason: outbox.Unknown, Attempt: 1, Code: "worker_lost"}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(outbox.Letter{}, "At", "Message")); diff != "" || err != nil {
		t.Errorf("LetterOf (-want +got), %v:\n%s", err, diff)
	}
	if !errors.Is(missing, fault.NotFound) {
		t.Errorf("LetterOf(no letter) = %v, want fault.NotFound", missing)
	}
}

func TestASecondLetterReplacesTheFirst(t *testing.T) {
	t.Parallel()
	d := alone(t)
	id := d.deadLetters(1, outbox.Refused)[0]
	if _, err := d.replay(false, id); err != nil {
		t.Fatal(err)
	}
	it := d.claim(1)[0]
	d.start(it.Lease)
	d.settle(outbox.Lose(it))

	letters := d.letters(outbox.LetterFilter{})

	if len(letters) != 1 || letters[0].Reason != outbox.Unknown || letters[0].Attempt != 2 {
		t.Errorf("letters = %+v, want one: unknown after attempt 2", letters)
	}
}
