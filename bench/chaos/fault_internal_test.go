package main

import (
	"testing"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
)

// TestBounds computes the number of actions that may end as unknown.
func TestBounds(t *testing.T) {
	t.Parallel()
	e := evidence{
		plan:       plan{workers: 3, concurrency: 8},
		injections: []*injection{{kind: byKill}, {kind: byRestart}},
		server:     &counting.Counts{Faulty: map[int]int{1: 1, 5: 2}},
	}

	for name, row := range map[string]struct {
		most func(evidence) int
		want int
	}{
		"none": {noneUnknown, 0}, "per injection": {perInjection, 16}, "per outage": {perOutage, 48}, "per faulty": {perFaulty, 2},
		"per kill": {databaseFaults()[0].most, 8},
	} {
		if got := row.most(e); got != row.want {
			t.Errorf("%s = %d, want %d", name, got, row.want)
		}
	}
}

// TestFaults verifies that every fault is complete.
func TestFaults(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}

	for _, f := range faults() {
		if seen[f.name] || f.name == "" || f.about == "" || f.n == 0 || f.over == 0 {
			t.Errorf("fault %q is there twice, or says too little", f.name)
		}
		if f.inject == nil || f.most == nil || len(f.signs) == 0 {
			t.Errorf("fault %q has no injector, bound or sign", f.name)
		}
		seen[f.name] = true
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()

	const url = "postgres://elsewhere"
	for _, f := range faults() {
		if why := f.unavailable(url); f.ownServer && why == "" || f.name == "kill" && why != "" {
			t.Errorf("unavailable() of %s with another's database = %q", f.name, why)
		}
	}
}
