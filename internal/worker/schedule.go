package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// schedule is the claimer's view of due work: the buckets with due rows, and
// for each the due time up to which everything is claimed.
type schedule struct {
	queues []bucketQueue
	// idle is the time until a queue is due, if none is.
	idle time.Duration
	// lastBucket is the id of the bucket that was claimed from last.
	lastBucket int64
	// few reports whether the last look at all buckets found less than a page.
	few bool
}

type bucketQueue struct {
	bucket  int64
	tenant  envelope.TenantID
	limited bool
	// from is where the rows in due order continue, and awaitedFrom where the
	// awaited ones do; zero if none is due.
	from, awaitedFrom time.Time
	// awaitedOnly reports whether no other rows are due.
	awaitedOnly bool
}

// update replaces the queues by the buckets that a poll found. Rows that an
// earlier claim skipped, or whose lease expired, are among them again.
func (b *schedule) update(found []outbox.DueBucket, longest time.Duration) {
	b.queues, b.idle = b.queues[:0], longest
	for _, d := range found {
		switch {
		case d.Paused:
		case d.DueIn <= 0:
			b.queues = append(b.queues, bucketQueue{bucket: d.Bucket, tenant: d.Tenant, limited: d.Limited, from: d.From, awaitedFrom: d.AwaitedFrom})
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
		requests[i] = outbox.ClaimRequest{
			Bucket: l.bucket, Tenant: l.tenant, From: l.from, AwaitedFrom: l.awaitedFrom, AwaitedOnly: l.awaitedOnly,
			Quota: quota, Turn: rand.IntN(outbox.Turns), Limited: l.limited,
		}
	}
	return requests
}

// statesAhead sends the query for the states of the requests' tenants along with the
// claim, and returns the transaction to read them with. They are as of after the claim,
// which is not the next query if a bucket has limits.
func statesAhead(ctx context.Context, tx pgx.Tx, requests []outbox.ClaimRequest) pgx.Tx {
	var tenants []envelope.TenantID
	for _, r := range requests {
		if r.Limited {
			return tx
		}
		if !slices.Contains(tenants, r.Tenant) {
			tenants = append(tenants, r.Tenant)
		}
	}
	later := postgres.Ahead(tx)
	_, _ = settings.States(ctx, later, tenants) // postgres.ErrLater
	return later
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

// claimed updates the queues after a claim: a queue that yielded less than its quota is empty, or has no permit left;
// the others continue where the claim ended. Awaited rows and rows in due order each have a part of the quota. Queues
// that were not part of the claim come first next time, and the next poll begins with the first of them.
func (b *schedule) claimed(requests []outbox.ClaimRequest, items []outbox.Item) {
	results := make(map[int64]*claimResult, len(requests))
	for _, w := range requests {
		results[w.Bucket] = &claimResult{request: w}
	}
	for i := range items {
		results[items[i].Bucket].add(&items[i])
	}
	var waiting, worked []bucketQueue
	for _, l := range b.queues {
		r := results[l.bucket]
		switch {
		case r == nil:
			waiting = append(waiting, l)
			continue
		case len(waiting) == 0:
			b.lastBucket = l.bucket
		}
		if r.advance(&l) {
			worked = append(worked, l)
		}
	}
	b.queues = append(waiting, worked...)
}

// claimResult is the outcome of a claim from a bucket: rows in due order and awaited ones. Without
// an awaited row to pass the others, all rows count as in due order.
type claimResult struct {
	request                  outbox.ClaimRequest
	ordered, awaited         int
	lastOrdered, lastAwaited time.Time
}

func (r *claimResult) add(it *outbox.Item) {
	n, last := &r.ordered, &r.lastOrdered
	if it.Awaited && !r.request.AwaitedFrom.IsZero() {
		n, last = &r.awaited, &r.lastAwaited
	}
	*n++
	if it.Due.After(*last) {
		*last = it.Due
	}
}

// advance moves a queue to where the claim ended. It reports whether rows may be
// left: a part of the quota that was not met has none, and a bucket with limits
// that gave nothing has no permit.
func (r *claimResult) advance(l *bucketQueue) bool {
	if r.request.Limited && r.ordered+r.awaited == 0 {
		return false
	}
	ordered, awaited := r.request.Split()
	switch {
	case r.ordered < ordered:
		l.awaitedOnly = true
	case r.ordered > 0:
		l.from = r.lastOrdered
	}
	switch {
	case r.awaited < awaited:
		l.awaitedFrom = time.Time{}
	case r.awaited > 0:
		l.awaitedFrom = r.lastAwaited
	}
	return !l.awaitedOnly || !l.awaitedFrom.IsZero()
}

// semaphore bounds the actions that a worker has in flight, from the claim
// until the outcome is committed. It has as many spare slots as slots.
type semaphore struct {
	mu sync.Mutex
	// free is negative while spare slots are taken.
	free, size int
	// full is since when no slot has been free; zero while one is.
	full  time.Time
	freed chan struct{}
}

func newSemaphore(n int) *semaphore {
	return &semaphore{free: n, size: n, freed: make(chan struct{}, 1)}
}

// acquire returns from 1 to most slots as soon as there is one, or 0 when ctx is
// over or the slots have been taken for so long that spare ones may be opened:
// then it returns after a pause, or when woken. While only a few are free it
// waits a moment for more, since a claim of many costs hardly more than a claim
// of one.
func (s *semaphore) acquire(ctx context.Context, most int, moment, pause time.Duration, wake <-chan struct{}) int {
	var window, stalled <-chan time.Time
	for {
		s.mu.Lock()
		if s.free >= most || (s.free > 0 && (4*s.free >= most || window == nil && moment == 0)) {
			n := min(s.free, most)
			s.take(n)
			s.mu.Unlock()
			return n
		}
		some, full := s.free > 0, s.full
		s.mu.Unlock()
		if some && window == nil {
			timer := time.NewTimer(moment)
			defer timer.Stop()
			window = timer.C
		}
		var woken <-chan struct{}
		if !some {
			left := stalledAfter - time.Since(full)
			if left <= 0 {
				left, woken = pause, wake
			}
			timer := time.NewTimer(left)
			defer timer.Stop()
			stalled = timer.C
		}
		select {
		case <-ctx.Done():
			return 0
		case <-woken:
			return 0
		case <-stalled:
			if woken != nil {
				return 0
			}
		case <-s.freed:
		case <-window:
			window, moment = nil, 0
		}
	}
}

// acquireNow returns up to most slots if many are free, or else 0. It does not wait.
func (s *semaphore) acquireNow(most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free <= 0 || 4*s.free < most {
		return 0
	}
	n := min(s.free, most)
	s.take(n)
	return n
}

// acquireSpare returns up to most spare slots; 0 if all are taken.
func (s *semaphore) acquireSpare(most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := max(0, min(s.free+s.size, most))
	s.take(n)
	return n
}

// take takes slots. The caller holds the lock.
func (s *semaphore) take(n int) {
	s.free -= n
	if s.free <= 0 && s.full.IsZero() {
		s.full = time.Now()
	}
}

// signal sends to a channel of capacity one, unless a signal is in it. It does
// not block.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// release gives slots back.
func (s *semaphore) release(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	s.free += n
	if s.free > 0 {
		s.full = time.Time{}
	}
	s.mu.Unlock()
	signal(s.freed)
}

// debounce is the least time between two wake-ups of one process. The later one
// covers commits in between.
const debounce = 2 * time.Millisecond

// workChannel is notified when something may be due.
const workChannel = "countersign_work"

// Waker notifies the workers that work may be due. A lost notification delays
// work until the next poll of a worker. It is safe for concurrent use.
type Waker struct {
	db *pgxpool.Pool
	// name is that of the worker that wakes the others; empty for another process.
	name  string
	log   *slog.Logger
	calls chan struct{}
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// NewWaker starts a Waker of a process that is not a worker; Close ends it.
func NewWaker(ctx context.Context, db *pgxpool.Pool, log *slog.Logger) *Waker {
	return newWaker(ctx, db, "", log)
}

func newWaker(ctx context.Context, db *pgxpool.Pool, name string, log *slog.Logger) *Waker {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &Waker{db: db, name: name, log: log, calls: make(chan struct{}, 1), stop: stop}
	w.ended.Go(func() { w.loop(ctx) })
	return w
}

// Wake makes the workers poll soon. It does not block.
func (w *Waker) Wake() {
	signal(w.calls)
}

// Close ends the Waker after a wake-up that is still to be sent.
func (w *Waker) Close() {
	w.stop()
	w.ended.Wait()
}

func (w *Waker) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			select {
			case <-w.calls:
				w.send(context.WithoutCancel(ctx))
			default:
			}
			return
		case <-w.calls:
		}
		// Close waits for a wake-up that has begun rather than cut it short.
		w.send(context.WithoutCancel(ctx))
		timer.Reset(debounce)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

func (w *Waker) send(ctx context.Context) {
	if err := postgres.Notify(ctx, w.db, workChannel, w.name); err != nil {
		w.log.WarnContext(ctx, "fleet was not woken; it looks by itself", slog.Any("error", err))
	}
}

// patience delays this worker's polls to leave work to the others: every worker
// is notified of work that one of them can take. The zero value polls without
// delay.
type patience struct {
	// noticed reports whether the next poll follows a notification, and misses counts
	// the consecutive polls of that kind that found nothing.
	noticed, pending atomic.Bool
	misses           atomic.Int32
}

const (
	// freeMisses is the number of consecutive misses before a worker waits;
	// patienceStep is the increase of the wait per miss, and patienceMost its
	// bound.
	freeMisses   = 3
	patienceStep = 10 * time.Millisecond
	patienceMost = 50 * time.Millisecond
)

// notify calls poll, immediately or after a delay.
func (p *patience) notify(poll func()) {
	p.noticed.Store(true)
	longest := min(time.Duration(p.misses.Load()-freeMisses)*patienceStep, patienceMost)
	if longest <= 0 {
		poll()
		return
	}
	if p.pending.CompareAndSwap(false, true) {
		time.AfterFunc(rand.N(longest), func() {
			p.pending.Store(false)
			poll()
		})
	}
}

// looked records whether a poll found work.
func (p *patience) looked(found bool) {
	switch noticed := p.noticed.Swap(false); {
	case found:
		p.misses.Store(0)
	case noticed:
		p.misses.Add(1)
	}
}

// warnOnly returns a logger for River: its warnings and errors, each message at
// most once a minute, since River reports an outage of the database in every
// part and at every try.
func warnOnly(log *slog.Logger) *slog.Logger {
	return slog.New(warnHandler{telemetry.WithoutRepeats(log.Handler(), time.Minute)})
}

type warnHandler struct{ slog.Handler }

func (h warnHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnHandler{h.Handler.WithAttrs(attrs)}
}

func (h warnHandler) WithGroup(name string) slog.Handler {
	return warnHandler{h.Handler.WithGroup(name)}
}
