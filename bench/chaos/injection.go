package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/bench/chaos/database"
)

// The kinds of injection.
const (
	byKill     = "kill"
	byRestart  = "restart"
	byFreeze   = "freeze"
	byNetwork  = "network"
	byTool     = "tool"
	byDisk     = "disk"
	byFailover = "failover"
)

// injection is one injected failure and its consequences.
type injection struct {
	kind string
	at   time.Time
	// took is its duration, once it is over.
	took time.Duration
	over bool

	// held are the actions under a lease between the poll before it and the
	// poll after it.
	held map[uuid.UUID]bool
	// open are the leases of the first poll since it began, without those that an
	// earlier injection had left behind, as long as they are unchanged; orphans
	// those that were not settled within half a lease: the ones of the worker that
	// was hit.
	seen, orphansKnown bool
	open               map[database.Lease]bool
	orphans            []database.Lease
	// begun are the actions that were in work when it was over, and have not
	// ended.
	past    bool
	begun   map[uuid.UUID]bool
	settled time.Time // when the last of them had ended
}

// injections are the failures injected so far. Safe for concurrent use.
type injections struct {
	lease time.Duration

	mu   sync.Mutex
	all  []*injection
	last map[database.Lease]bool // as of the last poll
}

// add records an injection; setDuration records its end.
func (b *injections) add(kind string, at time.Time) *injection {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := &injection{kind: kind, at: at, held: make(map[uuid.UUID]bool)}
	one.hold(b.last)
	b.all = append(b.all, one)
	return one
}

// setDuration records the end of an injection.
func (b *injections) setDuration(one *injection, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.took, one.over = d, true
}

// hold adds the actions under a lease.
func (one *injection) hold(leases map[database.Lease]bool) {
	for l := range leases {
		one.held[l.Action] = true
	}
}

// end returns when an injection was over.
func (one *injection) end() time.Time { return one.at.Add(one.took) }

// update records a poll that began at a time: a lease that is gone, or has
// another fence, was settled or claimed again.
func (b *injections) update(at time.Time, now database.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = now.Leases
	for i, one := range b.all {
		if one.at.After(at) {
			continue
		}
		if !one.seen {
			one.seen, one.open = true, maps.Clone(now.Leases)
			for _, earlier := range b.all[:i] {
				maps.DeleteFunc(one.open, func(l database.Lease, _ bool) bool { return earlier.open[l] })
			}
		}
		maps.DeleteFunc(one.open, func(l database.Lease, _ bool) bool { return !now.Leases[l] })
		if !one.orphansKnown && at.Sub(one.at) >= b.lease/2 {
			one.orphansKnown = true
			one.orphans = slices.Collect(maps.Keys(one.open))
		}
		one.follow(at, now)
	}
}

// follow follows the actions that were in work when the injection was over to
// their ends.
func (one *injection) follow(at time.Time, now database.State) {
	if !one.past {
		one.hold(now.Leases)
		if !one.over || one.end().After(at) {
			return
		}
		one.past, one.begun = true, maps.Clone(now.Begun)
	}
	maps.DeleteFunc(one.begun, func(id uuid.UUID, _ bool) bool { return !now.Begun[id] })
	if len(one.begun) == 0 && one.settled.IsZero() {
		one.settled = at
	}
}

// list returns the injections when no more can come.
func (b *injections) list() []*injection {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}
