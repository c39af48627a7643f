package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// These tests pass time by moving stored times into the past. Intervals are
// minutes long, so that the duration of a test does not matter.

// blink bounds the duration of a test: in one transaction now() is constant,
// while the clock of grants advances.
const blink = time.Second

// put sets the limits of the bucket "limited" as an operator does, and
// returns its id.
func (fx fixture) put(b limits.Bucket) int64 {
	fx.T.Helper()
	if b.Name == "" {
		b.Name = "limited"
	}
	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error { return limits.PutBucket(fx.T.Context(), tx, fx.Tenant, b, "ada") })
	return outboxtest.One[int64](fx.Fixture, "SELECT bucket_id FROM buckets WHERE tenant_id = $1 AND name = $2", fx.Tenant.String(), b.Name)
}

// perMinute is a rate with a burst.
func perMinute(n, burst int) limits.Bucket {
	return limits.Bucket{Rate: &limits.Rate{Limit: n, Per: envelope.Duration(time.Minute), Burst: burst}}
}

// perDay is a rate limit of n calls a day, all of them at once: no permit returns while
// a test runs.
func perDay(n int) limits.Bucket {
	return limits.Bucket{Rate: &limits.Rate{Limit: n, Per: envelope.Duration(24 * time.Hour), Burst: n}}
}

// ceiling is a limit of n concurrent calls.
func ceiling(n int) limits.Bucket { return limits.Bucket{Concurrency: n} }

// daily is a limit of n calls a day in Berlin's time zone.
func daily(n int) limits.Bucket {
	return limits.Bucket{Calendar: &limits.Calendar{Limit: n, Every: limits.PeriodDay, Timezone: "Europe/Berlin"}}
}

// pass lets time pass for a bucket, its leases included.
func (fx fixture) pass(bucket int64, by time.Duration) {
	fx.T.Helper()
	fx.Exec(`UPDATE buckets SET tat = tat - make_interval(secs => $2), granted_at = granted_at - make_interval(secs => $2),
			closed_until = closed_until - make_interval(secs => $2),
			updated_at = updated_at - make_interval(secs => $2) WHERE bucket_id = $1`, bucket, by.Seconds())
	fx.Exec("UPDATE outbox SET lease_until = lease_until - make_interval(secs => $2) WHERE bucket_id = $1", bucket, by.Seconds())
	fx.EndClaims()
}

// aged returns an item whose permit was granted earlier by the given time.
func aged(it outbox.Item, by time.Duration) outbox.Item {
	it.Permit.GrantedAt = it.Permit.GrantedAt.Add(-by)
	return it
}

// ask claims up to most items from a bucket with limits.
func (fx fixture) ask(bucket int64, most int) []outbox.Item {
	fx.T.Helper()
	return fx.ClaimFrom(outbox.ClaimRequest{Bucket: bucket, Quota: most, Limited: true})
}

// due returns a bucket's result of DueBuckets; nil if it has no free row.
func (fx fixture) due(bucket int64) *outbox.DueBucket {
	fx.T.Helper()
	var found []outbox.DueBucket
	fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		found, err = outbox.DueBuckets(fx.T.Context(), tx, bucket-1, 1)
		return err
	})
	if len(found) == 0 || found[0].Bucket != bucket {
		return nil
	}
	return &found[0]
}

// back settles items without a call and hastens them.
func (fx fixture) back(items ...outbox.Item) {
	fx.T.Helper()
	batch := make([]outbox.Settlement, len(items))
	for i, it := range items {
		batch[i] = outbox.Release(it)
	}
	if n := len(fx.Settle(batch...)); n != len(items) {
		fx.T.Fatalf("%d of %d were put back", n, len(items))
	}
	fx.Hasten(outboxtest.ActionsOf(items)...)
}

