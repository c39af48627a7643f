package outbox

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Permit is that of a bucket with a rate or a calendar for a claimed envelope. The
// zero Permit is of a bucket without either.
type Permit struct {
	Bucket int64
	// GrantedAt is the time of the grant, by the database's clock.
	GrantedAt time.Time
}

// grant locks the requested buckets that have limits and computes the permits of
// each. It returns the requests that can be met at least in part, with limited
// ones cut down to their grant, and the times of the grants that take permits. It uses two
// statements, because only a statement that begins after the lock sees the state
// after the previous grant.
func grant(ctx context.Context, tx pgx.Tx, requests []ClaimRequest) (open []ClaimRequest, at map[int64]time.Time, err error) {
	var limited []int64
	for _, w := range requests {
		if w.Limited {
			limited = append(limited, w.Bucket)
		}
	}
	if len(limited) == 0 {
		return requests, nil, nil
	}
	q := dbsqlc.New()
	locked, err := q.BucketLock(ctx, tx, limited)
	if err != nil {
		return nil, nil, err
	}
	left := make(map[int64]int, len(locked))
	at = make(map[int64]time.Time, len(locked))
	if len(locked) > 0 {
		rows, err := q.BucketGrant(ctx, tx, locked)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rows {
			left[r.BucketID] = int(r.Granted)
			if r.Spends {
				at[r.BucketID] = r.At
			}
		}
	}
	open = make([]ClaimRequest, 0, len(requests))
	for _, w := range requests {
		if w.Limited {
			w.Quota = min(w.Quota, left[w.Bucket])
		}
		if w.Quota > 0 {
			open = append(open, w)
		}
	}
	return open, at, nil
}

// takePermits takes the permits of claimed items and sets each item's permit.
func takePermits(ctx context.Context, tx pgx.Tx, items []Item, at map[int64]time.Time) error {
	taken := make(map[int64]int32)
	for i := range items {
		it := &items[i]
		if granted, spends := at[it.Bucket]; spends {
			taken[it.Bucket]++
			it.Permit = Permit{Bucket: it.Bucket, GrantedAt: granted}
		}
	}
	if len(taken) == 0 {
		return nil
	}
	p := &dbsqlc.BucketSpendParams{}
	for bucket, n := range taken {
		p.BucketIds, p.GrantedAt, p.Counts = append(p.BucketIds, bucket), append(p.GrantedAt, at[bucket]), append(p.Counts, n)
	}
	return dbsqlc.New().BucketSpend(ctx, tx, p)
}

// lockBuckets locks all buckets to which a batch returns permits or which it
// closes, in one order and before the first change, so that two batches cannot
// deadlock.
func lockBuckets(ctx context.Context, tx pgx.Tx, permits map[Permit]int64, closings map[int64]time.Duration) error {
	if len(permits) == 0 && len(closings) == 0 {
		return nil
	}
	ids := slices.Collect(maps.Keys(closings))
	for u := range permits {
		ids = append(ids, u.Bucket)
	}
	_, err := dbsqlc.New().BucketLockAll(ctx, tx, ids)
	return err
}

// returnPermits returns permits that were not used to their buckets, which must be
// locked.
func returnPermits(ctx context.Context, tx pgx.Tx, permits map[Permit]int64) error {
	if len(permits) == 0 {
		return nil
	}
	p := &dbsqlc.BucketReturnParams{}
	for u, n := range permits {
		p.BucketIds, p.GrantedAt, p.Counts = append(p.BucketIds, u.Bucket), append(p.GrantedAt, u.GrantedAt), append(p.Counts, n)
	}
	return dbsqlc.New().BucketReturn(ctx, tx, p)
}

// MaxBucketClosed bounds the time for which one response of a provider closes a
// bucket. The envelope that got the response waits for the full time.
const MaxBucketClosed = 24 * time.Hour

// closeBuckets closes locked buckets, because a provider asked callers to wait.
func closeBuckets(ctx context.Context, tx pgx.Tx, buckets map[int64]time.Duration) error {
	if len(buckets) == 0 {
		return nil
	}
	p := &dbsqlc.BucketCloseParams{Cause: WaitsRetryAfter}
	for bucket, d := range buckets {
		p.BucketIds, p.Seconds = append(p.BucketIds, bucket), append(p.Seconds, min(d, MaxBucketClosed).Seconds())
	}
	return dbsqlc.New().BucketClose(ctx, tx, p)
}

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"outbox_pkey": fault.New(fault.Conflict, "the action is already in the outbox"),
}
