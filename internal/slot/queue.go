// Package slot shares scarce resources between tenants: processors for long
// work, and connections to the database. A single tenant may have all slots. If
// several tenants wait, the next slot goes to the one with the fewest. The
// package is independent of the use of a slot.
package slot

import (
	"context"
	"slices"
	"sync"
)

// Queue is a number of slots and the callers that wait for one. It is safe for
// concurrent use.
type Queue struct {
	mu   sync.Mutex
	free int
	// turn counts the slots that were given.
	turn    int
	holders map[string]*holder
	// waiting are the waiters in order of arrival.
	waiting []*waiter
}

// holder is a tenant that has a slot or waits for one.
type holder struct {
	held, waits int
	// turn is the turn of its last slot.
	turn int
}

type waiter struct {
	tenant string
	// given is closed when the waiter gets a slot.
	given chan struct{}
}

// NewQueue returns a queue of n slots.
func NewQueue(n int) *Queue { return &Queue{free: n, holders: make(map[string]*holder)} }

// Take waits for a slot for a tenant. If it returns nil, the caller must release
// the slot with Give. The error is that of ctx.
func (q *Queue) Take(ctx context.Context, tenant string) error {
	q.mu.Lock()
	if q.take(tenant) {
		q.mu.Unlock()
		return nil
	}
	w := &waiter{tenant, make(chan struct{})}
	q.holder(tenant).waits++
	q.waiting = append(q.waiting, w)
	q.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.leave(i)
		q.forget(tenant)
	} else {
		q.give(tenant) // it was given just now
	}
	return ctx.Err()
}

// Try takes a slot if one is free.
func (q *Queue) Try(tenant string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(tenant)
}

// Give releases a tenant's slot.
func (q *Queue) Give(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.give(tenant)
}

func (q *Queue) take(tenant string) bool {
	if q.free == 0 {
		return false
	}
	q.free--
	q.hold(tenant)
	return true
}

func (q *Queue) hold(tenant string) {
	h := q.holder(tenant)
	q.turn++
	h.held, h.turn = h.held+1, q.turn
}

func (q *Queue) give(tenant string) {
	q.holders[tenant].held--
	q.forget(tenant)
	i := q.next()
	if i < 0 {
		q.free++
		return
	}
	w := q.waiting[i]
	q.leave(i)
	q.hold(w.tenant)
	close(w.given)
}

// next returns the index of the waiter that gets the next slot. Among the
// tenants with the fewest slots, it is the first waiter of the one whose last
// turn is the longest ago.
func (q *Queue) next() int {
	best := -1
	var of *holder
	for i, w := range q.waiting {
		h := q.holders[w.tenant]
		if best < 0 || h.held < of.held || h.held == of.held && h.turn < of.turn {
			best, of = i, h
		}
	}
	return best
}

// leave removes a waiter from the queue.
func (q *Queue) leave(i int) {
	q.holders[q.waiting[i].tenant].waits--
	q.waiting = slices.Delete(q.waiting, i, i+1)
}

func (q *Queue) holder(tenant string) *holder {
	h := q.holders[tenant]
	if h == nil {
		h = &holder{}
		q.holders[tenant] = h
	}
	return h
}

func (q *Queue) forget(tenant string) {
	if h := q.holders[tenant]; h.held == 0 && h.waits == 0 {
		delete(q.holders, tenant)
	}
}
