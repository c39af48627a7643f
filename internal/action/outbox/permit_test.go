package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// returnToApproval sends items to a person.
func (fx fixture) returnToApproval(items ...outbox.Item) {
	fx.T.Helper()
	var returns []outbox.ApprovalReturn
	for _, it := range items {
		returns = append(returns, outbox.ApprovalReturn{Lease: it.Lease, ToolDigest: []byte{0}, Needed: 1, Wait: time.Hour, UnusedPermit: it.Permit})
	}
	fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) error {
		_, err := outbox.ReturnToApproval(fx.T.Context(), tx, returns)
		return err
	})
}

func TestUnusedTokensAreReturned(t *testing.T) {
	t.Parallel()
	settle := func(s func(it outbox.Item) outbox.Settlement) func(fixture, outbox.Item) {
		return func(fx fixture, it outbox.Item) { fx.Settle(s(it)) }
	}
	deferred := source.Outcome{Kind: source.KindRetry, Deferred: true, Code: source.CodeBreakerOpen, RetryAfter: time.Hour}
	failed := source.Outcome{Kind: source.KindRetry, Code: source.CodeUnreachable}
	for name, test := range map[string]struct {
		end  func(fx fixture, it outbox.Item)
		back int
	}{
		"when it is skipped":  {settle(func(it outbox.Item) outbox.Settlement { return outbox.Skip(it, "deadline", "late") }), 1},
		"when it has to wait": {settle(func(it outbox.Item) outbox.Settlement { return outbox.Defer(it, "quiet_hours", time.Hour) }), 1},
		"when it is given back": {settle(func(it outbox.Item) outbox.Settlement {
			it.Due = time.Time{}
			return outbox.Defer(it, outbox.WaitsStart, time.Hour)
		}), 1},
		"when a breaker deferred it": {settle(func(it outbox.Item) outbox.Settlement {
			return outbox.SettlementOf(it, deferred, 0, outbox.DefaultRetry())
		}), 1},
		"when it returns to approval": {func(fx fixture, it outbox.Item) { fx.returnToApproval(it) }, 1},
		"not when it was sent":        {settle(outboxtest.Sent), 0},
		"not when it failed": {settle(func(it outbox.Item) outbox.Settlement {
			return outbox.SettlementOf(it, failed, 0, outbox.DefaultRetry())
		}), 0},
		"not when its lease was lost": {func(fx fixture, it outbox.Item) {
			it.Fence--
			fx.Settle(outbox.Defer(it, "quiet_hours", time.Hour))
			fx.returnToApproval(it)
		}, 0},
		"not twice": {func(fx fixture, it outbox.Item) {
			wait := outbox.Defer(it, "quiet_hours", time.Hour)
			fx.Settle(wait)
			fx.Settle(wait)
			fx.returnToApproval(it)
		}, 1},
	} {
		for kind, limits := range map[string]limits.Bucket{"rate": perDay(1), "rate with a burst": perDay(4), "calendar": daily(3)} {
			t.Run(name+" to a "+kind, func(t *testing.T) {
				t.Parallel()
				fx := newFixture(t)
				b := fx.put(limits)
				fx.QueueIn(b, envelope.EffectRead, 20)
				items := fx.ask(b, 20)

				test.end(fx, items[0])

				waits := fx.due(b).DueIn
				if got := len(fx.ask(b, 20)); got != test.back {
					t.Errorf("%d more were granted, want %d", got, test.back)
				}
				if (waits <= blink) != (test.back > 0) {
					t.Errorf("a look waits %v, and %d permits are there", waits, test.back)
				}
			})
		}
	}
}

func TestReturningToApprovalGivesBackNoPermitOfAnotherTenant(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	other := fixture{outboxtest.NewIn(t, fx.DB)}
	b, theirs := fx.put(daily(2)), other.put(daily(2))
	id, own := fx.QueueIn(b, envelope.EffectRead, 3)[0], other.QueueIn(theirs, envelope.EffectRead, 3)[0]
	// Tenants choose their ids; two may have the same one.
	for _, table := range []string{"actions", "outbox"} {
		fx.Exec("UPDATE "+table+" SET action_id = $1 WHERE action_id = $2", id.String(), own.String())
	}
	items := slices.Concat(fx.ask(b, 2), other.ask(theirs, 2))
	items = slices.DeleteFunc(items, func(it outbox.Item) bool { return it.Action != id })
	stale := slices.IndexFunc(items, func(it outbox.Item) bool { return it.Tenant == other.Tenant })
	items[stale].Fence-- // its lease was lost, and only the other one returns to approval

	fx.returnToApproval(items...)

	if mine, its := len(fx.ask(b, 5)), len(other.ask(theirs, 5)); mine != 1 || its != 0 {
		t.Errorf("%d more were granted to the tenant whose envelope returned to approval, %d to the other; want 1 and none", mine, its)
	}
}

