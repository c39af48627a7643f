package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// parallel is the number of goroutines that make the same move concurrently.
const parallel = 8

// move is something that one goroutine of many tries to do to an action.
type move func(o fixture, nth int, id envelope.ActionID) error

func approves(o fixture, nth int, id envelope.ActionID) error {
	return o.grant(o.person(fmt.Sprintf("approver %d", nth)), id, "")
}

func denies(o fixture, nth int, id envelope.ActionID) error {
	return o.service.Deny(o.t.Context(), o.person(fmt.Sprintf("denier %d", nth)), id, approval.Denial{})
}

func undoes(o fixture, _ int, id envelope.ActionID) error {
	return postgres.InTx(o.t.Context(), o.db, postgres.API(o.tenant), func(tx pgx.Tx) error {
		return outbox.Undo(o.t.Context(), tx, o.tenant, id, "agent")
	})
}

// counts is the number of times that each move succeeded.
type counts []int

// race makes each move several times concurrently and returns the successes.
// Every failure must be one of refusals.
func (o fixture) race(id envelope.ActionID, refusals []fault.Kind, moves ...move) counts {
	o.t.Helper()
	done := make(counts, len(moves))
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for side, m := range moves {
		for nth := range parallel {
			wg.Go(func() {
				<-start
				err := m(o, nth, id)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done[side]++
				case !slices.Contains(refusals, fault.KindOf(err)):
					o.t.Errorf("move %d = %v, want nil or one of %q", side, err, refusals)
				}
			})
		}
	}
	close(start)
	wg.Wait()
	return done
}

// agrees checks that all records of an envelope are consistent.
func (o fixture) agrees(id envelope.ActionID, want envelope.Approval, votes int) {
	o.t.Helper()
	type record struct {
		Approval                          envelope.Approval
		Scheduled, Votes, Events, Digests int
	}
	granted := 0
	if want == envelope.ApprovalGranted {
		granted = 1
	}
	got := record{
		o.view(id).Envelope.Approval, o.scheduled(id),
		one[int](o, "SELECT count(1)::int FROM votes WHERE action_id = $1", id.String()),
		one[int](o, "SELECT count(1)::int FROM events, jsonb_array_elements(items) i WHERE kind = 'decided' AND i ->> 'action_id' = $1 AND i ->> 'approval' = $2", id.String(), string(want)),
		one[int](o, "SELECT count(approval_digest)::int FROM actions WHERE action_id = $1", id.String()),
	}
	if wanted := (record{want, granted, votes, 1, granted}); got != wanted {
		o.t.Errorf("%s is on record as %+v, want %+v", id, got, wanted)
	}
	if n := one[int](o, "SELECT count(1)::int FROM events, jsonb_array_elements(items) i WHERE kind IN ('decided', 'undone', 'killed') AND i ->> 'action_id' = $1", id.String()); n != 1 {
		o.t.Errorf("%s was ended %d times by its events, want once", id, n)
	}
}

func TestOfManyDecisionsOneWins(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)

	for _, id := range o.propose(25) {
		won := o.race(id, []fault.Kind{fault.Conflict}, approves, denies)

		if won[0]+won[1] != 1 {
			t.Fatalf("%d approvals and %d denials won, want one of all", won[0], won[1])
		}
		want := envelope.ApprovalGranted
		if won[1] == 1 {
			want = envelope.ApprovalDenied
		}
		o.agrees(id, want, 1)
	}
}

func TestAnApprovalAndItsExpiryHaveOneWinner(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	sweeps := func(o fixture, _ int, _ envelope.ActionID) error {
		_, err := approval.Expire(o.t.Context(), o.db, 10)
		return err
	}
	count := make(map[envelope.Approval]int)

	for _, id := range o.propose(40) {
		o.exec("UPDATE actions SET approval_expires_at = clock_timestamp() + interval '1500 microseconds' WHERE action_id = $1", id.String())
		won := o.race(id, []fault.Kind{fault.Conflict, fault.Gone}, approves, sweeps)
		if _, err := approval.Expire(t.Context(), o.db, 10); err != nil {
			t.Fatal(err)
		}

		want := envelope.ApprovalExpired
		if won[0] > 0 {
			want = envelope.ApprovalGranted
		}
		count[want]++
		if won[0] > 1 {
			t.Errorf("%d approvals won, want at most one", won[0])
		}
		o.agrees(id, want, won[0])
	}
	t.Logf("who won: %v", count)
}

