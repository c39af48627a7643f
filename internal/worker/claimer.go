package worker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// claimer claims for a pipeline: it finds due buckets, claims as many rows as there
// are slots for, and sleeps while nothing is due. It belongs to one goroutine.
type claimer struct {
	*Pipeline
	due schedule
	// looked is the time of the last look; zero forces a look before the next
	// claim.
	looked time.Time
	// signalled is the time of the last call of Backlog.
	signalled time.Time
	// spareLook is the pause between two looks for work for spare slots.
	spareLook time.Duration
	// busy are the ids, in order, of the buckets that were due at the last walk, if there
	// were more buckets with work than a page; walkAt is the time of the next walk.
	busy   []int64
	walkAt time.Time
	// failures counts consecutive database errors.
	failures int
}

// While busy buckets are due, the next walk comes after walkShare times the duration of the
// last one, and after walkAgain at the latest: a bucket that becomes due waits no longer.
const (
	walkShare = 9
	walkAgain = 100 * time.Millisecond
)

// run claims until ctx ends.
func (c *claimer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if len(c.due.queues) == 0 || time.Since(c.looked) >= c.cfg.BacklogPoll {
			c.look(ctx)
		} else {
			c.claimMore(ctx)
		}
	}
}

// look finds due work and, if there are slots for it, claims it in the same
// transaction.
func (c *claimer) look(ctx context.Context) {
	slots := 0
	if c.databaseAway.Load() == 0 {
		slots = c.semaphore.acquireNow(c.cfg.Batch)
	}
	began := time.Now()
	batch, requests, err := c.claim(ctx, slots, false, c.findDue)
	if err != nil {
		c.pause(ctx, "look for due work", err, &c.failures)
		c.looked = time.Time{} // it may have been claimed after all
		return
	}
	c.patience.looked(len(c.due.queues) > 0)
	c.looked = began
	if slots == 0 {
		if since := c.databaseAway.Swap(0); since != 0 && began.UnixNano()-since > int64(c.cfg.Lease/2) {
			c.renewThenSettle(ctx)
			c.failures, c.looked = 0, time.Time{}
			return
		}
	}
	switch {
	case len(requests) > 0:
		c.claimed(requests, batch, slots)
		c.dispatch(ctx, batch)
		c.rest(ctx, requests, batch)
	default:
		c.semaphore.release(slots)
		if len(c.due.queues) == 0 {
			c.failures = 0
			c.sleep(ctx, c.due.idle)
			c.looked = time.Time{}
		}
	}
}

// claimMore claims from the queues that the last look found, as soon as slots are
// free.
func (c *claimer) claimMore(ctx context.Context) {
	slots, spare := c.semaphore.acquire(ctx, c.cfg.Batch, c.cfg.Window, c.spareLook, c.wake), false
	switch {
	case ctx.Err() != nil:
		c.semaphore.release(slots)
		return
	case slots == 0 && len(c.settle) > 0:
		c.sleepFor(ctx, spareRetry) // it is the database that is slow, or slots are about to be free
		return
	case slots == 0:
		if slots, spare = c.semaphore.acquireSpare(c.cfg.Batch), true; slots == 0 {
			c.sleepFor(ctx, spareRetry) // returned actions are being committed
			return
		}
	}
	var first func(context.Context, pgx.Tx) error
	if spare {
		first = c.findDue
		c.looked = time.Now()
	}
	batch, requests, err := c.claim(ctx, slots, spare, first)
	if err != nil {
		c.pause(ctx, "claim", err, &c.failures)
		c.looked = time.Time{} // it may have been claimed after all
		return
	}
	c.claimed(requests, batch, slots)
	if spare {
		c.spareLook = nextSpareLook(c.spareLook, len(batch.items) == slots, batch.kept() > 0)
	}
	c.dispatch(ctx, batch)
	c.rest(ctx, requests, batch)
}

// claim claims for some slots in one transaction, after first, if that is set. The
// requests follow from the queues that are then due. Calls of class once that may be
// made are marked in the same transaction.
func (c *claimer) claim(ctx context.Context, slots int, spare bool, first func(context.Context, pgx.Tx) error) (batch claimedBatch, requests []outbox.ClaimRequest, err error) {
	var sent bool
	err = c.tx(ctx, func(tx pgx.Tx) (err error) {
		batch, requests, sent = claimedBatch{}, nil, false
		at := time.Now() // before the leases begin
		if first != nil {
			if err = first(ctx, tx); err != nil {
				return err
			}
		}
		if slots > 0 {
			requests = c.due.requests(slots)
		}
		if len(requests) > 0 {
			if batch, err = c.claimIn(ctx, tx, requests); err != nil {
				return err
			}
		}
		batch.at = at
		c.check(&batch, spare)
		err = c.mark(ctx, tx, &batch)
		sent = err == nil || postgres.CommitSent(tx)
		return err
	})
	if err != nil {
		c.abandon(batch, slots, sent)
		return claimedBatch{}, nil, err
	}
	if len(batch.items) > 0 {
		c.claims.Confirm(batch.mark)
	}
	c.inFlight.add(batch.items, batch.at)
	return batch, requests, nil
}

