package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/bench/hostile"
)

// measureHostile measures one tenant's latencies while another one attacks the
// API, and the memory of the API's process.
func measureHostile(ctx context.Context, s *suite) error {
	url, drop, err := s.srv.fresh(ctx)
	if err != nil {
		return err
	}
	defer drop()
	r, err := hostile.Run(ctx, hostile.Config{URL: url, Bodies: s.bodies, Quiet: s.length, Attackers: 8, Rate: s.rate})
	if err != nil {
		return err
	}
	for _, status := range slices.Sorted(maps.Keys(r.Sent)) {
		s.rep.note("%d of the attacker's requests were answered with %d", r.Sent[status], status)
	}
	for _, slow := range r.Slowest {
		s.rep.note("slowest: %s, %s", slow.Took.Round(time.Millisecond), slow.Name)
	}
	s.rep.note("the attack took %s; of the other tenant %d requests were answered, %d of them badly", r.Took.Round(time.Second), r.Served, r.Failed)
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	s.rep.single("neighbour, quiet, p50", "ms", milliseconds(r.QuietP50), nil)
	s.rep.single("neighbour, quiet, p99", "ms", milliseconds(r.QuietP99), nil)
	s.rep.single("neighbour, attacked, p50", "ms", milliseconds(r.P50), nil)
	s.rep.single("neighbour, attacked, p99", "ms", milliseconds(r.P99), map[string]float64{"ratio": r.Ratio()})
	s.rep.note("attacked ÷ quiet: %.2f", r.Ratio())
	s.rep.single("API, peak resident memory", "MB", float64(r.PeakBytes)/(1<<20), nil)
	return r.Check()
}