func TestABucketGivesItsBurstAndThenATokenAnInterval(t *testing.T) {
	t.Parallel()
	type step struct {
		pass time.Duration
		want int
	}
	for name, test := range map[string]struct {
		limits limits.Bucket
		steps  []step
	}{
		"one a minute, over five boundaries": {perMinute(1, 1), []step{
			{0, 1}, {0, 0}, {58 * time.Second, 0}, {2 * time.Second, 1}, {0, 0}, {time.Minute, 1}, {time.Minute, 1}, {time.Minute, 1}, {time.Minute, 1}, {0, 0},
		}},
		"what was not used is kept up to the burst": {perMinute(6, 3), []step{
			{0, 3}, {0, 0}, {10 * time.Second, 1}, {20 * time.Second, 2}, {time.Hour, 3}, {0, 0},
		}},
		"a burst of all":                         {perMinute(60, 60), []step{{0, 60}, {0, 0}, {30 * time.Second, 30}, {30 * time.Second, 30}, {time.Minute, 60}}},
		"a third of a minute each":               {perMinute(3, 1), []step{{0, 1}, {19 * time.Second, 0}, {time.Second, 1}, {20 * time.Second, 1}}},
		"an interval without an end in decimals": {perMinute(7, 7), []step{{0, 7}, {7 * time.Second, 0}, {2 * time.Second, 1}, {time.Minute, 7}}},
		"one in 366 days": {limits.Bucket{Rate: &limits.Rate{Limit: 1, Per: envelope.Duration(366 * 24 * time.Hour)}}, []step{
			{0, 1}, {365 * 24 * time.Hour, 0}, {24 * time.Hour, 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			b := fx.put(test.limits)
			fx.QueueIn(b, envelope.EffectRead, 300)

			interval := time.Duration(test.limits.Rate.Per) / time.Duration(test.limits.Rate.Limit)
			began, granted, want := time.Now(), 0, 0
			for i, s := range test.steps {
				fx.pass(b, s.pass)
				waits := fx.due(b).DueIn
				granted += len(fx.ask(b, 200))
				want += s.want
				// The database's clock advances during the steps. No step is within half a
				// second of a permit, so only a slow machine adds permits, and never more than
				// the rate allows for the elapsed time.
				elapsed, extra := time.Since(began), 0
				if elapsed > 500*time.Millisecond {
					extra = int(elapsed/interval) + 1
				}
				if granted < want || granted > want+extra {
					t.Fatalf("step %d: %d were granted by now, want %d to %d", i, granted, want, want+extra)
				}
				if extra == 0 && (waits <= blink) != (s.want > 0) {
					t.Errorf("step %d: the next permit is said to come in %v, and %d were to be granted", i, waits, s.want)
				}
			}
		})
	}
}

func TestDueBucketsReturnsTheTimeOfTheNextToken(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(perMinute(2, 2))
	fx.QueueIn(b, envelope.EffectRead, 10)

	fx.ask(b, 1)
	half := fx.due(b).DueIn
	fx.ask(b, 10)
	none := fx.due(b).DueIn

	if half > blink || none < 29*time.Second || none > 31*time.Second {
		t.Errorf("with a permit left a look waits %v, with none %v; want 0 and about 30 s", half, none)
	}
}

func TestAGrantThatIsNotUsedUpIsNotSpent(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(perMinute(10, 10))
	fx.QueueIn(b, envelope.EffectRead, 3)

	first := len(fx.ask(b, 100))
	fx.QueueIn(b, envelope.EffectRead, 20)
	second, third := len(fx.ask(b, 5)), len(fx.ask(b, 100))

	if first != 3 || second != 5 || third != 2 {
		t.Errorf("granted %d, %d and %d, want 3 that were due, 5 that were asked for, and the 2 left", first, second, third)
	}
}

func TestABigBatchIsCutToTheTokens(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(limits.Bucket{Rate: &limits.Rate{Limit: 1500, Per: envelope.Duration(24 * time.Hour), Burst: 1500}})
	fx.QueueIn(b, envelope.EffectRead, 4000)

	first, second := len(fx.ask(b, 5000)), len(fx.ask(b, 5000))

	if first != 1500 || second != 0 {
		t.Errorf("granted %d and %d, want 1500 and none", first, second)
	}
}

func TestOneClaimGrantsForManyBuckets(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	var wants []outbox.ClaimRequest
	want, spends := make(map[int64]int), make(map[int64]bool)
	for i := range 60 {
		limits := limits.Bucket{Name: fmt.Sprintf("many.%d", i)}
		granted := 12
		switch i % 4 {
		case 0: // without limits
		case 1:
			limits.Rate, granted = perMinute(12, 1+i%9).Rate, 1+i%9
		case 2:
			limits.Concurrency, granted = 1+i%5, 1+i%5
		case 3:
			limits.Calendar, granted = daily(1+i%7).Calendar, 1+i%7
		}
		b := fx.put(limits)
		fx.QueueIn(b, envelope.EffectRead, 12)
		wants = append(wants, outbox.ClaimRequest{Bucket: b, Quota: 20, Limited: i%4 != 0})
		want[b], spends[b] = granted, limits.Rate != nil || limits.Calendar != nil
	}

	items := fx.ClaimFrom(wants...)

	got := make(map[int64]int)
	for _, it := range items {
		got[it.Bucket]++
		spent := it.Permit != (outbox.Permit{})
		if spent && it.Permit.Bucket != it.Bucket || spent != spends[it.Bucket] {
			t.Errorf("an item of bucket %d has the permit %+v", it.Bucket, it.Permit)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("granted per bucket (-want +got):\n%s", diff)
	}
	if again := fx.ClaimFrom(wants...); len(again) != 0 {
		t.Errorf("%d were granted right after", len(again))
	}
}

func TestTheTightestLimitDecides(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rate, calendar, ceiling, want int
	}{"the rate": {2, 5, 9, 2}, "the calendar": {5, 2, 9, 2}, "the ceiling": {9, 5, 2, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			limits := perMinute(test.rate, test.rate)
			limits.Calendar, limits.Concurrency = daily(test.calendar).Calendar, test.ceiling
			b := fx.put(limits)
			fx.QueueIn(b, envelope.EffectRead, 20)

			if got := len(fx.ask(b, 20)); got != test.want {
				t.Errorf("%d were granted, want %d", got, test.want)
			}
		})
	}
}

