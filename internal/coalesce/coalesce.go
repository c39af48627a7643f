// Package coalesce joins concurrent calls into one, so that a hundred callers
// cost the database as much as one. A single call runs immediately. The package
// is independent of the work that a call does.
package coalesce

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// runsAtOnce is the maximum number of concurrent runs per key. An additional
	// run starts when a caller has waited for slow, so that a long run does not
	// delay others for long.
	runsAtOnce = 4
	slow       = 10 * time.Millisecond
	// timeout bounds a run for several callers, which does not use the context
	// of any of them.
	timeout = 30 * time.Second
	// lingerMost is the most time that a run waits for others of many callers, and
	// manyCallers how many these are; few callers wait for nobody.
	lingerMost  = slow
	manyCallers = 8
)

var (
	// errAlone is the error for a caller whose shared run failed without an
	// effect.
	errAlone = errors.New("the run for several calls failed")
	// errPanicked is the error for the other callers of a run that panicked.
	errPanicked = errors.New("the run for several calls panicked")
)

// Run makes the calls of a key and stores each result in its call. undone
// reports whether a failed run had no effect, so that its calls may be repeated.
type Run[K comparable, C any] func(ctx context.Context, key K, calls []C) (undone bool, err error)

// Group joins the concurrent calls of each key. It is safe for concurrent use.
type Group[K comparable, C any] struct {
	most int
	run  Run[K, C]

	mu     sync.Mutex
	queues map[K]*queue[C]
}

// queue holds the calls of a key.
type queue[C any] struct {
	// running is the number of runs in progress; if it is 0, waiting is empty.
	running int
	waiting []*waiter[C]
	// callers is the number of callers that Expect announced, and took the duration of
	// the last run while there are any.
	callers int
	took    time.Duration
	// full is closed when as many calls wait as a lingering run wants; nil if no run
	// lingers.
	full  chan struct{}
	wants int
}

type waiter[C any] struct {
	call C
	// done is closed with err set when the call was made, or with lead set when
	// the waiter must run the calls of lead.
	done chan struct{}
	err  error
	lead []*waiter[C]
}

// New returns a Group whose runs make up to most calls together. If a shared run
// fails without an effect, each of its calls is repeated alone. Any other error
// is returned to all callers, since the calls may have had an effect.
func New[K comparable, C any](most int, run Run[K, C]) *Group[K, C] {
	return &Group[K, C]{most: most, run: run, queues: make(map[K]*queue[C])}
}

// Do makes a call, alone or together with concurrent calls of the same key. It
// returns the error of the run or of ctx. A call whose context ends may still be
// made.
func (g *Group[K, C]) Do(ctx context.Context, key K, call C) error {
	w := &waiter[C]{call: call, done: make(chan struct{})}
	if g.enter(key, w) {
		w.lead = []*waiter[C]{w}
	} else {
		late := time.NewTimer(slow)
		defer late.Stop()
		select {
		case <-w.done:
		case <-late.C:
			g.overtake(key, w)
			select {
			case <-w.done:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil && g.leave(key, w) {
			return ctx.Err()
		}
		<-w.done // it leads a run, is in one, or was answered
	}
	if w.lead != nil {
		// Goroutines that can run already make their calls first, and join.
		runtime.Gosched()
		g.linger(key, w)
		g.gather(key, w)
		g.runAll(ctx, key, w.lead)
	}
	if errors.Is(w.err, errAlone) {
		_, err := g.run(ctx, key, []C{call})
		return err
	}
	return w.err
}

// enter starts a run for a waiter, or queues the waiter and returns false.
func (g *Group[K, C]) enter(key K, w *waiter[C]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queue(key)
	if q.running == 0 {
		q.running++
		return true
	}
	q.waiting = append(q.waiting, w)
	if q.full != nil && len(q.waiting) >= q.wants {
		close(q.full)
		q.full = nil
	}
	return false
}

// queue returns the queue of a key. The caller holds the mutex.
func (g *Group[K, C]) queue(key K) *queue[C] {
	q := g.queues[key]
	if q == nil {
		q = &queue[C]{}
		g.queues[key] = q
	}
	return q
}

// forget removes a queue that nobody uses. The caller holds the mutex.
func (g *Group[K, C]) forget(key K, q *queue[C]) {
	if q.running == 0 && q.callers == 0 {
		delete(g.queues, key)
	}
}

// Expect announces a caller that makes one call of a key after another, until done is
// called. While there are many such callers, a run waits until half of them have called,
// and at most as long as the run before took: each run costs, and the other half is
// being served meanwhile.
func (g *Group[K, C]) Expect(key K) (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue(key).callers++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		q := g.queues[key]
		q.callers--
		g.forget(key, q)
	})
}

// linger waits until the run that a waiter leads has as many calls as Expect describes.
func (g *Group[K, C]) linger(key K, w *waiter[C]) {
	g.mu.Lock()
	q := g.queues[key]
	wants := min(q.callers/2, g.most) - len(w.lead)
	if q.callers < manyCallers || len(q.waiting) >= wants || q.full != nil {
		g.mu.Unlock()
		return
	}
	full := make(chan struct{})
	q.full, q.wants = full, wants
	most := min(q.took, lingerMost)
	g.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-full:
		return
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.full == full {
		q.full = nil
	}
}

// leave removes a waiter, and reports whether it was still waiting.
func (g *Group[K, C]) leave(key K, w *waiter[C]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[key]
	if q == nil {
		return false
	}
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(other *waiter[C]) bool { return other == w })
	return len(q.waiting) < before
}

// runAll runs the calls of members, the first of which is the caller, and
// reports the result to the others. Then the next waiter leads.
func (g *Group[K, C]) runAll(ctx context.Context, key K, members []*waiter[C]) {
	err := errPanicked
	began := time.Now()
	defer func() {
		for i, w := range members {
			if w.err = err; i > 0 {
				close(w.done)
			}
		}
		g.next(key, time.Since(began))
	}()
	calls := make([]C, len(members))
	for i, w := range members {
		calls[i] = w.call
	}
	if len(members) > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
	}
	undone, failed := g.run(ctx, key, calls)
	if err = failed; err != nil && undone && len(members) > 1 {
		err = errAlone
	}
}

// gather adds those who wait to the run that a waiter leads.
func (g *Group[K, C]) gather(key K, w *waiter[C]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[key]
	n := min(g.most-len(w.lead), len(q.waiting))
	w.lead = append(w.lead, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// next ends a run and lets the first waiter lead the next one.
func (g *Group[K, C]) next(key K, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[key]
	q.took = took
	if len(q.waiting) > 0 {
		g.lead(q)
	} else {
		q.running--
		g.forget(key, q)
	}
}

// overtake lets the first waiter lead another run while others are in progress,
// if w is still waiting.
func (g *Group[K, C]) overtake(key K, w *waiter[C]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.queues[key]; q != nil && slices.Contains(q.waiting, w) && q.running < runsAtOnce {
		q.running++
		g.lead(q)
	}
}

// lead lets the first waiter lead a run of the waiting calls. The caller holds
// the mutex.
func (g *Group[K, C]) lead(q *queue[C]) {
	n := min(g.most, len(q.waiting))
	lead := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	lead[0].lead = lead
	close(lead[0].done)
}
