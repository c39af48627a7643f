package worker

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// schedule is where work is due, as far as the claimer knows: the buckets with
// due rows, and for each the due time up to which everything is claimed.
type schedule struct {
	queues []bucketQueue
	// idle is how long until a queue is due, when none is.
	idle time.Duration
	// lastBucket is the id of the bucket that was claimed from last.
	lastBucket int64
}

type bucketQueue struct {
	bucket  int64
	tenant  envelope.TenantID
	limited bool
	from    time.Time
}

// update replaces the queues by the buckets that a poll found. Rows that an
// earlier claim skipped, or whose lease expired, are among them again.
func (b *schedule) update(found []outbox.DueBucket, longest time.Duration) {
	b.queues, b.idle = b.queues[:0], longest
	for _, d := range found {
		switch {
		case d.Paused:
		case d.DueIn <= 0:
			b.queues = append(b.queues, bucketQueue{bucket: d.Bucket, tenant: d.Tenant, limited: d.Limited, from: d.From})
		default:
			b.idle = min(b.idle, d.DueIn)
		}
	}
}

// requests divides n rows among the tenants with work in equal shares, and a
// tenant's share among its queues; the first ones get the remainders. A tenant
// gets no more by having more buckets. The quotas add up to n.
func (b *schedule) requests(n int) []outbox.ClaimRequest {
	shares := b.shares(n)
	asked := make(map[envelope.TenantID]int, len(shares))
	var chosen []bucketQueue
	for _, l := range b.queues {
		if asked[l.tenant] < shares[l.tenant] {
			asked[l.tenant]++
			chosen = append(chosen, l)
		}
	}
	requests := make([]outbox.ClaimRequest, len(chosen))
	for i, l := range chosen {
		quota := (shares[l.tenant] + asked[l.tenant] - 1) / asked[l.tenant]
		shares[l.tenant] -= quota
		asked[l.tenant]--
		requests[i] = outbox.ClaimRequest{Bucket: l.bucket, From: l.from, Quota: quota, Limited: l.limited}
	}
	return requests
}

// shares divides n rows among the tenants that have queues, in their order.
func (b *schedule) shares(n int) map[envelope.TenantID]int {
	var tenants []envelope.TenantID
	shares := make(map[envelope.TenantID]int)
	for _, l := range b.queues {
		if _, seen := shares[l.tenant]; !seen {
			shares[l.tenant] = 0
			tenants = append(tenants, l.tenant)
		}
	}
	for i, t := range tenants {
		shares[t] = n / len(tenants)
		if i < n%len(tenants) {
			shares[t]++
		}
	}
	return shares
}

// claimed updates the queues after a claim: a queue that gave less than its
// quota is empty, or has no permit left; the others continue where the claim
// ended. Queues that were not asked come first next time, and the next poll
// begins with the first of them.
func (b *schedule) claimed(requests []outbox.ClaimRequest, items []outbox.Item) {
	got := make(map[int64]int, len(requests))
	last := make(map[int64]time.Time, len(requests))
	for i := range items {
		it := &items[i]
		got[it.Bucket]++
		if it.Due.After(last[it.Bucket]) {
			last[it.Bucket] = it.Due
		}
	}
	asked := make(map[int64]int, len(requests))
	for _, w := range requests {
		asked[w.Bucket] = w.Quota
	}
	var waiting, worked []bucketQueue
	for _, l := range b.queues {
		quota, ok := asked[l.bucket]
		switch {
		case !ok:
			waiting = append(waiting, l)
			continue
		case len(waiting) == 0:
			b.lastBucket = l.bucket
		}
		if got[l.bucket] >= quota {
			l.from = last[l.bucket]
			worked = append(worked, l)
		}
	}
	b.queues = append(waiting, worked...)
}
