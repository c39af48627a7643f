package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// queueAwaited queues awaited actions behind those that are due.
func (fx fixture) queueAwaited(bucket int64, n int) []envelope.ActionID {
	fx.T.Helper()
	ids := fx.QueueIn(bucket, envelope.EffectKeyed, n)
	fx.Exec("UPDATE outbox SET awaited = true, next_attempt_at = next_attempt_at + interval '30 seconds' WHERE action_id = ANY ($1::uuid[])", outboxtest.Texts(ids))
	return ids
}

func TestAwaitedActionsPassNineInTen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		turn, quota      int
		ordered, awaited int
	}{
		"nine and one":                 {0, 10, 1, 9},
		"eighteen and two, in between": {3, 20, 2, 18},
		"the next nine":                {0, 9, 0, 9},
		"the tenth":                    {9, 1, 1, 0},
		"the first":                    {0, 1, 0, 1},
		"the tenth and another":        {9, 2, 1, 1},
		"all, and what is left":        {0, 500, 25, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			bulk, awaited := fx.Queue(envelope.EffectKeyed, 25), fx.queueAwaited(fx.Bucket, 30)

			items := fx.ClaimFrom(outbox.ClaimRequest{Bucket: fx.Bucket, AwaitedFrom: fx.due(fx.Bucket).AwaitedFrom, Quota: test.quota, Turn: test.turn})

			// Within each kind, the rows that have been due the longest.
			want := slices.Sorted(slices.Values(outboxtest.Texts(slices.Concat(bulk[:test.ordered], awaited[:test.awaited]))))
			if diff := cmp.Diff(want, sorted(items)); diff != "" {
				t.Errorf("Claim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSplitKeepsTheRatioOverManyClaims(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		quota := rapid.IntRange(1, 1000).Draw(t, "quota")
		sum := 0
		for turn := range outbox.Turns {
			ordered, awaited := outbox.ClaimRequest{AwaitedFrom: time.Unix(1, 0), Quota: quota, Turn: turn}.Split()
			if ordered+awaited != quota || ordered < quota/outbox.Turns || ordered > quota/outbox.Turns+1 {
				t.Fatalf("Split of %d at turn %d = %d, %d", quota, turn, ordered, awaited)
			}
			sum += ordered
		}
		if sum != quota {
			t.Fatalf("over all turns %d of %d are in due order, want a tenth", sum, outbox.Turns*quota)
		}
	})
}

func TestActionDueInBothOrdersIsClaimedOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectKeyed, 3)
	fx.Exec("UPDATE outbox SET awaited = true WHERE bucket_id = $1", fx.Bucket)

	items := fx.ClaimFrom(outbox.ClaimRequest{Bucket: fx.Bucket, AwaitedFrom: fx.due(fx.Bucket).AwaitedFrom, Quota: 40})

	fences := make([]int64, len(items))
	for i, it := range items {
		fences[i] = it.Fence
	}
	if diff := cmp.Diff([]int64{1, 1, 1}, fences); diff != "" {
		t.Errorf("fences of what was claimed (-want +got):\n%s", diff)
	}
}

func TestLookFindsTheFirstAwaitedActionThatIsDue(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectKeyed, 2)
	if from := fx.due(fx.Bucket).AwaitedFrom; !from.IsZero() {
		t.Errorf("AwaitedFrom = %v where nobody waits, want none", from)
	}
	ids := fx.queueAwaited(fx.Bucket, 3)
	first := func() time.Time {
		return outboxtest.One[time.Time](fx.Fixture, "SELECT min(next_attempt_at) FROM outbox WHERE awaited AND lease_until IS NULL")
	}

	if got := fx.due(fx.Bucket).AwaitedFrom; !got.Equal(first()) {
		t.Errorf("AwaitedFrom = %v, want %v", got, first())
	}
	fx.ClaimFrom(outbox.ClaimRequest{Bucket: fx.Bucket, AwaitedFrom: first(), AwaitedOnly: true, Quota: 1})
	if got := fx.due(fx.Bucket).AwaitedFrom; !got.Equal(first()) {
		t.Errorf("AwaitedFrom = %v with the first leased, want %v", got, first())
	}
	fx.Exec("UPDATE outbox SET next_attempt_at = now() + interval '1 second' WHERE action_id = ANY ($1::uuid[])", outboxtest.Texts(ids))
	if got := fx.due(fx.Bucket); got == nil || !got.AwaitedFrom.IsZero() || got.DueIn > 0 {
		t.Errorf("look before the awaited ones are due = %+v, want the others", got)
	}
}

// TestLimitsHoldAwaitedActionsToo has a bucket with three permits, and then none.
func TestLimitsHoldAwaitedActionsToo(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	bucket := fx.put(limits.Bucket{Rate: &limits.Rate{Limit: 3, Per: envelope.Duration(time.Hour), Burst: 3}})
	bulk, awaited := fx.QueueIn(bucket, envelope.EffectKeyed, 5), fx.queueAwaited(bucket, 5)
	ask := outbox.ClaimRequest{Bucket: bucket, AwaitedFrom: fx.due(bucket).AwaitedFrom, Quota: 100, Turn: 8, Limited: true}

	first, second := fx.ClaimFrom(ask), fx.ClaimFrom(ask)

	want := slices.Sorted(slices.Values(outboxtest.Texts(slices.Concat(bulk[:1], awaited[:2]))))
	if diff := cmp.Diff(want, sorted(first)); diff != "" {
		t.Errorf("three permits (-want +got):\n%s", diff)
	}
	if len(second) != 0 {
		t.Errorf("without a permit %d were claimed, want none", len(second))
	}
	if got := fx.due(bucket); got.DueIn <= 0 {
		t.Errorf("look = %+v, want the bucket closed", got)
	}
}

func TestActionThatGoesBackStaysAwaited(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ids := fx.queueAwaited(fx.Bucket, 3)
	items := fx.Claim(3)

	fx.Settle(outbox.Release(items[0]),
		outbox.Settlement{Lease: items[1].Lease, Status: envelope.StatusPending, Attempt: 1, WaitsFor: outbox.WaitsRetry})
	fx.Expire(items[2].Action)

	again := fx.ClaimFrom(outbox.ClaimRequest{Bucket: fx.Bucket, AwaitedFrom: time.Unix(1, 0), AwaitedOnly: true, Quota: 10})
	if diff := cmp.Diff(outboxtest.Texts(ids), sorted(again)); diff != "" {
		t.Errorf("put back, tried again, and lost by a worker (-want +got):\n%s", diff)
	}
}

func TestEndWaitReturnsUnapprovedActions(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	proposed, approved := fx.queueAwaited(fx.Bucket, 1)[0], fx.Propose(fx.Bucket, envelope.EffectKeyed, envelope.ApprovalGranted, 1)[0]
	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error { return outbox.Enqueue(t.Context(), tx, fx.Tenant, approved) })

	for _, id := range []envelope.ActionID{proposed, approved} {
		fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error { return outbox.EndWait(t.Context(), tx, fx.Tenant, id) })
	}

	if got := outboxtest.One[string](fx.Fixture, "SELECT string_agg(action_id::text, ' ') FROM outbox WHERE awaited"); got != approved.String() {
		t.Errorf("awaited: %s, want only what was approved, %s", got, approved)
	}
}
