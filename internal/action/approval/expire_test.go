package approval_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// times returns the times of a pending envelope, counted from its proposal.
func (o fixture) times(id envelope.ActionID) (wait, warn, escalate time.Duration) {
	o.t.Helper()
	after := func(column string) time.Duration {
		return time.Duration(one[float64](o, "SELECT coalesce(extract(epoch FROM "+column+" - a.created_at), 0)::float8 FROM actions a JOIN approvals p USING (tenant_id, action_id) WHERE action_id = $1",
			id.String())*float64(time.Second) + 0.5)
	}
	return after("a.approval_expires_at").Round(time.Millisecond), after("p.warn_at").Round(time.Millisecond), after("p.escalate_at").Round(time.Millisecond)
}

func TestReviewRulesSetTheTimes(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	if wait, warn, escalate := o.times(o.propose(1)[0]); wait != time.Hour || warn != 48*time.Minute || escalate != 0 {
		t.Errorf("without a rule: wait %s, warning after %s, escalation after %s", wait, warn, escalate)
	}

	o.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutReview(ctx, tx, o.tenant, settings.ReviewRule{
			Pattern: "src:act", Risk: envelope.RiskLow, Approvals: 1, Wait: new(envelope.Duration(24 * time.Hour)), Warn: new(envelope.Duration(time.Hour)), Escalate: new(envelope.Duration(2 * time.Hour)),
		}, "ada")
	})

	if wait, warn, escalate := o.times(o.propose(1)[0]); wait != 24*time.Hour || warn != 23*time.Hour || escalate != 2*time.Hour {
		t.Errorf("by the rule: wait %s, warning after %s, escalation after %s", wait, warn, escalate)
	}
	if wait, _, _ := o.times(o.accept(message(typo)).Action); wait != time.Hour {
		t.Errorf("another tool waits %s, want an hour", wait)
	}
}

// TestRemindTellsOnce calls Remind concurrently while other goroutines decide:
// each pending action has one reminder.
func TestRemindTellsOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	a, b := fixtureIn(t, db), fixtureIn(t, db)
	ofA, ofB := a.propose(20), b.propose(5)
	early, decided := b.propose(1)[0], ofA[0]
	a.exec("UPDATE approvals SET warn_at = now() - interval '1 second', escalate_at = now() - interval '1 second' WHERE action_id <> $1", early.String())
	if err := a.grant(a.person("ada"), decided, ""); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 8 {
				if _, err := approval.Remind(t.Context(), db, 3); err != nil {
					t.Errorf("Remind = %v", err)
				}
			}
		})
	}
	wg.Go(func() {
		for _, id := range ofA[10:] {
			if err := a.service.Deny(t.Context(), a.person("bob"), id, approval.Denial{}); err != nil {
				t.Errorf("Deny = %v", err)
			}
		}
	})
	wg.Wait()
	for left := 1; left > 0; {
		var err error
		if left, err = approval.Remind(t.Context(), db, 100); err != nil {
			t.Fatal(err)
		}
	}

	for _, id := range append(ofA[1:10:10], ofB...) {
		if warned, escalated := a.told(audit.Expiring, id), a.told(audit.Escalated, id); warned != 1 || escalated != 1 {
			t.Errorf("%s: %d warnings and %d escalations are told of, want one of each", id, warned, escalated)
		}
	}
	if a.told(audit.Expiring, decided)+a.told(audit.Escalated, decided)+a.told(audit.Expiring, early)+a.told(audit.Escalated, early) != 0 {
		t.Error("one that was decided, or has time left, is told of")
	}
	again := one[int](a, "SELECT count(1)::int FROM (SELECT FROM events e, jsonb_array_elements(e.items) i WHERE e.kind = 'expiring' GROUP BY i ->> 'action_id' HAVING count(1) > 1) g")
	if again != 0 {
		t.Errorf("%d are warned of twice", again)
	}
	if n := one[int](a, "SELECT count(1)::int FROM approvals WHERE warn_at <= now() OR escalate_at <= now()"); n != 0 {
		t.Errorf("%d are due still", n)
	}
}

// TestRetentionDeletesActionsWithTheirVotes: votes and edits hold payloads too.
func TestRetentionDeletesActionsWithTheirVotes(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	ids := o.propose(2)
	for _, id := range ids {
		if err := o.service.Edit(t.Context(), o.person("bob"), id, approval.Edit{Args: []byte(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
		if err := o.service.Deny(t.Context(), o.person("ada"), id, approval.Denial{IfMatch: approval.ETag(o.view(id))}); err != nil {
			t.Fatal(err)
		}
	}
	o.exec("UPDATE actions SET created_at = '2025-01-01', decided_at = '2025-01-01' WHERE action_id = $1", ids[0].String())
	o.exec("INSERT INTO retention (tenant_id, kind, days, action) VALUES ($1, 'actions', 30, 'delete')", o.tenant.String())

	err := postgres.InTx(t.Context(), o.db, postgres.Worker(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SELECT prune_actions(ARRAY[$1::uuid], ARRAY[$2::uuid])", o.tenant.String(), ids[0].String())
		return err
	})

	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"actions", "approvals", "votes"} {
		if gone, kept := one[int](o, "SELECT count(1)::int FROM "+table+" WHERE action_id = $1", ids[0].String()), one[int](o, "SELECT count(1)::int FROM "+table+" WHERE action_id = $1", ids[1].String()); gone != 0 || kept != 1 {
			t.Errorf("%s has %d of the one that was deleted and %d of the other, want 0 and 1", table, gone, kept)
		}
	}
}
