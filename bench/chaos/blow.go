package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// The kinds of fault.
const (
	blowKill    = "worker_sigkill"
	blowRestart = "postgres_restart"
)

// blow is something that was broken on purpose, and what came of it.
type blow struct {
	kind string
	at   time.Time
	// took is how long the fault itself lasted.
	took time.Duration
	// seen says that the leases at the time are known. out are those that were
	// out then, the killed worker's among them; taken are those of them that
	// no earlier fault had left behind, and open those of taken that are still
	// as they were.
	seen             bool
	out, taken, open map[hold]bool
	// orphans are the leases that nobody settled before half a lease had
	// passed: those of the killed worker.
	orphans []hold
	sifted  bool
	// recovered is when the last of them had been looked at.
	recovered time.Time
}

// blows is what was broken so far. It is safe for concurrent use.
type blows struct {
	lease time.Duration

	mu   sync.Mutex
	all  []*blow
	last map[hold]bool // as of the last look
}

// add notes a fault. The leases that a restart hits are those of the look
// before it, those that a kill leaves behind are those of the look after it.
func (b *blows) add(kind string, at time.Time) *blow {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := &blow{kind: kind, at: at}
	if kind == blowRestart {
		b.see(one, b.last)
	}
	b.all = append(b.all, one)
	return one
}

// lasted notes how long a fault itself took.
func (b *blows) lasted(one *blow, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.took = d
}

// see takes note of the leases that were out; held does not change any more.
func (b *blows) see(one *blow, held map[hold]bool) {
	one.seen, one.out, one.taken = true, held, maps.Clone(held)
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

// update takes in a look that was begun at a time: what is held no more, or
// under another fence, has been looked at.
func (b *blows) update(begun time.Time, held map[hold]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = held
	for _, one := range b.all {
		switch {
		case one.at.After(begun):
			continue
		case !one.seen:
			b.see(one, held)
		}
		maps.DeleteFunc(one.open, func(h hold, _ bool) bool { return !held[h] })
		if len(one.open) == 0 && one.recovered.IsZero() {
			one.recovered = begun
		}
		if !one.sifted && begun.Sub(one.at) >= b.lease/2 {
			one.sifted = true
			one.orphans = slices.Collect(maps.Keys(one.open))
		}
	}
}

// count says how many faults of a kind there were.
func (b *blows) count(kind string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, one := range b.all {
		if one.kind == kind {
			n++
		}
	}
	return n
}

// end returns the faults when no more can come.
func (b *blows) end() []*blow {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}

// inHand returns the envelopes that some worker held when one was killed.
func inHand(all []*blow) map[uuid.UUID]bool {
	held := make(map[uuid.UUID]bool)
	for _, one := range all {
		if one.kind != blowKill {
			continue
		}
		for h := range one.out {
			held[h.Action] = true
		}
	}
	return held
}

// recovery is how long it took until all that the fault had left behind was
// looked at; 0 if it left nothing behind.
func (one *blow) recovery() time.Duration {
	switch {
	case one.recovered.IsZero():
		return 0
	case one.kind == blowKill && len(one.orphans) == 0:
		return 0
	}
	return one.recovered.Sub(one.at)
}

// restartSlack is how long after a restart a worker may still end because of
// it: it has tried to connect before.
const restartSlack = 2 * time.Second

// unexplained counts the ends of workers that no restart of the database
// explains: one that cannot reach it when it starts may end.
func unexplained(ends []time.Time, all []*blow) int {
	n := 0
	for _, at := range ends {
		if !slices.ContainsFunc(all, func(one *blow) bool {
			return one.kind == blowRestart && at.After(one.at) && at.Before(one.at.Add(one.took+restartSlack))
		}) {
			n++
		}
	}
	return n
}
