package deadletter_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// replayBulk replays a request with duplicates allowed.
func (fx fixture) replayBulk(request deadletter.BulkRequest, perSecond float64) deadletter.BulkResult {
	fx.T.Helper()
	var done deadletter.BulkResult
	request.Actor = "ada"
	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) (err error) {
		done, err = deadletter.Replay(fx.T.Context(), tx, fx.Tenant, request, deadletter.ReplayOptions{AllowDuplicates: true, PerSecond: perSecond})
		return err
	})
	return done
}

func (fx fixture) dryRun(request deadletter.BulkRequest) deadletter.BulkResult {
	fx.T.Helper()
	request.DryRun, request.Limit = true, 100
	return fx.replayBulk(request, 0)
}

func (fx fixture) resolve(id envelope.ActionID, r deadletter.Resolution) error {
	r.Actor = "ada"
	return postgres.InTx(fx.T.Context(), fx.DB, postgres.API(fx.Tenant), func(tx pgx.Tx) error {
		return deadletter.Resolve(fx.T.Context(), tx, fx.Tenant, id, r)
	})
}

// told returns the last event, which must have one item.
func (fx fixture) told() (e audit.Event) {
	fx.T.Helper()
	fx.As(postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(fx.T.Context(), "SELECT kind, actor, items FROM events WHERE tenant_id = $1 ORDER BY event_id DESC LIMIT 1", fx.Tenant.String()).
			Scan(&e.Kind, &e.Actor, &e.Items)
	})
	return e
}

// places returns the due times of envelopes relative to the first one.
func (fx fixture) places(ids []envelope.ActionID) []time.Duration {
	fx.T.Helper()
	var at []time.Time
	fx.As(postgres.Admin(), func(tx pgx.Tx) error {
		rows, err := tx.Query(fx.T.Context(), "SELECT next_attempt_at FROM outbox WHERE action_id = ANY ($1::uuid[]) ORDER BY action_id", outboxtest.Texts(ids))
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
	fx := newFixture(t)
	refused, unknown := fx.EndAsDeadLetters(3, outbox.Refused), fx.EndAsDeadLetters(2, outbox.Unknown)
	for name, test := range map[string]struct {
		request deadletter.BulkRequest
		pace    deadletter.ReplayOptions
		want    deadletter.BulkResult
	}{
		"of everything": {deadletter.BulkRequest{Limit: 2}, deadletter.ReplayOptions{}, deadletter.BulkResult{ActionIDs: refused[:2], Left: 3, LeftOut: 2}},
		"of the unknown, too": {
			deadletter.BulkRequest{Limit: 9}, deadletter.ReplayOptions{AllowDuplicates: true}, deadletter.BulkResult{ActionIDs: slices.Concat(refused, unknown), Left: 5},
		},
		"of some by id": {
			deadletter.BulkRequest{IDs: []envelope.ActionID{unknown[0], refused[1], envelope.NewActionID()}, Limit: 9},
			deadletter.ReplayOptions{}, deadletter.BulkResult{ActionIDs: refused[1:2], Left: 1, LeftOut: 1},
		},
		"of none by id": {deadletter.BulkRequest{IDs: []envelope.ActionID{}, Limit: 9}, deadletter.ReplayOptions{}, deadletter.BulkResult{ActionIDs: []envelope.ActionID{}}},
	} {
		var done deadletter.BulkResult
		test.request.DryRun = true
		fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) (err error) {
			done, err = deadletter.Replay(t.Context(), tx, fx.Tenant, test.request, test.pace)
			return err
		})

		if !done.DryRun {
			t.Errorf("the result of a dry run %s is not marked as one", name)
		}
		done.DryRun, done.Counts, done.AsOf = false, nil, time.Time{}
		if diff := cmp.Diff(test.want, done); diff != "" {
			t.Errorf("a dry run %s (-want +got):\n%s", name, diff)
		}
	}
	want := []wire.DeadLetterCount{
		{Tool: "src:tool", Reason: string(outbox.Refused), Count: 3}, {Tool: "src:tool", Reason: string(outbox.Unknown), Count: 2},
	}
	if diff := cmp.Diff(want, fx.dryRun(deadletter.BulkRequest{}).Counts); diff != "" {
		t.Errorf("tallies (-want +got):\n%s", diff)
	}
	if n := len(fx.DeadLetters(deadletter.Filter{})); n != 5 {
		t.Errorf("%d letters are left, want all 5", n)
	}
}

