package outbox_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// replayLot replays a lot, all of whose letters may be doubled.
func (d desk) replayLot(lot outbox.Lot, perSecond float64) outbox.LotDone {
	d.t.Helper()
	var done outbox.LotDone
	lot.Actor = "ada"
	d.as(postgres.API(d.tenant), func(tx pgx.Tx) (err error) {
		done, err = outbox.Replay(d.t.Context(), tx, d.tenant, lot, outbox.Pace{Doubling: true, PerSecond: perSecond})
		return err
	})
	return done
}

func (d desk) dryRun(lot outbox.Lot) outbox.LotDone {
	d.t.Helper()
	lot.DryRun, lot.Most = true, 100
	return d.replayLot(lot, 0)
}

func (d desk) resolve(id envelope.ActionID, r outbox.Resolution) error {
	r.Actor = "ada"
	return postgres.InTx(d.t.Context(), d.db, postgres.API(d.tenant), func(tx pgx.Tx) error {
		return outbox.Resolve(d.t.Context(), tx, d.tenant, id, r)
	})
}

// told returns the last event, which has one item.
func (d desk) told() (e audit.Event) {
	d.t.Helper()
	d.as(postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(d.t.Context(), "SELECT kind, actor, items FROM events WHERE tenant_id = $1 ORDER BY event_id DESC LIMIT 1", d.tenant.String()).
			Scan(&e.Kind, &e.Actor, &e.Items)
	})
	return e
}

// places returns when envelopes are due, counted from the first of them.
func (d desk) places(ids []envelope.ActionID) []time.Duration {
	d.t.Helper()
	var at []time.Time
	d.as(postgres.Admin(), func(tx pgx.Tx) error {
		rows, err := tx.Query(d.t.Context(), "SELECT next_attempt_at FROM outbox WHERE action_id = ANY ($1::uuid[]) ORDER BY action_id", texts(ids))
		if err != nil {
			return err
		}
		at, err = pgx.CollectRows(rows, pgx.RowTo[time.Time])
		return err
	})
	all := make([]time.Duration, len(at))
	for i := range at {
		all[i] = at[i].Sub(at[0]).Round(time.Millisecond)
	}
	return all
}

func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	d := alone(t)
	refused, unknown := d.deadLetters(3, outbox.Refused), d.deadLetters(2, outbox.Unknown)
	for name, test := range map[string]struct {
		lot  outbox.Lot
		pace outbox.Pace
		want outbox.LotDone
	}{
		"of everything": {outbox.Lot{Most: 2}, outbox.Pace{}, outbox.LotDone{Actions: refused[:2], Left: 3, LeftOut: 2}},
		"of the unknown, too": {
			outbox.Lot{Most: 9}, outbox.Pace{Doubling: true}, outbox.LotDone{Actions: slices.Concat(refused, unknown), Left: 5},
		},
		"of some by id": {
			outbox.Lot{IDs: []envelope.ActionID{unknown[0], refused[1], envelope.NewActionID()}, Most: 9},
			outbox.Pace{}, outbox.LotDone{Actions: refused[1:2], Left: 1, LeftOut: 1},
		},
		"of none by id": {outbox.Lot{IDs: []envelope.ActionID{}, Most: 9}, outbox.Pace{}, outbox.LotDone{Actions: []envelope.ActionID{}}},
	} {
		var done outbox.LotDone
		test.lot.DryRun = true
		d.as(postgres.API(d.tenant), func(tx pgx.Tx) (err error) {
			done, err = outbox.Replay(t.Context(), tx, d.tenant, test.lot, test.pace)
			return err
		})

		done.Tallies, done.AsOf = nil, time.Time{}
		if diff := cmp.Diff(test.want, done); diff != "" {
			t.Errorf("a dry run %s (-want +got):\n%s", name, diff)
		}
	}
	want := []outbox.Tally{
		{Source: "src", Tool: "tool", Reason: outbox.Refused, Letters: 3}, {Source: "src", Tool: "tool", Reason: outbox.Unknown, Letters: 2},
	}
	if diff := cmp.Diff(want, d.dryRun(outbox.Lot{}).Tallies); diff != "" {
		t.Errorf("tallies (-want +got):\n%s", diff)
	}
	if n := len(d.letters(outbox.LetterFilter{})); n != 5 {
		t.Errorf("%d letters are left, want all 5", n)
	}
}