func TestAnApprovalAndAnUndoLeaveOneEnd(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)

	for _, id := range o.propose(25) {
		won := o.race(id, []fault.Kind{fault.Conflict}, approves, undoes)

		// An undo may succeed after the approval, while the action is due.
		if won[1] != 1 || won[0] > 1 {
			t.Errorf("%d approvals and %d undoings won, want at most one, and one", won[0], won[1])
		}
		v, want := o.view(id), envelope.ApprovalDenied
		if won[0] == 1 {
			want = envelope.ApprovalGranted
		}
		if v.Envelope.Approval != want || v.Envelope.Result.Status != envelope.StatusSkipped || o.scheduled(id) != 0 || o.decisions(id) != won[0]+1 {
			t.Errorf("%s is %s, %s, with %d events, want %s, skipped, with %d", id, v.Envelope.Approval, v.Envelope.Result.Status, o.decisions(id), want, won[0]+1)
		}
	}
}

func TestADenialAndAnUndoHaveOneWinner(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)

	for _, id := range o.propose(25) {
		won := o.race(id, []fault.Kind{fault.Conflict}, denies, undoes)

		if won[0]+won[1] != 1 || o.decisions(id) != 1 || o.view(id).Envelope.Approval != envelope.ApprovalDenied {
			t.Errorf("%d denials and %d undoings won, with %d events", won[0], won[1], o.decisions(id))
		}
	}
}

// sweep does one sweep of the work left by kills.
func (o fixture) sweep() error {
	return postgres.InTx(o.t.Context(), o.db, postgres.Worker(), func(tx pgx.Tx) error {
		sweeps, err := outbox.Sweeps(o.t.Context(), tx, 10)
		for i := range sweeps {
			var at outbox.SweepCursor
			for ended := false; err == nil && !ended; {
				at, ended, err = sweeps[i].Step(o.t.Context(), tx, at, 100)
			}
		}
		return err
	})
}

func TestAnApprovalAndAKillLeaveNothingToSend(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	sweeps := func(o fixture, _ int, _ envelope.ActionID) error { return o.sweep() }

	for range 12 {
		id := o.propose(1)[0]
		o.as(func(ctx context.Context, tx pgx.Tx) error {
			_, err := pause.Set(ctx, tx, o.tenant, pause.Order{Target: pause.Target{Scope: pause.Tenant}, Kill: true, Reason: "stop", By: "ada"})
			return err
		})
		won := o.race(id, []fault.Kind{fault.Conflict}, approves, sweeps)
		// Sweep skips locked rows; the next call handles them.
		for one[bool](o, "SELECT EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM actions WHERE approval_state = 'required')") {
			if err := o.sweep(); err != nil {
				t.Fatal(err)
			}
		}

		v, want := o.view(id), envelope.ApprovalDenied
		if won[0] == 1 {
			want = envelope.ApprovalGranted
		}
		killed := one[int](o, "SELECT count(1)::int FROM events, jsonb_array_elements(items) i WHERE kind = 'killed' AND i ->> 'action_id' = $1", id.String())
		if v.Envelope.Approval != want || won[0] > 1 || killed != 1 || o.decisions(id) != won[0] || v.Envelope.Result.Error == nil || v.Envelope.Result.Error.Code != "killed" {
			t.Errorf("%d approvals won, and it is %s, %d times killed, with %d decisions", won[0], v.Envelope.Approval, killed, o.decisions(id))
		}
		o.as(func(ctx context.Context, tx pgx.Tx) error {
			return pause.Lift(ctx, tx, o.tenant, pause.Target{Scope: pause.Tenant}, "done", "ada")
		})
	}
}

// TestAnEditAndAnApprovalHaveOneWinner lets several people edit and approve
// the version that they saw: exactly one succeeds.
func TestAnEditAndAnApprovalHaveOneWinner(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	count := make([]int, 2)

	for _, id := range o.propose(25) {
		seen := approval.ETag(o.view(id))
		won := o.race(id, []fault.Kind{fault.Conflict, fault.Stale, fault.Unconditional},
			func(o fixture, nth int, id envelope.ActionID) error {
				_, err := o.service.Approve(o.t.Context(), o.person(fmt.Sprintf("approver %d", nth)), id, approval.Approval{IfMatch: seen})
				return err
			},
			func(o fixture, nth int, id envelope.ActionID) error {
				args := json.RawMessage(fmt.Sprintf(`{"n":%d}`, nth))
				return o.service.Edit(o.t.Context(), o.person(fmt.Sprintf("editor %d", nth)), id, approval.Edit{Args: args, IfMatch: seen})
			})

		if won[0]+won[1] != 1 {
			t.Fatalf("%d approvals and %d edits won, want one of all", won[0], won[1])
		}
		count[1] += won[1]
		count[0] += won[0]
		v := o.view(id)
		edits := one[int](o, "SELECT count(1)::int FROM events, jsonb_array_elements(items) i WHERE kind = 'edited' AND i ->> 'action_id' = $1", id.String())
		if edits != won[1] || (v.Review.EditedBy != "") != (won[1] == 1) {
			t.Errorf("%d edits won, %d are told of, the last by %q", won[1], edits, v.Review.EditedBy)
		}
		if won[0] == 1 {
			o.agrees(id, envelope.ApprovalGranted, 1)
			continue
		}
		if v.Envelope.Approval != envelope.ApprovalRequired || string(v.Review.ProposedArgs) != `{}` || o.scheduled(id) != 0 {
			t.Errorf("an edited envelope is %s, was proposed with %s", v.Envelope.Approval, v.Review.ProposedArgs)
		}
	}
	t.Logf("%d approvals and %d edits won", count[0], count[1])
}