func TestBulkRequestsTakeTheOldestFirst(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ids := fx.EndAsDeadLetters(5, outbox.Refused)

	first := fx.replayBulk(deadletter.BulkRequest{Limit: 2}, 0)
	second := fx.replayBulk(deadletter.BulkRequest{Limit: 2}, 0)
	third := fx.replayBulk(deadletter.BulkRequest{Limit: 2}, 0)

	got := outboxtest.Texts(slices.Concat(first.ActionIDs, second.ActionIDs, third.ActionIDs))
	if diff := cmp.Diff(outboxtest.Texts(ids), got); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
	if first.Left != 3 || second.Left != 1 || third.Left != 0 {
		t.Errorf("left are %d, %d and %d, want 3, 1 and 0", first.Left, second.Left, third.Left)
	}
}

func TestAPacedReplayIsSpreadAndGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ids := fx.EndAsDeadLetters(6, outbox.Refused)

	first := fx.replayBulk(deadletter.BulkRequest{Limit: 2}, 4)
	// Taken up again, with a bound to the time that names the same letters.
	second := fx.replayBulk(deadletter.BulkRequest{Limit: 3, Filter: deadletter.Filter{Until: time.Now().Add(time.Hour)}}, 4)
	other := fx.replayBulk(deadletter.BulkRequest{Limit: 1, Filter: deadletter.Filter{Tool: "tool"}}, 4)

	const step = 250 * time.Millisecond
	// Another filter has its own schedule.
	want := []time.Duration{0, step, 2 * step, 3 * step, 4 * step, 0}
	if diff := cmp.Diff(want, fx.places(ids)); diff != "" {
		t.Errorf("due after the first (-want +got):\n%s", diff)
	}
	for name, done := range map[string]struct {
		got  int64
		want time.Duration
	}{
		"first": {first.AheadMS, 2 * step}, "second": {second.AheadMS, 5 * step}, "other": {other.AheadMS, step},
	} {
		if done.got != done.want.Milliseconds() {
			t.Errorf("%s schedule reaches %d ms ahead, want %v", name, done.got, done.want)
		}
	}
}

func TestASpentScheduleBeginsNow(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.EndAsDeadLetters(2, outbox.Refused)
	fx.replayBulk(deadletter.BulkRequest{Limit: 1}, 1)
	fx.Exec("UPDATE replay_schedules SET next_at = now() - interval '1 hour'")
	fx.Exec("INSERT INTO replay_schedules VALUES ($1, 'old', now() - interval '2 days')", fx.Tenant.String())

	done := fx.replayBulk(deadletter.BulkRequest{Limit: 1}, 1)

	if done.AheadMS != 1000 {
		t.Errorf("the schedule reaches %d ms ahead, want 1s", done.AheadMS)
	}
	if n := outboxtest.One[int64](fx.Fixture, "SELECT count(1) FROM replay_schedules"); n != 1 {
		t.Errorf("%d schedules are kept, want the one in use", n)
	}
}

func TestPacedBulkRequestsAtOnceDoNotBunch(t *testing.T) {
	t.Parallel()
	const requests, each = 8, 5
	fx := newSharedFixture(t)
	ids := fx.EndAsDeadLetters(requests*each, outbox.Refused)

	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			request := deadletter.BulkRequest{IDs: ids[i*each : (i+1)*each], Limit: each, Actor: "ada"}
			err := postgres.InTx(t.Context(), fx.DB, postgres.API(fx.Tenant), func(tx pgx.Tx) error {
				_, err := deadletter.Replay(t.Context(), tx, fx.Tenant, request, deadletter.ReplayOptions{PerSecond: 10})
				return err
			})
			if err != nil {
				t.Errorf("Replay = %v", err)
			}
		})
	}
	wg.Wait()

	// Committed in any order, but a tenth of a second apart or more.
	got := outboxtest.One[float64](fx.Fixture, `SELECT min(gap) FROM (
		SELECT extract(epoch FROM next_attempt_at - lag(next_attempt_at) OVER (ORDER BY next_attempt_at))::float8 AS gap FROM outbox) g`)
	if got < 0.0999 {
		t.Errorf("two envelopes are due %.4f s apart, want 0.1", got)
	}
	if n := outboxtest.One[int64](fx.Fixture, "SELECT count(1) FROM outbox"); n != requests*each {
		t.Errorf("%d envelopes are on the schedule, want %d", n, requests*each)
	}
}

