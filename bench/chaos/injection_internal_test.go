package main

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestInjections follows the leases of a worker that was hit, and of one that lives
// on.
func TestInjections(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dead, alive, next := hold{Action: uuid.UUID{1}, Fence: 1}, hold{Action: uuid.UUID{2}, Fence: 1}, hold{Action: uuid.UUID{1}, Fence: 2}
	look := func(all ...hold) state {
		s := state{held: map[hold]bool{}, begun: map[uuid.UUID]bool{}}
		for _, h := range all {
			s.held[h], s.begun[h.Action] = true, true
		}
		return s
	}
	b := &injections{lease: 4 * time.Second}
	one := b.add(byKill, start)
	b.setDuration(one, 0)

	b.update(start.Add(-time.Second), look(dead)) // begun before the kill
	b.update(start.Add(1*time.Second), look(dead, alive))
	b.update(start.Add(2*time.Second), look(dead))
	b.update(start.Add(5*time.Second), look(next))
	b.update(start.Add(6*time.Second), look())

	if len(one.orphans) != 1 || one.orphans[0] != dead {
		t.Errorf("orphans = %v, want the killed worker's lease alone", one.orphans)
	}
	if got, ok := one.recovery(); !ok || got != 6*time.Second {
		t.Errorf("recovery() = %s, %t, want 6s", got, ok)
	}
	if held := heldActions(b.list()); !held[dead.Action] || !held[alive.Action] || len(held) != 2 {
		t.Errorf("inHand() = %v, want both envelopes", held)
	}
	if got := countAbandoned(b.list(), byKill); got != 1 {
		t.Errorf("orphans() = %d, want 1", got)
	}
}

// TestInjectionDuration counts recovery from the end of what lasts, and takes every
// lease meanwhile for hit.
func TestInjectionDuration(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	before, during := uuid.UUID{1}, uuid.UUID{2}
	look := func(ids ...uuid.UUID) state {
		s := state{held: map[hold]bool{}, begun: map[uuid.UUID]bool{}}
		for _, id := range ids {
			s.held[hold{Action: id, Fence: 1}], s.begun[id] = true, true
		}
		return s
	}
	b := &injections{lease: 4 * time.Second}
	b.update(start.Add(-time.Second), look(before))
	one := b.add(byDisk, start)
	b.update(start.Add(time.Second), look(during))
	b.setDuration(one, 3*time.Second)
	b.update(start.Add(4*time.Second), look(during))

	if _, ok := one.recovery(); ok {
		t.Error("recovery() is known while an envelope has not ended")
	}
	b.update(start.Add(5*time.Second), look())

	if got := worst(b.list()); got != 2*time.Second {
		t.Errorf("worst() = %s, want 2s", got)
	}
	if held := heldActions(b.list()); !held[before] || !held[during] {
		t.Errorf("inHand() = %v, want both envelopes", held)
	}
	ends := []time.Time{start.Add(-time.Second), start.Add(4 * time.Second), start.Add(6 * time.Second)}
	if got := unexplained(ends, b.list()); got != 2 {
		t.Errorf("unexplained() = %d, want 2", got)
	}
}