func TestCeilingsCountHeldCalls(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(ceiling(3))
	fx.QueueIn(b, envelope.EffectOnce, 40)
	free := func(when string, want int) []outbox.Item {
		t.Helper()
		items := fx.ask(b, 40)
		if len(items) != want {
			t.Fatalf("%s: %d places were given, want %d", when, len(items), want)
		}
		return items
	}

	held := free("at first", 3)
	free("when all are held", 0)
	fx.Settle(outboxtest.Sent(held[0]), outboxtest.Again(held[1], time.Hour))
	held = append(held[2:], free("after one was sent and one put back", 2)...)
	fx.back(held[0])
	held = append(held[1:], free("after one was given back", 1)...)
	if err := fx.Undo(held[0].Action); err != nil {
		t.Fatal(err)
	}
	held = append(held[1:], free("after one was undone", 1)...)
	fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) error {
		_, err := outbox.ReturnToApproval(t.Context(), tx, []outbox.ApprovalReturn{{Lease: held[0].Lease, ToolDigest: []byte{0}, Needed: 1, Wait: time.Hour, UnusedPermit: held[0].Permit}})
		return err
	})
	held = append(held[1:], free("after one returned to approval", 1)...)
	fx.Expire(held[0].Action)
	taken := free("after a lease ran out", 1)
	if got := outboxtest.One[int](fx.Fixture, "SELECT bucket_in_use($1, now())::int", b); got != 3 {
		t.Errorf("%d are in use, want 3", got)
	}
	fx.put(ceiling(5))
	held = append(held[1:], taken...)
	held = append(held, free("after the ceiling was raised", 2)...)
	fx.put(ceiling(2))
	free("after it was lowered", 0)
	fx.Settle(outboxtest.Sent(held[0]), outboxtest.Sent(held[1]))
	free("when one too many is still held", 0)
	fx.Settle(outboxtest.Sent(held[2]), outboxtest.Sent(held[3]))
	free("when there is a place again", 1)
}

func TestAClosedBucketGivesNothing(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]limits.Bucket{"without limits": {}, "with a rate": perMinute(9, 9), "with a ceiling": ceiling(9)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			b := fx.put(limits)
			fx.QueueIn(b, envelope.EffectRead, 9)
			limited := name != "without limits"
			first := fx.ClaimFrom(outbox.ClaimRequest{Bucket: b, Quota: 1, Limited: limited})
			held := outboxtest.Again(first[0], time.Hour)
			held.CloseBucketFor, held.CloseBucket = 10*time.Minute, b
			fx.Settle(held)

			closed := len(fx.ClaimFrom(outbox.ClaimRequest{Bucket: b, Quota: 9, Limited: limited}))
			waits := fx.due(b).DueIn
			fx.pass(b, 11*time.Minute)
			open := len(fx.ClaimFrom(outbox.ClaimRequest{Bucket: b, Quota: 3, Limited: limited}))

			if closed != 0 || open != 3 || waits < 9*time.Minute || waits > 10*time.Minute+time.Second {
				t.Errorf("while closed %d were granted and a look waits %v, afterwards %d; want 0, 10 minutes and 3", closed, waits, open)
			}
		})
	}
}

func TestAShorterHoldDoesNotShortenALongerOne(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(ceiling(5))
	fx.QueueIn(b, envelope.EffectRead, 3)
	items := fx.ask(b, 3)
	for i, hold := range []time.Duration{time.Hour, time.Minute, 100 * time.Hour} {
		s := outboxtest.Again(items[i], time.Minute)
		s.CloseBucketFor, s.CloseBucket = hold, b
		fx.Settle(s)
		want := max(time.Hour, min(hold, outbox.MaxBucketClosed))
		if got := fx.due(b).DueIn; got < want-time.Minute || got > want+time.Minute {
			t.Errorf("after a hold of %v it is closed for %v, want %v", hold, got, want)
		}
	}
}