func TestALotTakesTheOldestFirst(t *testing.T) {
	t.Parallel()
	d := alone(t)
	ids := d.deadLetters(5, outbox.Refused)

	first := d.replayLot(outbox.Lot{Most: 2}, 0)
	second := d.replayLot(outbox.Lot{Most: 2}, 0)
	third := d.replayLot(outbox.Lot{Most: 2}, 0)

	got := texts(slices.Concat(first.Actions, second.Actions, third.Actions))
	if diff := cmp.Diff(texts(ids), got); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
	if first.Left != 3 || second.Left != 1 || third.Left != 0 {
		t.Errorf("left are %d, %d and %d, want 3, 1 and 0", first.Left, second.Left, third.Left)
	}
}

func TestAPacedReplayIsSpreadAndGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	d := alone(t)
	ids := d.deadLetters(6, outbox.Refused)

	first := d.replayLot(outbox.Lot{Most: 2}, 4)
	// Taken up again, with a bound to the time that names the same letters.
	second := d.replayLot(outbox.Lot{Most: 3, Filter: outbox.LetterFilter{Until: time.Now().Add(time.Hour)}}, 4)
	other := d.replayLot(outbox.Lot{Most: 1, Filter: outbox.LetterFilter{Tool: "tool"}}, 4)

	const step = 250 * time.Millisecond
	// What has another filter has a schedule of its own.
	want := []time.Duration{0, step, 2 * step, 3 * step, 4 * step, 0}
	if diff := cmp.Diff(want, d.places(ids)); diff != "" {
		t.Errorf("due after the first (-want +got):\n%s", diff)
	}
	for name, done := range map[string][2]time.Duration{
		"first": {first.Ahead, 2 * step}, "second": {second.Ahead, 5 * step}, "other": {other.Ahead, step},
	} {
		if got := done[0].Round(time.Millisecond); got != done[1] {
			t.Errorf("%s schedule reaches %v ahead, want %v", name, got, done[1])
		}
	}
}

func TestASpentScheduleBeginsNow(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.deadLetters(2, outbox.Refused)
	d.replayLot(outbox.Lot{Most: 1}, 1)
	d.exec("UPDATE replay_schedules SET next_at = now() - interval '1 hour'")
	d.exec("INSERT INTO replay_schedules VALUES ($1, 'old', now() - interval '2 days')", d.tenant.String())

	done := d.replayLot(outbox.Lot{Most: 1}, 1)

	if got := done.Ahead.Round(time.Millisecond); got != time.Second {
		t.Errorf("the schedule reaches %v ahead, want 1s", got)
	}
	if n := one[int64](d, "SELECT count(1) FROM replay_schedules"); n != 1 {
		t.Errorf("%d schedules are kept, want the one in use", n)
	}
}

func TestPacedLotsAtOnceDoNotBunch(t *testing.T) {
	t.Parallel()
	const lots, each = 8, 5
	d := shared(t)
	ids := d.deadLetters(lots*each, outbox.Refused)

	var wg sync.WaitGroup
	for i := range lots {
		wg.Go(func() {
			lot := outbox.Lot{IDs: ids[i*each : (i+1)*each], Most: each, Actor: "ada"}
			err := postgres.InTx(t.Context(), d.db, postgres.API(d.tenant), func(tx pgx.Tx) error {
				_, err := outbox.Replay(t.Context(), tx, d.tenant, lot, outbox.Pace{PerSecond: 10})
				return err
			})
			if err != nil {
				t.Errorf("Replay = %v", err)
			}
		})
	}
	wg.Wait()

	// Committed in any order, but a tenth of a second apart or more.
	got := one[float64](d, `SELECT min(gap) FROM (
		SELECT extract(epoch FROM next_attempt_at - lag(next_attempt_at) OVER (ORDER BY next_attempt_at))::float8 AS gap FROM outbox) g`)
	if got < 0.0999 {
		t.Errorf("two envelopes are due %.4f s apart, want 0.1", got)
	}
	if n := one[int64](d, "SELECT count(1) FROM outbox"); n != lots*each {
		t.Errorf("%d envelopes are on the schedule, want %d", n, lots*each)
	}
}

