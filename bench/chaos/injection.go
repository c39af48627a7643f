package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// The kinds of injection.
const (
	byKill    = "kill"
	byRestart = "restart"
	byFreeze  = "freeze"
	byLine    = "line"
	byTool    = "ill"
	byDisk    = "disk"
)

// injection is one failure that was injected, and what followed.
type injection struct {
	kind string
	at   time.Time
	// took is how long it lasted, once it is over.
	took time.Duration
	over bool

	// held are the leases that were out from the look before it to the look
	// after it.
	held map[hold]bool
	// claimed are the leases of the first look since it began, without those
	// that an earlier injection had left behind; open those of taken that are still
	// as they were; orphans those that nobody settled before half a lease had
	// passed: the ones of the worker that was hit.
	seen, sifted bool
	taken, open  map[hold]bool
	orphans      []hold
	// begun are the envelopes that had been in work when it was over, and had
	// not ended.
	past    bool
	begun   map[uuid.UUID]bool
	settled time.Time // when the last of them had ended
}

// injections are the failures injected so far. Safe for concurrent use.
type injections struct {
	lease time.Duration

	mu   sync.Mutex
	all  []*injection
	last map[hold]bool // as of the last look
}

// add records an injection; setDuration records its end.
func (b *injections) add(kind string, at time.Time) *injection {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := &injection{kind: kind, at: at, held: maps.Clone(b.last)}
	if one.held == nil {
		one.held = make(map[hold]bool)
	}
	b.all = append(b.all, one)
	return one
}

// setDuration records the end of an injection.
func (b *injections) setDuration(one *injection, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.took, one.over = d, true
}

// end is when an injection was over.
func (one *injection) end() time.Time { return one.at.Add(one.took) }

// update takes in a look that was begun at a time: a lease that is held no
// more, or under another fence, has been looked at.
func (b *injections) update(at time.Time, now state) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = now.held
	for _, one := range b.all {
		if one.at.After(at) {
			continue
		}
		if !one.seen {
			b.observe(one, now.held)
		}
		maps.DeleteFunc(one.open, func(h hold, _ bool) bool { return !now.held[h] })
		if !one.sifted && at.Sub(one.at) >= b.lease/2 {
			one.sifted = true
			one.orphans = slices.Collect(maps.Keys(one.open))
		}
		one.follow(at, now)
	}
}

// see takes note of the leases that were out when an injection fell.
func (b *injections) observe(one *injection, held map[hold]bool) {
	one.seen, one.taken = true, maps.Clone(held)
	for _, earlier := range b.all {
		if earlier == one {
			break
		}
		for h := range earlier.open {
			delete(one.taken, h)
		}
	}
	one.open = maps.Clone(one.taken)
}

// follow follows what was in work when the injection was over to its end.
func (one *injection) follow(at time.Time, now state) {
	if !one.past {
		maps.Copy(one.held, now.held)
		if !one.over || one.end().After(at) {
			return
		}
		one.past, one.begun = true, maps.Clone(now.begun)
	}
	maps.DeleteFunc(one.begun, func(id uuid.UUID, _ bool) bool { return !now.begun[id] })
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

// countInjections says how many injections of a kind there were.
func countInjections(all []*injection, kind string) int {
	n := 0
	for _, one := range all {
		if one.kind == kind {
			n++
		}
	}
	return n
}

// heldActions returns the envelopes that some worker held when something that takes
// a worker from its leases happened.
func heldActions(all []*injection) map[uuid.UUID]bool {
	held := make(map[uuid.UUID]bool)
	for _, one := range all {
		for h := range one.held {
			held[h.Action] = true
		}
	}
	return held
}

// recovery is how long after an injection the last envelope ended that was in work
// when it was over; false if one never did.
func (one *injection) recovery() (time.Duration, bool) {
	if one.settled.IsZero() {
		return 0, false
	}
	return one.settled.Sub(one.end()), true
}

// worst is the longest recovery.
func worst(all []*injection) time.Duration {
	var longest time.Duration
	for _, one := range all {
		if d, ok := one.recovery(); ok {
			longest = max(longest, d)
		}
	}
	return longest
}

// countAbandoned counts the leases that workers which were hit left behind.
func countAbandoned(all []*injection, kind string) int {
	n := 0
	for _, one := range all {
		if one.kind == kind {
			n += len(one.orphans)
		}
	}
	return n
}

// outageSlack is how long after the database was away a worker may still end
// because of it: it has tried to connect before.
const outageSlack = 2 * time.Second

// unexplained counts the ends of workers that no absence of the database
// explains: one that cannot reach it when it starts may end.
func unexplained(ends []time.Time, all []*injection) int {
	n := 0
	for _, at := range ends {
		if !slices.ContainsFunc(all, func(one *injection) bool {
			away := one.kind == byRestart || one.kind == byDisk
			return away && at.After(one.at) && at.Before(one.end().Add(outageSlack))
		}) {
			n++
		}
	}
	return n
}