func TestBulkRequestsOfOneFilterAtOnceShareTheDeadLetters(t *testing.T) {
	t.Parallel()
	const letters = 60
	fx := newSharedFixture(t)
	fx.EndAsDeadLetters(letters, outbox.Refused)

	var mu sync.Mutex
	replayed := make(map[envelope.ActionID]int)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for left := letters; left > 0; {
				var done deadletter.BulkResult
				err := postgres.InTx(t.Context(), fx.DB, postgres.API(fx.Tenant), func(tx pgx.Tx) (err error) {
					done, err = deadletter.Replay(t.Context(), tx, fx.Tenant, deadletter.BulkRequest{Limit: 7, Actor: "ada"}, deadletter.ReplayOptions{})
					return err
				})
				if err != nil {
					t.Errorf("Replay = %v", err)
					return
				}
				mu.Lock()
				for _, id := range done.ActionIDs {
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
		say    deadletter.Resolution
		status envelope.Status
		phase  envelope.Phase
	}{
		"it happened":              {deadletter.Resolution{Happened: true, Note: "it is in the log"}, envelope.StatusSent, envelope.PhaseCompleted},
		"it did not":               {deadletter.Resolution{Note: "it is not there"}, envelope.StatusPending, envelope.PhaseApproved},
		"it did not, and need not": {deadletter.Resolution{GiveUp: true, Note: "too late anyway"}, envelope.StatusFailed, envelope.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			id := fx.EndAsDeadLetters(1, outbox.Unknown)[0]

			if err := fx.resolve(id, test.say); err != nil {
				t.Fatalf("Resolve = %v", err)
			}

			v := fx.View(id)
			if v.Envelope.Result.Status != test.status || v.Phase != test.phase || len(fx.DeadLetters(deadletter.Filter{})) != 0 {
				t.Errorf("resolved it is %s, %s; want %s, %s and no letter", v.Envelope.Result.Status, v.Phase, test.status, test.phase)
			}
			attempts := fx.Attempts(id)
			last := attempts[len(attempts)-1]
			if len(attempts) != 2 || last.Status != test.status || last.Code != deadletter.CodeResolved || last.Message != test.say.Note || last.Worker != "ada" {
				t.Errorf("attempts = %+v, want what was said last", attempts)
			}
			want := audit.Event{Kind: audit.Resolved, Actor: "ada", Items: []audit.Item{
				{Action: id, Status: test.status, Attempt: 1, Code: deadletter.CodeResolved, Note: test.say.Note},
			}}
			if diff := cmp.Diff(want, fx.told()); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if err := fx.resolve(id, test.say); !errors.Is(err, fault.Conflict) {
				t.Errorf("Resolve again = %v, want fault.Conflict", err)
			}
		})
	}
}

func TestActionResolvedAsNotHappenedRunsAgainUnderTheOldKey(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectOnce, 1)
	lost := fx.Claim(1)[0]
	fx.Start(lost.Lease)
	fx.Settle(outbox.WorkerLost(lost))

	if err := fx.resolve(lost.Action, deadletter.Resolution{}); err != nil {
		t.Fatalf("Resolve = %v", err)
	}

	items := fx.Claim(1)
	if len(items) != 1 || items[0].Key() != lost.Key() || items[0].Fence <= lost.Fence || items[0].Attempt != 1 || items[0].MaxAttempts != 4 || items[0].Sending {
		t.Fatalf("Claim = %+v, want the same key, a later fence and three more attempts", items)
	}
	if stale := fx.Settle(outboxtest.Sent(lost)); len(stale) != 0 {
		t.Error("the worker that was lost could settle the new claim")
	}
}