func TestRetiredBucketYieldsItsRows(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(perMinute(2, 2))
	fx.QueueIn(b, envelope.EffectRead, 5)
	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error { return limits.RetireBucket(t.Context(), tx, fx.Tenant, "limited", "ada") })

	first := len(fx.ask(b, 5))
	fx.pass(b, time.Minute)
	second := len(fx.ask(b, 5))

	if first != 2 || second != 2 {
		t.Errorf("granted %d and %d, want 2 a minute also when it is retired", first, second)
	}
}

func TestChangedLimitsHoldAtTheNextClaim(t *testing.T) {
	t.Parallel()
	type step struct {
		put       *limits.Bucket
		pass      time.Duration
		ask, want int
	}
	to := func(b limits.Bucket, want int) step { return step{put: &b, ask: 100, want: want} }
	using := func(b limits.Bucket, ask int) step { return step{put: &b, ask: ask, want: ask} }
	after := func(by time.Duration, want int) step { return step{pass: by, ask: 100, want: want} }
	perSecond := limits.Bucket{Rate: &limits.Rate{Limit: 1, Per: envelope.Duration(time.Second), Burst: 1}}
	for name, steps := range map[string][]step{
		"five a minute to one": {
			to(perMinute(5, 5), 5), to(perMinute(1, 1), 0), after(58*time.Second, 0), after(2*time.Second, 1), after(time.Minute, 1),
		},
		"five a minute to one, with a permit left": {
			using(perMinute(5, 5), 3), to(perMinute(1, 1), 0), after(time.Minute, 1),
		},
		"one a minute to five": {
			// Used permits stay used at the new rate; the burst grows with it.
			to(perMinute(1, 1), 1), to(perMinute(5, 1), 0), after(11*time.Second, 0), after(time.Second, 1), after(12*time.Second, 1),
		},
		"one a minute to five with a burst of five": {
			to(perMinute(1, 1), 1), to(perMinute(5, 5), 4), after(12*time.Second, 1), after(time.Minute, 5),
		},
		"minutes to seconds": {to(perMinute(1, 1), 1), to(perSecond, 0), after(time.Second, 1)},
		"a long hold of the old rate is cut": {
			to(limits.Bucket{Rate: &limits.Rate{Limit: 1, Per: envelope.Duration(100 * time.Hour)}}, 1), to(perMinute(1, 1), 0), after(time.Minute, 1),
		},
		"no limit to a rate":      {to(limits.Bucket{}, 100), to(perMinute(1, 1), 1), after(0, 0), after(time.Minute, 1)},
		"a rate to no limit":      {to(perMinute(1, 1), 1), to(limits.Bucket{}, 100)},
		"a calendar that shrinks": {to(daily(5), 5), to(daily(3), 0), to(daily(7), 2)},
		"the same once more":      {using(perMinute(2, 2), 1), to(perMinute(2, 2), 1), to(perMinute(2, 2), 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			var b int64
			limited := false
			for i, s := range steps {
				if s.put != nil {
					b = fx.put(*s.put)
					limited = *s.put != limits.Bucket{}
					fx.QueueIn(b, envelope.EffectRead, 100)
				}
				fx.pass(b, s.pass)
				if got := len(fx.ClaimFrom(outbox.ClaimRequest{Bucket: b, Quota: s.ask, Limited: limited})); got != s.want {
					t.Errorf("step %d: %d were granted, want %d", i, got, s.want)
				}
			}
		})
	}
}

func TestLimitChangedSinceDueBucketsGrantsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after limits.Bucket
		limited       bool
	}{
		"set since":     {limits.Bucket{}, perMinute(1, 1), false},
		"lifted since":  {perMinute(1, 1), limits.Bucket{}, true},
		"a new ceiling": {limits.Bucket{}, ceiling(1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			b := fx.put(test.before)
			fx.QueueIn(b, envelope.EffectRead, 20)
			look := fx.due(b)
			fx.put(test.after)

			stale := len(fx.ClaimFrom(outbox.ClaimRequest{Bucket: b, Quota: 20, Limited: look.Limited}))
			fresh := len(fx.ClaimFrom(outbox.ClaimRequest{Bucket: b, Quota: 20, Limited: fx.due(b).Limited}))

			want := 1
			if test.limited {
				want = 20
			}
			if look.Limited != test.limited || stale != 0 || fresh != want {
				t.Errorf("with the stale look %d were granted, with a new one %d; want none and %d", stale, fresh, want)
			}
		})
	}
}
