package main

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/bench/chaos/database"
)

// TestInjections follows the leases of a worker that was hit, and of another.
func TestInjections(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dead, alive, next := database.Lease{Action: uuid.UUID{1}, Fence: 1}, database.Lease{Action: uuid.UUID{2}, Fence: 1}, database.Lease{Action: uuid.UUID{1}, Fence: 2}
	poll := func(all ...database.Lease) database.State {
		s := database.State{Leases: map[database.Lease]bool{}, Begun: map[uuid.UUID]bool{}}
		for _, h := range all {
			s.Leases[h], s.Begun[h.Action] = true, true
		}
		return s
	}
	b := &injections{lease: 4 * time.Second}
	one := b.add(byKill, start)
	b.setDuration(one, 0)

	b.update(start.Add(-time.Second), poll(dead)) // begun before the kill
	b.update(start.Add(1*time.Second), poll(dead, alive))
	b.update(start.Add(2*time.Second), poll(dead))
	b.update(start.Add(5*time.Second), poll(next))
	b.update(start.Add(6*time.Second), poll())

	if len(one.orphans) != 1 || one.orphans[0] != dead {
		t.Errorf("orphans = %v, want the killed worker's lease alone", one.orphans)
	}
	e := evidence{injections: b.list()}
	if got := e.worst(); got != 6*time.Second {
		t.Errorf("worst() = %s, want 6s", got)
	}
	if !e.held(dead.Action) || !e.held(alive.Action) || e.held(uuid.UUID{9}) {
		t.Error("held() does not hold for the two actions alone")
	}
	if got := e.countOrphans(byKill); got != 1 {
		t.Errorf("countOrphans() = %d, want 1", got)
	}
}

// TestInjectionDuration measures recovery from the end of an injection, and
// counts every lease during it as hit.
func TestInjectionDuration(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	before, during := uuid.UUID{1}, uuid.UUID{2}
	poll := func(ids ...uuid.UUID) database.State {
		s := database.State{Leases: map[database.Lease]bool{}, Begun: map[uuid.UUID]bool{}}
		for _, id := range ids {
			s.Leases[database.Lease{Action: id, Fence: 1}], s.Begun[id] = true, true
		}
		return s
	}
	b := &injections{lease: 4 * time.Second}
	b.update(start.Add(-time.Second), poll(before))
	one := b.add(byDisk, start)
	b.update(start.Add(time.Second), poll(during))
	b.setDuration(one, 3*time.Second)
	b.update(start.Add(4*time.Second), poll(during))

	if !one.settled.IsZero() {
		t.Error("the injection is settled while an action has not ended")
	}
	b.update(start.Add(5*time.Second), poll())

	e := evidence{injections: b.list()}
	if got := e.worst(); got != 2*time.Second {
		t.Errorf("worst() = %s, want 2s", got)
	}
	if !e.held(before) || !e.held(during) {
		t.Error("held() = false, want true for both actions")
	}
	ends := []time.Time{start.Add(-time.Second), start.Add(4 * time.Second), start.Add(6 * time.Second)}
	if got := e.unexplained(ends); got != 2 {
		t.Errorf("unexplained() = %d, want 2", got)
	}
}
