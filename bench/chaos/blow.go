package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// The kinds of blow.
const (
	blowKill    = "kill"
	blowRestart = "restart"
	blowFreeze  = "freeze"
	blowLine    = "line"
	blowIll     = "ill"
	blowDisk    = "disk"
)

// blow is one time that something was broken, and what came of it.
type blow struct {
	kind string
	at   time.Time
	// took is how long it lasted, once it is over.
	took time.Duration
	over bool

	// held are the leases that were out from the look before it to the look
	// after it.
	held map[hold]bool
	// taken are the leases of the first look since it began, without those
	// that an earlier blow had left behind; open those of taken that are still
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

// blows is what was broken so far. It is safe for concurrent use.
type blows struct {
	lease time.Duration

	mu   sync.Mutex
	all  []*blow
	last map[hold]bool // as of the last look
}

// add notes that something was broken; lasted says when that is over.
func (b *blows) add(kind string, at time.Time) *blow {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := &blow{kind: kind, at: at, held: maps.Clone(b.last)}
	if one.held == nil {
		one.held = make(map[hold]bool)
	}
	b.all = append(b.all, one)
	return one
}

// lasted notes that a blow is over, and how long it took.
func (b *blows) lasted(one *blow, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.took, one.over = d, true
}

// end is when a blow was over.
func (one *blow) end() time.Time { return one.at.Add(one.took) }

// update takes in a look that was begun at a time: a lease that is held no
// more, or under another fence, has been looked at.
func (b *blows) update(at time.Time, now standing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = now.held
	for _, one := range b.all {
		if one.at.After(at) {
			continue
		}
		if !one.seen {
			b.see(one, now.held)
		}
		maps.DeleteFunc(one.open, func(h hold, _ bool) bool { return !now.held[h] })
		if !one.sifted && at.Sub(one.at) >= b.lease/2 {
			one.sifted = true
			one.orphans = slices.Collect(maps.Keys(one.open))
		}
		one.follow(at, now)
	}
}

// see takes note of the leases that were out when a blow fell.
func (b *blows) see(one *blow, held map[hold]bool) {
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

// follow follows what was in work when the blow was over to its end.
func (one *blow) follow(at time.Time, now standing) {
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

// list returns the blows when no more can come.
func (b *blows) list() []*blow {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}

// countBlows says how many blows of a kind there were.
func countBlows(all []*blow, kind string) int {
	n := 0
	for _, one := range all {
		if one.kind == kind {
			n++
		}
	}
	return n
}

// inHand returns the envelopes that some worker held when something that takes
// a worker from its leases happened.
func inHand(all []*blow) map[uuid.UUID]bool {
	held := make(map[uuid.UUID]bool)
	for _, one := range all {
		for h := range one.held {
			held[h.Action] = true
		}
	}
	return held
}

// recovery is how long after a blow the last envelope ended that was in work
// when it was over; false if one never did.
func (one *blow) recovery() (time.Duration, bool) {
	if one.settled.IsZero() {
		return 0, false
	}
	return one.settled.Sub(one.end()), true
}

// worst is the longest recovery.
func worst(all []*blow) time.Duration {
	var longest time.Duration
	for _, one := range all {
		if d, ok := one.recovery(); ok {
			longest = max(longest, d)
		}
	}
	return longest
}

// orphans counts the leases that workers which were hit left behind.
func orphans(all []*blow, kind string) int {
	n := 0
	for _, one := range all {
		if one.kind == kind {
			n += len(one.orphans)
		}
	}
	return n
}

// awaySlack is how long after the database was away a worker may still end
// because of it: it has tried to connect before.
const awaySlack = 2 * time.Second

// unexplained counts the ends of workers that no absence of the database
// explains: one that cannot reach it when it starts may end.
func unexplained(ends []time.Time, all []*blow) int {
	n := 0
	for _, at := range ends {
		if !slices.ContainsFunc(all, func(one *blow) bool {
			away := one.kind == blowRestart || one.kind == blowDisk
			return away && at.After(one.at) && at.Before(one.end().Add(awaySlack))
		}) {
			n++
		}
	}
	return n
}
