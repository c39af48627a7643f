package worker

import (
	"time"

	"github.com/countersign-dev/countersign/internal/outbox"
)

// board is what the claimer knows of where work is due: the buckets with due
// rows, and for each the place before which it has claimed everything.
type board struct {
	lanes []lane
	// idle is how long until something is due, when no lane is.
	idle time.Duration
	// turn is the bucket that was asked last; those after it are next.
	turn int64
}

type lane struct {
	bucket int64
	from   time.Time
}

// show takes over what a look found. Rows that an earlier claim skipped, or
// whose lease ran out, are found by it again.
func (b *board) show(found []outbox.Due, longest time.Duration) {
	b.lanes, b.idle = b.lanes[:0], longest
	for _, d := range found {
		if d.In <= 0 {
			b.lanes = append(b.lanes, lane{d.Bucket, d.From})
		} else {
			b.idle = min(b.idle, d.In)
		}
	}
}

// wants divides n rows among the lanes in equal shares; what is left over by
// the division goes to the first ones.
func (b *board) wants(n int) []outbox.Want {
	lanes := b.lanes[:min(n, len(b.lanes))]
	wants := make([]outbox.Want, len(lanes))
	for i, l := range lanes {
		share := n / len(lanes)
		if i < n%len(lanes) {
			share++
		}
		wants[i] = outbox.Want{Bucket: l.bucket, From: l.from, Quota: share}
	}
	return wants
}

// claimed moves the lanes on: one that gave less than it was asked for is
// empty, the others go on where the claim ended. Lanes that were not asked
// come first next time.
func (b *board) claimed(wants []outbox.Want, items []outbox.Item) {
	got := make(map[int64]int, len(wants))
	last := make(map[int64]time.Time, len(wants))
	for i := range items {
		it := &items[i]
		got[it.Bucket]++
		if it.Due.After(last[it.Bucket]) {
			last[it.Bucket] = it.Due
		}
	}
	if len(wants) > 0 {
		b.turn = wants[len(wants)-1].Bucket
	}
	next := append([]lane(nil), b.lanes[len(wants):]...)
	for _, w := range wants {
		if got[w.Bucket] >= w.Quota {
			next = append(next, lane{w.Bucket, last[w.Bucket]})
		}
	}
	b.lanes = next
}