// A replayed call that may have had its effect is told so, if its class lets it
// find out; one that was resolved as not happened is not.
func TestReplayOfAnUnknownOutcomeIsUnsure(t *testing.T) {
	t.Parallel()
	for effect, want := range map[envelope.Effect]bool{envelope.EffectIdempotent: true, envelope.EffectKeyed: true, envelope.EffectOnce: false} {
		fx := newFixture(t)
		id := fx.Queue(effect, 1)[0]
		fx.Settle(outbox.WorkerLost(fx.Claim(1)[0]))

		replayed := fx.replayBulk(deadletter.BulkRequest{IDs: []envelope.ActionID{id}, Limit: 1}, 0)

		if items := fx.Claim(1); len(replayed.ActionIDs) != 1 || len(items) != 1 || items[0].Unsure != want {
			t.Errorf("a replayed call of class %s = %+v, want unsure: %t", effect, items, want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	refused, unknown := fx.EndAsDeadLetters(1, outbox.Refused)[0], fx.EndAsDeadLetters(1, outbox.Unknown)[0]
	waiting := fx.Queue(envelope.EffectOnce, 1)[0]
	for name, test := range map[string]struct {
		id   envelope.ActionID
		say  deadletter.Resolution
		want fault.Kind
	}{
		"what is known to have failed":          {refused, deadletter.Resolution{Happened: true}, fault.Conflict},
		"what waits for its turn":               {waiting, deadletter.Resolution{Happened: true}, fault.Conflict},
		"what there is not":                     {envelope.NewActionID(), deadletter.Resolution{Happened: true}, fault.NotFound},
		"what an outdated verifying read found": {unknown, deadletter.Resolution{Happened: true, ReconcileAttempt: 7}, fault.Conflict},
	} {
		if err := fx.resolve(test.id, test.say); !errors.Is(err, test.want) {
			t.Errorf("Resolve of %s = %v, want %v", name, err, test.want)
		}
	}
	if n := len(fx.DeadLetters(deadletter.Filter{})); n != 2 {
		t.Errorf("%d letters are left, want both", n)
	}
}

// Two people and a replay race to end the same unresolved calls: each dead letter has
// one winner.
func TestOfTwoResolutionsOneWins(t *testing.T) {
	t.Parallel()
	const rounds = 30
	fx := newSharedFixture(t)
	ids := fx.EndAsDeadLetters(rounds, outbox.Unknown)

	var mu sync.Mutex
	won := make(map[envelope.ActionID][]envelope.Status)
	win := func(id envelope.ActionID, as envelope.Status) {
		mu.Lock()
		defer mu.Unlock()
		won[id] = append(won[id], as)
	}
	var wg sync.WaitGroup
	for _, say := range []deadletter.Resolution{{Happened: true}, {}, {GiveUp: true}} {
		status := map[bool]envelope.Status{true: envelope.StatusSent, false: envelope.StatusPending}[say.Happened]
		if say.GiveUp {
			status = envelope.StatusFailed
		}
		wg.Go(func() {
			for _, id := range ids {
				switch err := fx.resolve(id, say); {
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
			replayed, err := fx.Replay(true, id)
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
		if got := fx.View(id).Envelope.Result.Status; got != won[id][0] {
			t.Errorf("%s is %s, and %s won", id, got, won[id][0])
		}
	}
}

func TestFilterNamesTheInvalidField(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		filter deadletter.Filter
		want   []string
	}{
		"nothing given":              {deadletter.Filter{}, nil},
		"an open end":                {deadletter.Filter{Since: noon}, nil},
		"a window":                   {deadletter.Filter{Since: noon, Until: noon.Add(1)}, nil},
		"an empty window":            {deadletter.Filter{Since: noon, Until: noon}, []string{"/until"}},
		"an unknown reason and more": {deadletter.Filter{Reason: "bored", Since: noon, Until: noon.Add(-1)}, []string{"/reason", "/until"}},
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
