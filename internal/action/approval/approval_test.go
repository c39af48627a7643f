package approval_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

func TestGrantPutsItOnTheSchedule(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.propose(1)[0]

	err := o.grant(o.decider("ada"), id, "fine")

	v := o.view(id)
	if err != nil || v.Phase != envelope.PhaseApproved || v.Envelope.Approval != envelope.ApprovalGranted || !isOf(v.DecidedBy, "ada") || v.DecisionNote != "fine" || v.DecidedAt == nil {
		t.Errorf("Grant = %v, and it is %s, %s by %q (%q)", err, v.Phase, v.Envelope.Approval, v.DecidedBy, v.DecisionNote)
	}
	if o.scheduled(id) != 1 || o.decisions(id) != 1 || o.woken.Load() != 1 {
		t.Errorf("it is on the schedule %d times, with %d events and %d wake-ups; want 1 of each", o.scheduled(id), o.decisions(id), o.woken.Load())
	}
}

func TestDenyEndsIt(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.propose(1)[0]

	err := o.service.Deny(t.Context(), o.decider("ada"), id, approval.Denial{Note: "too dear"})

	v := o.view(id)
	if err != nil || v.Phase != envelope.PhaseDenied || v.Envelope.Result.Status != envelope.StatusSkipped || v.DecisionNote != "too dear" {
		t.Errorf("Deny = %v, and it is %s, %s (%q)", err, v.Phase, v.Envelope.Result.Status, v.DecisionNote)
	}
	if o.scheduled(id) != 0 || o.decisions(id) != 1 || o.woken.Load() != 0 {
		t.Errorf("a denied envelope is on the schedule, or woke the fleet, or has no event")
	}
}

// TestRefusedDecisions changes nothing in any of them.
func TestRefusedDecisions(t *testing.T) {
	t.Parallel()
	grant := func(o fixture, id envelope.ActionID) error {
		return o.grant(o.decider("bob"), id, "")
	}
	deny := func(o fixture, id envelope.ActionID) error {
		return o.service.Deny(o.t.Context(), o.decider("bob"), id, approval.Denial{})
	}
	own := func(o fixture) approval.Decider {
		return approval.Decider{Tenant: o.tenant, Token: o.agent(), Name: "agent"}
	}
	nothing := func(fixture, envelope.ActionID) {}
	relist := func(name string) func(o fixture, _ envelope.ActionID) {
		return func(o fixture, _ envelope.ActionID) {
			tools := listing("changed")
			if name == "" {
				tools = nil
			}
			o.as(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutListing(ctx, tx, o.tenant, "src", tools) })
		}
	}
	for name, test := range map[string]struct {
		before func(o fixture, id envelope.ActionID)
		decide func(o fixture, id envelope.ActionID) error
		want   fault.Kind
	}{
		"own proposal granted": {nothing, func(o fixture, id envelope.ActionID) error { return o.grant(own(o), id, "") }, fault.Denied},
		"own proposal denied": {nothing, func(o fixture, id envelope.ActionID) error {
			return o.service.Deny(o.t.Context(), own(o), id, approval.Denial{})
		}, fault.Denied},
		"too late to grant": {func(o fixture, id envelope.ActionID) { o.overdue(id) }, grant, fault.Gone},
		"too late to deny":  {func(o fixture, id envelope.ActionID) { o.overdue(id) }, deny, fault.Gone},
		"too late, and swept": {func(o fixture, id envelope.ActionID) {
			o.overdue(id)
			if _, err := approval.Expire(o.t.Context(), o.db, 1000); err != nil {
				o.t.Fatal(err)
			}
		}, grant, fault.Gone},
		"denied before": {func(o fixture, id envelope.ActionID) {
			if err := deny(o, id); err != nil {
				o.t.Fatal(err)
			}
		}, grant, fault.Conflict},
		"granted before": {func(o fixture, id envelope.ActionID) {
			if err := grant(o, id); err != nil {
				o.t.Fatal(err)
			}
		}, deny, fault.Conflict},
		"policy denies by now":     {func(o fixture, _ envelope.ActionID) { o.mode(envelope.ModeDeny) }, grant, fault.Conflict},
		"the tool is another":      {relist("act"), grant, fault.Conflict},
		"the tool is gone":         {relist(""), grant, fault.Conflict},
		"no such envelope granted": {nothing, func(o fixture, _ envelope.ActionID) error { return grant(o, envelope.NewActionID()) }, fault.NotFound},
		"no such envelope denied":  {nothing, func(o fixture, _ envelope.ActionID) error { return deny(o, envelope.NewActionID()) }, fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newFixture(t)
			id := o.propose(1)[0]
			test.before(o, id)
			before, scheduled, woken := o.view(id), o.scheduled(id), o.woken.Load()

			err := test.decide(o, id)

			if !errors.Is(err, test.want) {
				t.Errorf("decision = %v, want fault %q", err, test.want)
			}
			after := o.view(id)
			if before.Envelope.Approval != after.Envelope.Approval || before.DecidedBy != after.DecidedBy || o.scheduled(id) != scheduled || o.woken.Load() != woken {
				t.Errorf("a refused decision changed %s by %q to %s by %q", before.Envelope.Approval, before.DecidedBy, after.Envelope.Approval, after.DecidedBy)
			}
		})
	}
}

