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
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// deadLetters ends n envelopes of class once: refused, or unknown.
func (fx fixture) EndAsDeadLetters(n int, reason outbox.Reason) []envelope.ActionID {
	fx.T.Helper()
	fx.Queue(envelope.EffectOnce, n)
	items := fx.Claim(n)
	for _, it := range items {
		s := outboxtest.Failed(it)
		if reason == outbox.Unknown {
			s = outbox.WorkerLost(it)
		}
		s.DeadLetter = reason
		fx.Settle(s)
	}
	return outboxtest.ActionsOf(items)
}

func TestReplayGivesNewAttemptsUnderTheOldKey(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.EndAsDeadLetters(1, outbox.Exhausted)[0]

	replayed, err := fx.Replay(false, id, envelope.NewActionID())

	if err != nil || !slices.Equal(replayed, []envelope.ActionID{id}) {
		t.Fatalf("Replay = %v, %v, want %s", replayed, err, id)
	}
	if got := fx.DeadLetters(deadletter.Filter{}); len(got) != 0 {
		t.Errorf("%d dead letters are left, want none", len(got))
	}
	if v := fx.View(id); v.Phase != envelope.PhaseApproved || v.Envelope.Result.Status != envelope.StatusPending {
		t.Errorf("replayed it is %s, %s", v.Phase, v.Envelope.Result.Status)
	}
	items := fx.Claim(1)
	// The action's id is the key that the source sees, and it stays.
	if len(items) != 1 || items[0].Action != id || items[0].Attempt != 1 || items[0].MaxAttempts != 4 {
		t.Fatalf("Claim = %+v, want the same envelope with three more attempts", items)
	}
	fx.Settle(outboxtest.Sent(items[0]))
	if got := fx.Attempts(id); len(got) != 2 || got[1].Attempt != 2 {
		t.Errorf("attempts = %+v, want attempts 1 and 2", got)
	}
}

func TestReplayOfAnUnknownNeedsAllowDuplicates(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	unknown, refused := fx.EndAsDeadLetters(1, outbox.Unknown)[0], fx.EndAsDeadLetters(1, outbox.Refused)[0]

	_, err := fx.Replay(false, refused, unknown)

	if !errors.Is(err, fault.Conflict) {
		t.Errorf("Replay without doubling = %v, want fault.Conflict", err)
	}
	if got := fx.DeadLetters(deadletter.Filter{}); len(got) != 2 {
		t.Errorf("%d dead letters are left after a refused replay, want 2", len(got))
	}
	if got, err := fx.Replay(true, refused, unknown); err != nil || len(got) != 2 {
		t.Errorf("Replay with doubling = %v, %v, want both", got, err)
	}
}

func TestOfTwoReplaysOneTakesEachLetter(t *testing.T) {
	t.Parallel()
	const letters = 40
	fx := newSharedFixture(t)
	ids := fx.EndAsDeadLetters(letters, outbox.Refused)

	var got [2][]envelope.ActionID
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for _, id := range ids {
				replayed, err := fx.Replay(false, id)
				if err != nil {
					t.Errorf("Replay = %v", err)
				}
				got[i] = append(got[i], replayed...)
			}
		})
	}
	wg.Wait()

	all := outboxtest.Texts(slices.Concat(got[0], got[1]))
	slices.Sort(all)
	want := outboxtest.Texts(ids)
	slices.Sort(want)
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
	if n := len(fx.Claim(2 * letters)); n != letters {
		t.Errorf("%d envelopes are on the schedule, want %d", n, letters)
	}
}

func TestDiscardKeepsTheAttempts(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.EndAsDeadLetters(1, outbox.Refused)[0]
	discard := func() (gone []envelope.ActionID) {
		fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error {
			done, err := deadletter.Discard(t.Context(), tx, fx.Tenant, deadletter.BulkRequest{IDs: []envelope.ActionID{id}, Limit: 1, Actor: "ada", Note: "not needed"})
			gone = done.ActionIDs
			return err
		})
		return gone
	}

	first, second := discard(), discard()

	if len(first) != 1 || len(second) != 0 {
		t.Errorf("Discard = %v, then %v, want it once", first, second)
	}
	if len(fx.DeadLetters(deadletter.Filter{})) != 0 || len(fx.Attempts(id)) != 1 || fx.View(id).Phase != envelope.PhaseFailed {
		t.Error("after Discard want no letter, the attempts as they were and a failed envelope")
	}
	if got, err := fx.Replay(false, id); err != nil || len(got) != 0 {
		t.Errorf("Replay of a discarded letter = %v, %v, want nothing", got, err)
	}
}

func TestLettersAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	refused, unknown := fx.EndAsDeadLetters(2, outbox.Refused), fx.EndAsDeadLetters(1, outbox.Unknown)
	fx.Exec("UPDATE actions SET tool_name = 'other', source_id = 'crm' WHERE action_id = $1", refused[0].String())
	fx.Exec("UPDATE dead_letters SET created_at = '2026-03-01T12:00:00Z' WHERE action_id = $1", refused[1].String())
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := func(f deadletter.Filter) (ids []envelope.ActionID) {
		for _, l := range fx.DeadLetters(f) {
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
		if diff := cmp.Diff(outboxtest.Texts(test.want), outboxtest.Texts(of(test.filter))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		test.filter.Before = envelope.ActionID{} // a matter of pages alone
		chosen := fx.dryRun(deadletter.BulkRequest{Filter: test.filter})
		if name != "after a page" && (len(chosen.ActionIDs) != len(test.want) || chosen.Left != len(test.want)) {
			t.Errorf("%s: a request chooses %d and counts %d, want %d", name, len(chosen.ActionIDs), chosen.Left, len(test.want))
		}
	}
}

func TestLetterOf(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.EndAsDeadLetters(1, outbox.Unknown)[0]
	letterOf := func(id envelope.ActionID) (l deadletter.Entry, err error) {
		err = postgres.InTx(t.Context(), fx.DB, postgres.API(fx.Tenant), func(tx pgx.Tx) (err error) {
			l, err = deadletter.Get(t.Context(), tx, fx.Tenant, id)
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
	id := fx.EndAsDeadLetters(1, outbox.Refused)[0]
	if _, err := fx.Replay(false, id); err != nil {
		t.Fatal(err)
	}
	it := fx.Claim(1)[0]
	fx.Start(it.Lease)
	fx.Settle(outbox.WorkerLost(it))

	letters := fx.DeadLetters(deadletter.Filter{})

	if len(letters) != 1 || letters[0].Reason != outbox.Unknown || letters[0].Attempt != 2 {
		t.Errorf("letters = %+v, want one: unknown after attempt 2", letters)
	}
}