func TestLotsOfOneFilterAtOnceShareTheLetters(t *testing.T) {
	t.Parallel()
	const letters = 60
	d := shared(t)
	d.deadLetters(letters, outbox.Refused)

	var mu sync.Mutex
	replayed := make(map[envelope.ActionID]int)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for left := letters; left > 0; {
				var done outbox.LotDone
				err := postgres.InTx(t.Context(), d.db, postgres.API(d.tenant), func(tx pgx.Tx) (err error) {
					done, err = outbox.Replay(t.Context(), tx, d.tenant, outbox.Lot{Most: 7, Actor: "ada"}, outbox.Pace{})
					return err
				})
				if err != nil {
					t.Errorf("Replay = %v", err)
					return
				}
				mu.Lock()
				for _, id := range done.Actions {
					replayed[id]++
				}
				mu.Unlock()
				left = done.Left
			}
		})
	}
	wg.Wait()

	for id, n := range replayed {
		if n != 1 {
			t.Errorf("%s was replayed %d times", id, n)
		}
	}
	if len(replayed) != letters {
		t.Errorf("%d letters were replayed, want %d", len(replayed), letters)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		say    outbox.Resolution
		status envelope.Status
		phase  envelope.Phase
	}{
		"it happened":              {outbox.Resolution{Happened: true, Note: "it is in the log"}, envelope.StatusSent, envelope.PhaseCompleted},
		"it did not":               {outbox.Resolution{Note: "it is not there"}, envelope.StatusPending, envelope.PhaseApproved},
		"it did not, and need not": {outbox.Resolution{GiveUp: true, Note: "too late anyway"}, envelope.StatusFailed, envelope.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := alone(t)
			id := d.deadLetters(1, outbox.Unknown)[0]

			if err := d.resolve(id, test.say); err != nil {
				t.Fatalf("Resolve = %v", err)
			}

			v := d.view(id)
			if v.Envelope.Result.Status != test.status || v.Phase != test.phase || len(d.letters(outbox.LetterFilter{})) != 0 {
				t.Errorf("resolved it is %s, %s; want %s, %s and no letter", v.Envelope.Result.Status, v.Phase, test.status, test.phase)
			}
			ledger := d.ledger(id)
			last := ledger[len(ledger)-1]
			if len(ledger) != 2 || last.Status != test.status || last.Code != outbox.CodeResolved || last.Message != test.say.Note || last.Worker != "ada" {
				t.Errorf("ledger = %+v, want what was said last", ledger)
			}
			want := audit.Event{Kind: audit.Resolved, Actor: "ada", Items: []audit.Item{
				{Action: id, Status: test.status, Attempt: 1, Code: outbox.CodeResolved, Note: test.say.Note},
			}}
			if diff := cmp.Diff(want, d.told()); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if err := d.resolve(id, test.say); !errors.Is(err, fault.Conflict) {
				t.Errorf("Resolve again = %v, want fault.Conflict", err)
			}
		})
	}
}