func TestADecisionStaysWithItsTenant(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	mine, theirs := fixtureIn(t, db), fixtureIn(t, db)
	id := mine.propose(1)[0]

	granted := theirs.grant(theirs.decider("eve"), id, "")
	denied := theirs.service.Deny(t.Context(), theirs.decider("eve"), id, approval.Denial{})

	if !errors.Is(granted, fault.NotFound) || !errors.Is(denied, fault.NotFound) {
		t.Errorf("decisions about another tenant's envelope = %v, %v, want fault.NotFound", granted, denied)
	}
	if got := mine.view(id).Phase; got != envelope.PhasePending {
		t.Errorf("it is %s, want pending", got)
	}
}

func TestExpireSweepsAcrossTenants(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	a, b := fixtureIn(t, db), fixtureIn(t, db)
	ofA, ofB, waits := a.propose(3), b.propose(2), b.propose(1)[0]
	a.overdue(ofA...)
	b.overdue(ofB...)

	first, err := approval.Expire(t.Context(), db, 4)
	second, err2 := approval.Expire(t.Context(), db, 4)
	third, err3 := approval.Expire(t.Context(), db, 4)

	if errors.Join(err, err2, err3) != nil || first != 4 || second != 1 || third != 0 {
		t.Errorf("Expire = %d, %d, %d (%v), want 4, 1, 0", first, second, third, errors.Join(err, err2, err3))
	}
	for o, ids := range map[fixture][]envelope.ActionID{a: ofA, b: ofB} {
		for _, id := range ids {
			v := o.view(id)
			if v.Phase != envelope.PhaseExpired || v.Envelope.Result.Status != envelope.StatusSkipped || v.DecidedBy != "system" || o.decisions(id) != 1 {
				t.Errorf("%s is %s, %s by %q with %d events", id, v.Phase, v.Envelope.Result.Status, v.DecidedBy, o.decisions(id))
			}
		}
	}
	if got := b.view(waits).Phase; got != envelope.PhasePending {
		t.Errorf("one that has time left is %s, want pending", got)
	}
}

