package main

import (
	"testing"
)

// TestBounds computes what may end unknown.
func TestBounds(t *testing.T) {
	t.Parallel()
	e := evidence{
		plan:       plan{workers: 3, concurrency: 8},
		injections: []*injection{{kind: byKill}, {kind: byRestart}},
		server:     &journalCounts{Spoiled: map[int]int{1: 1, 5: 2}},
	}

	for name, row := range map[string]struct {
		most func(evidence) int
		want int
	}{
		"none": {noneUnknown, 0}, "per hit": {perHit, 16}, "per outage": {perOutage, 48}, "per spoiled": {perSpoiled, 2},
		"per kill": {killFault().most, 8},
	} {
		if got := row.most(e); got != row.want {
			t.Errorf("%s = %d, want %d", name, got, row.want)
		}
	}
}

// TestFaults holds every fault to what makes its check worth something.
func TestFaults(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}

	for _, f := range faults() {
		if seen[f.name] || f.name == "" || f.about == "" || f.n == 0 || f.over == 0 {
			t.Errorf("fault %q is there twice, or says too little", f.name)
		}
		if f.inject == nil || f.most == nil || len(f.wantSigns) == 0 {
			t.Errorf("fault %q cannot be made, bounded or felt", f.name)
		}
		seen[f.name] = true
	}
}

func TestLacks(t *testing.T) {
	t.Parallel()

	if why := skewFault().lacks(options{worker: workerSelf}); why == "" {
		t.Error("lacks() of clock-skew with another worker = nothing, want why")
	}
	if why := restartFaults()[0].lacks(options{url: "postgres://elsewhere"}); why == "" {
		t.Error("lacks() of a restart with another's database = nothing, want why")
	}
	if why := killFault().lacks(options{url: "postgres://elsewhere", worker: workerSelf}); why != "" {
		t.Errorf("lacks() of kill = %q, want nothing", why)
	}
}