func TestWhatDidNotHappenRunsAgainUnderTheOldKey(t *testing.T) {
	t.Parallel()
	d := alone(t)
	d.queue(envelope.EffectOnce, 1)
	lost := d.claim(1)[0]
	d.start(lost.Lease)
	d.settle(outbox.Lose(lost))

	if err := d.resolve(lost.Action, outbox.Resolution{}); err != nil {
		t.Fatalf("Resolve = %v", err)
	}

	items := d.claim(1)
	if len(items) != 1 || items[0].Key() != lost.Key() || items[0].Fence <= lost.Fence || items[0].Attempt != 1 || items[0].MaxAttempts != 4 || items[0].Sending {
		t.Fatalf("Claim = %+v, want the same key, a later fence and three more attempts", items)
	}
	if stale := d.settle(sent(lost)); len(stale) != 0 {
		t.Error("the worker that was lost could settle the new claim")
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	d := alone(t)
	refused, unknown := d.deadLetters(1, outbox.Refused)[0], d.deadLetters(1, outbox.Unknown)[0]
	waiting := d.queue(envelope.EffectOnce, 1)[0]
	for name, test := range map[string]struct {
		id   envelope.ActionID
		say  outbox.Resolution
		want fault.Kind
	}{
		"what is known to have failed":          {refused, outbox.Resolution{Happened: true}, fault.Conflict},
		"what waits for its turn":               {waiting, outbox.Resolution{Happened: true}, fault.Conflict},
		"what there is not":                     {envelope.NewActionID(), outbox.Resolution{Happened: true}, fault.NotFound},
		"what an outdated verifying read found": {unknown, outbox.Resolution{Happened: true, Look: 7}, fault.Conflict},
	} {
		if err := d.resolve(test.id, test.say); !errors.Is(err, test.want) {
			t.Errorf("Resolve of %s = %v, want %v", name, err, test.want)
		}
	}
	if n := len(d.letters(outbox.LetterFilter{})); n != 2 {
		t.Errorf("%d letters are left, want both", n)
	}
}

// Two people, and somebody who replays, want to end the same riddles at once:
// each letter has one winner.
func TestOfTwoResolutionsOneWins(t *testing.T) {
	t.Parallel()
	const rounds = 30
	d := shared(t)
	ids := d.deadLetters(rounds, outbox.Unknown)

	var mu sync.Mutex
	won := make(map[envelope.ActionID][]envelope.Status)
	win := func(id envelope.ActionID, as envelope.Status) {
		mu.Lock()
		defer mu.Unlock()
		won[id] = append(won[id], as)
	}
	var wg sync.WaitGroup
	for _, say := range []outbox.Resolution{{Happened: true}, {}, {GiveUp: true}} {
		status := map[bool]envelope.Status{true: envelope.StatusSent, false: envelope.StatusPending}[say.Happened]
		if say.GiveUp {
			status = envelope.StatusFailed
		}
		wg.Go(func() {
			for _, id := range ids {
				switch err := d.resolve(id, say); {
				case err == nil:
					win(id, status)
				case !errors.Is(err, fault.Conflict):
					t.Errorf("Resolve = %v", err)
				}
			}
		})
	}
	wg.Go(func() {
		for _, id := range ids {
			replayed, err := d.replay(true, id)
			if err != nil {
				t.Errorf("Replay = %v", err)
			}
			if len(replayed) > 0 {
				win(id, envelope.StatusPending)
			}
		}
	})
	wg.Wait()

	for _, id := range ids {
		if len(won[id]) != 1 {
			t.Fatalf("%s has %d winners: %v", id, len(won[id]), won[id])
		}
		if got := d.view(id).Envelope.Result.Status; got != won[id][0] {
			t.Errorf("%s is %s, and %s won", id, got, won[id][0])
		}
	}
}

func TestFilterSaysWhichFieldIsWrong(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		filter outbox.LetterFilter
		want   []string
	}{
		"nothing given":              {outbox.LetterFilter{}, nil},
		"an open end":                {outbox.LetterFilter{Since: noon}, nil},
		"a window":                   {outbox.LetterFilter{Since: noon, Until: noon.Add(1)}, nil},
		"an empty window":            {outbox.LetterFilter{Since: noon, Until: noon}, []string{"/until"}},
		"an unknown reason and more": {outbox.LetterFilter{Reason: "bored", Since: noon, Until: noon.Add(-1)}, []string{"/reason", "/until"}},
	} {
		err := test.filter.Validate()
		var got []string
		if broken, ok := errors.AsType[*envelope.InvalidError](err); ok {
			for _, f := range broken.Fields {
				got = append(got, f.Pointer)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want == nil) {
			t.Errorf("Validate of %s = %v (-want +got):\n%s", name, err, diff)
		}
	}
}