// TestRacesHaveOneWinner lets two decisions race for each of many envelopes.
func TestRacesHaveOneWinner(t *testing.T) {
	t.Parallel()
	type move func(o fixture, id envelope.ActionID) error
	grant := func(o fixture, id envelope.ActionID) error {
		return o.grant(o.decider("ada"), id, "")
	}
	deny := func(o fixture, id envelope.ActionID) error {
		return o.service.Deny(o.t.Context(), o.decider("bob"), id, approval.Denial{})
	}
	undo := func(o fixture, id envelope.ActionID) error {
		return postgres.InTx(o.t.Context(), o.db, postgres.API(o.tenant), func(tx pgx.Tx) error {
			return outbox.Undo(o.t.Context(), tx, o.tenant, id, "agent")
		})
	}
	for name, test := range map[string]struct {
		moves [2]move
		// later reports whether the second decision may also succeed after the first.
		later bool
	}{
		"grant and deny": {moves: [2]move{grant, deny}},
		"two grants":     {moves: [2]move{grant, grant}},
		"two denials":    {moves: [2]move{deny, deny}},
		"deny and undo":  {moves: [2]move{deny, undo}},
		"grant and undo": {moves: [2]move{grant, undo}, later: true},
		"two undoings":   {moves: [2]move{undo, undo}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rounds = 60
			o := newSharedFixture(t)
			ids := o.propose(rounds)

			var won [2][rounds]bool
			for i := range rounds {
				var wg sync.WaitGroup
				for side, move := range test.moves {
					wg.Go(func() {
						err := move(o, ids[i])
						if err != nil && !errors.Is(err, fault.Conflict) {
							t.Errorf("move %d = %v", side, err)
						}
						won[side][i] = err == nil
					})
				}
				wg.Wait()
			}

			for i, id := range ids {
				a, b := won[0][i], won[1][i]
				if !a && !b || a && b && !test.later {
					t.Errorf("%s: won %t and %t, want one winner", id, a, b)
				}
				v := o.view(id)
				runs := v.Envelope.Approval == envelope.ApprovalGranted && v.Envelope.Result.Status == envelope.StatusPending
				if runs != (o.scheduled(id) == 1) {
					t.Errorf("%s is %s, %s and %d times on the schedule", id, v.Envelope.Approval, v.Envelope.Result.Status, o.scheduled(id))
				}
				winners := 0
				for _, w := range []bool{a, b} {
					if w {
						winners++
					}
				}
				if got := o.decisions(id); got != winners {
					t.Errorf("%s has %d events of decisions, want %d", id, got, winners)
				}
			}
		})
	}
}

func TestADecisionAndTheSweepHaveOneWinner(t *testing.T) {
	t.Parallel()
	const rounds = 60
	o := newSharedFixture(t)
	ids := o.propose(rounds)
	// Their time runs out one after the other while it is decided about them.
	o.exec("UPDATE actions SET approval_expires_at = clock_timestamp() + (row_number * interval '2 milliseconds') FROM (SELECT action_id, row_number() OVER (ORDER BY action_id) FROM actions) r WHERE r.action_id = actions.action_id")

	granted := make(map[envelope.ActionID]bool)
	swept := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, id := range ids {
			err := o.grant(o.decider("ada"), id, "")
			if err != nil && !errors.Is(err, fault.Gone) {
				t.Errorf("Grant = %v, want nil or fault.Gone", err)
			}
			granted[id] = err == nil
		}
	})
	wg.Go(func() {
		for range rounds {
			n, err := approval.Expire(t.Context(), o.db, 5)
			if err != nil {
				t.Errorf("Expire = %v", err)
			}
			swept += n
		}
	})
	wg.Wait()
	// The rest was refused as overdue, but has not been swept yet.
	rest, err := approval.Expire(t.Context(), o.db, rounds)
	if err != nil {
		t.Fatal(err)
	}

	for _, id := range ids {
		want := envelope.ApprovalExpired
		if granted[id] {
			want = envelope.ApprovalGranted
		}
		if got := o.view(id).Envelope.Approval; got != want || (o.scheduled(id) == 1) != granted[id] || o.decisions(id) != 1 {
			t.Errorf("%s is %s with %d events, want %s", id, got, o.decisions(id), want)
		}
	}
	if won := len(ids) - swept - rest; won != countTrue(granted) {
		t.Errorf("%d swept and %d granted of %d", swept+rest, countTrue(granted), rounds)
	}
}

func countTrue(m map[envelope.ActionID]bool) (n int) {
	for _, v := range m {
		if v {
			n++
		}
	}
	return n
}