// TestPermitsCountedAsIdleAreNotReturned returns permits late, when the
// bucket has filled up in the meantime. The bucket never has more than if they
// had not been granted; permits returned after a later grant may be lost.
func TestPermitsCountedAsIdleAreNotReturned(t *testing.T) {
	t.Parallel()
	const every = 6 * time.Second // ten a minute
	late := func(items []outbox.Item, by time.Duration) []outbox.Settlement {
		var batch []outbox.Settlement
		for _, it := range items {
			batch = append(batch, outbox.Defer(aged(it, by), "quiet_hours", time.Hour))
		}
		return batch
	}
	for name, test := range map[string]struct {
		burst       int
		play        func(fx fixture, bucket int64)
		least, most int
	}{
		"a whole burst when it is full again": {10, func(fx fixture, b int64) {
			items := fx.ask(b, 10)
			fx.pass(b, 10*every)
			fx.Settle(late(items, 10*every)...)
		}, 10, 10},
		"in two parts": {10, func(fx fixture, b int64) {
			items := fx.ask(b, 10)
			fx.pass(b, 5*every)
			fx.ask(b, 5) // used
			fx.Settle(late(items[:5], 5*every)...)
			fx.Settle(late(items[5:], 5*every)...)
		}, 0, 5},
		"one by one": {10, func(fx fixture, b int64) {
			items := fx.ask(b, 10)
			fx.pass(b, 5*every)
			fx.ask(b, 5) // used
			for i := range items {
				fx.Settle(late(items[i:i+1], 5*every)...)
			}
		}, 0, 5},
		"of two claims": {2, func(fx fixture, b int64) {
			first, second := fx.ask(b, 1), fx.ask(b, 1)
			fx.Settle(late(first, 0)...)
			fx.pass(b, every+time.Second)
			fx.ask(b, 1) // used
			fx.Settle(late(second, every+time.Second)...)
		}, 0, 1},
		"of two claims in one batch": {2, func(fx fixture, b int64) {
			first, second := fx.ask(b, 1), fx.ask(b, 1)
			fx.pass(b, every+time.Second)
			fx.ask(b, 1) // used
			fx.Settle(append(late(first, every+time.Second), late(second, every+time.Second)...)...)
		}, 0, 1},
		"behind one that is used": {1, func(fx fixture, b int64) {
			first := fx.ask(b, 1)
			fx.pass(b, every)
			fx.ask(b, 1) // used
			fx.Settle(late(first, every)...)
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			b := fx.put(perMinute(10, test.burst))
			fx.QueueIn(b, envelope.EffectRead, 60)

			test.play(fx, b)

			if got := len(fx.ask(b, 60)); got < test.least || got > test.most {
				t.Errorf("%d were granted afterwards, want %d to %d", got, test.least, test.most)
			}
		})
	}
}

func TestTokensOfOtherLimitsAreNotReturned(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, after limits.Bucket }{
		"a rate":                 {perMinute(4, 4), perMinute(3, 3)},
		"a rate that comes back": {perMinute(4, 4), daily(4)},
		"a calendar":             {daily(4), daily(3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			b := fx.put(test.before)
			fx.QueueIn(b, envelope.EffectRead, 20)
			items := fx.ask(b, 4)
			fx.put(test.after)
			first := len(fx.ask(b, 20))

			var batch []outbox.Settlement
			for _, it := range items {
				batch = append(batch, outbox.Skip(it, "deadline", "late"))
			}
			fx.Settle(batch...)

			if got := len(fx.ask(b, 20)); got != 0 {
				t.Errorf("after %d under the new limits %d more were granted, want none", first, got)
			}
		})
	}
}

func TestTokensOfAnotherPeriodAreNotReturned(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(daily(2))
	fx.QueueIn(b, envelope.EffectRead, 20)
	yesterday := fx.ask(b, 2)
	fx.Exec("UPDATE buckets SET calendar_from = calendar_from - interval '1 day', updated_at = updated_at - interval '2 days' WHERE bucket_id = $1", b)
	today := fx.ask(b, 20)

	for _, it := range yesterday {
		fx.Settle(outbox.Skip(aged(it, 24*time.Hour), "deadline", "late"))
	}

	if got := len(fx.ask(b, 20)); len(today) != 2 || got != 0 {
		t.Errorf("today %d were granted, and %d more when yesterday's came back; want 2 and none", len(today), got)
	}
}
