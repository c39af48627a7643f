package worker

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

func TestScheduleReturnsDueQueuesAndTheNextTime(t *testing.T) {
	t.Parallel()
	var b schedule

	b.update([]outbox.DueBucket{{Bucket: 1, DueIn: -time.Second}, {Bucket: 2, DueIn: 5 * time.Second}, {Bucket: 3}, {Bucket: 4, DueIn: 3 * time.Second}, {Bucket: 5, Paused: true}}, time.Minute)

	if diff := cmp.Diff([]bucketQueue{{bucket: 1}, {bucket: 3}}, b.queues, cmp.AllowUnexported(bucketQueue{})); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	if b.idle != 3*time.Second {
		t.Errorf("idle = %v, want 3s", b.idle)
	}
	b.update(nil, time.Minute)
	if len(b.queues) != 0 || b.idle != time.Minute {
		t.Errorf("schedule of nothing = %+v", b)
	}
}

// TestScheduleEmptiesEveryQueue plays claims against buckets of random depth: the
// shares are fair and add up, and every row is claimed once, in order.
func TestScheduleEmptiesEveryQueue(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		depth, tenant := make(map[int64]int), make(map[int64]envelope.TenantID)
		total := 0
		var found []outbox.DueBucket
		for bucket := range int64(rapid.IntRange(1, 12).Draw(t, "buckets")) {
			depth[bucket] = rapid.IntRange(1, 40).Draw(t, "depth")
			total += depth[bucket]
			tenant[bucket] = envelope.TenantID{byte(rapid.IntRange(1, 4).Draw(t, "tenant"))}
			found = append(found, outbox.DueBucket{Bucket: bucket, Tenant: tenant[bucket], From: due(0)})
		}
		next := make(map[int64]int)
		var b schedule
		b.update(found, time.Minute)

		for got := 0; len(b.queues) > 0; {
			n := rapid.IntRange(1, 30).Draw(t, "slots")
			wants := b.requests(n)

			sum, of := 0, make(map[envelope.TenantID]int)
			for _, l := range b.queues {
				of[l.tenant] += 0
			}
			for _, w := range wants {
				sum += w.Quota
				of[tenant[w.Bucket]] += w.Quota
				if w.Quota < 1 || w.From.After(due(next[w.Bucket])) {
					t.Fatalf("bucket %d is asked for %d from %v, with a row at %v not claimed yet", w.Bucket, w.Quota, w.From, due(next[w.Bucket]))
				}
			}
			shares := slices.Sorted(maps.Values(of))
			if sum != n || shares[len(shares)-1]-shares[0] > 1 {
				t.Fatalf("wants(%d) = %+v, shares of the tenants %v; want them equal", n, wants, shares)
			}
			if !slices.ContainsFunc(wants, func(w outbox.ClaimRequest) bool { return w.Bucket == b.queues[0].bucket }) {
				t.Fatalf("wants(%d) = %+v leaves out the first queue, %d", n, wants, b.queues[0].bucket)
			}
			var items []outbox.Item
			for _, w := range wants {
				for range min(w.Quota, depth[w.Bucket]-next[w.Bucket]) {
					items = append(items, outbox.Item{Bucket: w.Bucket, Due: due(next[w.Bucket])})
					next[w.Bucket]++
				}
			}
			b.claimed(wants, items)
			if got += len(items); got > total {
				t.Fatalf("%d rows were claimed of %d", got, total)
			}
		}

		for bucket, n := range depth {
			if next[bucket] != n {
				t.Fatalf("bucket %d was left at row %d of %d", bucket, next[bucket], n)
			}
		}
	})
}

// TestScheduleKeepsBothOrders simulates claims from a bucket with awaited and
// other rows: every row is claimed once, and while both kinds are due each has its
// part of every claim.
func TestScheduleKeepsBothOrders(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		// The awaited rows are due behind the others.
		depth := [2]int{rapid.IntRange(0, 200).Draw(t, "others"), rapid.IntRange(0, 200).Draw(t, "awaited")}
		at := func(awaited, row int) time.Time { return due(1 + row + awaited*depth[0]) }
		var next [2]int
		var b schedule
		look := func() {
			found := outbox.DueBucket{Bucket: 1}
			if next[1] < depth[1] {
				found.AwaitedFrom, found.From = at(1, next[1]), at(1, next[1])
			}
			if next[0] < depth[0] {
				found.From = at(0, next[0])
			}
			b.update(nil, time.Minute)
			if next != depth {
				b.update([]outbox.DueBucket{found}, time.Minute)
			}
		}

		for look(); len(b.queues) > 0; {
			w := b.requests(rapid.IntRange(1, 60).Draw(t, "slots"))[0]
			ordered, awaited := w.Split()
			before, both := next, next[0] < depth[0] && next[1] < depth[1]
			var items []outbox.Item
			take := func(kind, n int) {
				for ; n > 0 && next[kind] < depth[kind]; n-- {
					items = append(items, outbox.Item{Bucket: 1, Due: at(kind, next[kind]), Awaited: kind == 1})
					next[kind]++
				}
			}
			take(1, awaited)
			left := depth[0] - next[0]
			take(0, ordered)
			take(1, ordered-left) // the due order continues with awaited rows
			if both && !w.AwaitedFrom.IsZero() && !w.AwaitedOnly {
				if tenth := w.Quota / outbox.Turns; next[0]-before[0] < min(tenth, left) || next[1]-before[1] < min(w.Quota-tenth-1, depth[1]-before[1]) {
					t.Fatalf("of %d, %d in due order and %d awaited were claimed of %d and %d", w.Quota, next[0]-before[0], next[1]-before[1], left, depth[1]-before[1])
				}
			}
			if b.claimed([]outbox.ClaimRequest{w}, items); len(b.queues) == 0 {
				look()
			}
		}

		if next != depth {
			t.Fatalf("%v rows were claimed of %v", next, depth)
		}
	})
}

// TestScheduleLeavesABucketWithoutPermits has a bucket that yielded nothing.
func TestScheduleLeavesABucketWithoutPermits(t *testing.T) {
	t.Parallel()
	var b schedule
	b.update([]outbox.DueBucket{{Bucket: 1, Limited: true, From: due(1), AwaitedFrom: due(2)}}, time.Minute)

	b.claimed(b.requests(1), nil)

	if len(b.queues) != 0 {
		t.Errorf("queues = %+v, want none before the next look", b.queues)
	}
}

func due(row int) time.Time { return time.Unix(int64(row), 0) }

// TestWorkersThatFindNothingPollLater has notified polls that find nothing, and
// then work.
func TestWorkersThatFindNothingPollLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p patience
		polled := make(chan struct{}, 2)
		waits := func() time.Duration {
			began := time.Now()
			p.notify(func() { polled <- struct{}{} })
			<-polled
			return time.Since(began)
		}
		for range freeMisses + 1 {
			if d := waits(); d != 0 {
				t.Fatalf("waits %s after fewer than %d looks for nothing", d, freeMisses)
			}
			p.looked(false)
		}
		p.looked(false) // of the worker's own accord
		var longest time.Duration
		for range 200 {
			longest = max(longest, waits())
			p.looked(false)
		}
		if longest <= patienceStep || longest > patienceMost+time.Millisecond {
			t.Errorf("waits %s at most, want up to %s", longest, patienceMost)
		}

		p.looked(true)

		if d := waits(); d != 0 {
			t.Errorf("waits %s after it found work", d)
		}
	})
}