// abandon frees the slots of a claim that failed. If the commit may have happened
// nevertheless, the calls that it marked go back: they were not sent.
func (c *claimer) abandon(batch claimedBatch, slots int, sent bool) {
	marked := 0
	for _, it := range batch.checked.run {
		if sent && it.Effect == envelope.EffectOnce {
			marked++
			c.settle <- settlement{Settlement: outbox.Release(*it), item: it}
		}
	}
	c.semaphore.release(slots - marked)
}

// claimed records a claim, and gives back the slots that it did not need.
func (c *claimer) claimed(requests []outbox.ClaimRequest, batch claimedBatch, slots int) {
	c.failures = 0
	c.semaphore.release(slots - len(batch.items))
	c.due.claimed(requests, batch.items)
	if len(c.due.queues) > 0 && time.Since(c.signalled) >= c.cfg.BacklogPoll {
		c.signalled = time.Now()
		c.cfg.Backlog()
	}
}

// The pause after a claim of all due rows is lookAgain, or permitAgain where buckets have
// limits: their next permit may come sooner than a row that nobody announced. A wake-up
// ends it.
const (
	lookAgain   = 20 * time.Millisecond
	permitAgain = 5 * time.Millisecond
)

// rest sleeps after a claim which left nothing due.
func (c *claimer) rest(ctx context.Context, requests []outbox.ClaimRequest, batch claimedBatch) {
	again := lookAgain
	if slices.ContainsFunc(requests, func(r outbox.ClaimRequest) bool { return r.Limited }) {
		again = permitAgain
	}
	switch {
	case len(c.due.queues) > 0:
	case batch.kept() == 0:
		// All due rows are locked by another worker, which may take a while.
		c.sleep(ctx, c.cfg.BacklogPoll)
	default:
		c.sleep(ctx, min(again, c.cfg.Poll)) // the next look also finds the next due time
	}
}

// nextSpareLook returns the pause before the next look for work for spare slots:
// none while released actions may be before others.
func nextSpareLook(last time.Duration, more, ran bool) time.Duration {
	switch {
	case more:
		return 0
	case ran:
		return spareLookMin
	}
	return min(max(2*last, spareLookMin), spareLookMax)
}

// findDue fills the schedule. It reads the buckets one page at a time until it finds
// due work or has read all of them. It begins after the bucket that was claimed from
// last, so that every bucket has its turn. If all buckets with work fit in a page, it
// reads them in one query. If they do not, it reads only the busy ones between two walks.
func (c *claimer) findDue(ctx context.Context, tx pgx.Tx) error {
	began := time.Now()
	if len(c.busy) > 0 && began.Before(c.walkAt) {
		found, err := outbox.DueOf(ctx, tx, c.busy)
		if err != nil {
			return err
		}
		next, _ := slices.BinarySearchFunc(found, c.due.lastBucket, compareBuckets)
		if c.due.update(append(found[next:], found[:next]...), c.cfg.Poll); len(c.due.queues) > 0 {
			return nil
		}
	}
	if err := c.walk(ctx, tx); err != nil {
		return err
	}
	c.busy = c.busy[:0]
	if !c.due.few {
		for _, q := range c.due.queues {
			c.busy = append(c.busy, q.bucket)
		}
		slices.Sort(c.busy)
		c.walkAt = time.Now().Add(min(walkShare*time.Since(began), walkAgain))
	}
	return nil
}

// walk reads the buckets with work for findDue.
func (c *claimer) walk(ctx context.Context, tx pgx.Tx) error {
	const page = 256
	var all []outbox.DueBucket
	after, wrapped := c.due.lastBucket, false
	if c.due.few {
		after = 0
	}
	for {
		found, err := outbox.DueBuckets(ctx, tx, after, page)
		if err != nil {
			return err
		}
		more := len(found) == page
		if c.due.few && !more {
			next, _ := slices.BinarySearchFunc(found, c.due.lastBucket, compareBuckets)
			c.due.update(append(found[next:], found[:next]...), c.cfg.Poll)
			return nil
		}
		if c.due.few {
			c.due.few, after = false, c.due.lastBucket
			continue
		}
		if wrapped { // those after the last bucket have been seen
			n, _ := slices.BinarySearchFunc(found, c.due.lastBucket, compareBuckets)
			found, more = found[:n], more && n == len(found)
		}
		all = append(all, found...)
		c.due.update(all, c.cfg.Poll)
		switch {
		case more && len(c.due.queues) > 0:
			return nil
		case more:
			after = found[len(found)-1].Bucket
		case !wrapped && c.due.lastBucket > 0:
			wrapped, after = true, 0
		default:
			c.due.few = len(all) < page
			return nil
		}
	}
}

// compareBuckets compares a bucket with the one behind the last.
func compareBuckets(d outbox.DueBucket, last int64) int { return cmp.Compare(d.Bucket, last+1) }