// TestConcurrentVotesAreCountedOnce has more people vote than must, each of them
// with two tokens.
func TestConcurrentVotesAreCountedOnce(t *testing.T) {
	t.Parallel()
	const needed = 3
	o := newSharedFixture(t)
	o.review(needed)

	for _, id := range o.propose(20) {
		won := o.race(id, []fault.Kind{fault.Conflict}, approves, approves)

		if won[0]+won[1] != needed {
			t.Errorf("%d votes were counted, want %d", won[0]+won[1], needed)
		}
		o.agrees(id, envelope.ApprovalGranted, needed)
		people := one[int](o, "SELECT count(DISTINCT person)::int FROM votes WHERE action_id = $1", id.String())
		voted := one[int](o, "SELECT count(1)::int FROM events, jsonb_array_elements(items) i WHERE kind = 'voted' AND i ->> 'action_id' = $1", id.String())
		if v := o.view(id); people != needed || voted != needed-1 || v.Review.Given != needed || v.Review.Needed != needed {
			t.Errorf("%d people, %d votes before the last, %d of %d given", people, voted, v.Review.Given, v.Review.Needed)
		}
	}
}

func TestADenialEndsAVote(t *testing.T) {
	t.Parallel()
	const needed = 5
	o := newSharedFixture(t)
	o.review(needed)

	for _, id := range o.propose(20) {
		won := o.race(id, []fault.Kind{fault.Conflict}, approves, denies)

		switch {
		case won[1] == 1 && won[0] < needed:
			o.agrees(id, envelope.ApprovalDenied, won[0]+1)
		case won[1] == 0 && won[0] == needed:
			o.agrees(id, envelope.ApprovalGranted, needed)
		default:
			t.Errorf("%d approvals and %d denials won", won[0], won[1])
		}
	}
}

// TestOverlappingBatchesHaveOneWinnerEach has batches in any order at the same
// envelopes. None fails as a whole: they take their locks in one order.
func TestOverlappingBatchesHaveOneWinnerEach(t *testing.T) {
	t.Parallel()
	const all, most = 120, 80
	o := newSharedFixture(t)
	ids := o.propose(all)
	var mu sync.Mutex
	won := make(map[envelope.ActionID][]envelope.Approval)
	var wg sync.WaitGroup

	for nth := range parallel {
		mine := slices.Clone(ids)
		rand.Shuffle(all, func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		mine = mine[:most]
		wg.Go(func() {
			by := o.person(fmt.Sprintf("person %d", nth))
			decide := func() ([]approval.Result, error) { return o.service.ApproveMany(t.Context(), by, mine, "", nil) }
			if nth%2 == 1 {
				decide = func() ([]approval.Result, error) { return o.service.DenyMany(t.Context(), by, mine, "", nil) }
			}
			decided, err := decide()
			if err != nil {
				t.Errorf("batch %d = %v", nth, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for i, s := range decided {
				switch {
				case s.Action != mine[i]:
					t.Errorf("answer %d is for %s, want %s", i, s.Action, mine[i])
				case s.Err == nil:
					won[s.Action] = append(won[s.Action], s.Approval)
				case !errors.Is(s.Err, fault.Conflict):
					t.Errorf("%s = %v, want nil or fault.Conflict", s.Action, s.Err)
				}
			}
		})
	}
	wg.Wait()

	for _, id := range ids {
		switch len(won[id]) {
		case 0:
			if got := o.view(id).Envelope.Approval; got != envelope.ApprovalRequired {
				t.Errorf("nobody won %s, and it is %s", id, got)
			}
		case 1:
			o.agrees(id, won[id][0], 1)
		default:
			t.Errorf("%s was won by %v, want one winner", id, won[id])
		}
	}
}
