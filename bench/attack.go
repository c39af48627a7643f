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
	r, err := hostile.Run(ctx, hostile.Config{URL: url, Rounds: s.rounds, Bodies: s.bodies, Silent: s.silent, Quiet: s.length, Attackers: 8, Rate: s.rate})
	if err != nil {
		return err
	}
	for _, status := range slices.Sorted(maps.Keys(r.Sent)) {
		s.rep.note("%d of the attacker's requests were answered with %d", r.Sent[status], status)
	}
	for _, slow := range r.Slowest {
		s.rep.note("slowest: %s, %s", slow.Took.Round(time.Millisecond), slow.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Beside)) {
		s.rep.note("open during %d of the other tenant's %d slowest requests: %s", r.Beside[name], r.Late, name)
	}
	s.rep.note("the attacks took %s; of the other tenant %d requests were answered, %d of them badly", r.Took.Round(time.Second), r.Served, r.Failed)
	for _, name := range slices.Sorted(maps.Keys(r.Opened)) {
		s.rep.note("silent connections, %s: %d opened", name, r.Opened[name])
	}
	for _, answer := range slices.Sorted(maps.Keys(r.Ended)) {
		s.rep.note("silent connections, ended by the API: %d %s", r.Ended[answer], answer)
	}
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for i, one := range r.Rounds {
		s.rep.note("round %d: p50 %.1f ms, attacked %.1f ms; p99 %.1f ms, attacked %.1f ms: %.2f", i+1,
			milliseconds(one.QuietP50), milliseconds(one.P50), milliseconds(one.QuietP99), milliseconds(one.P99), one.Ratio())
	}
	s.rep.single("neighbour, p99 attacked ÷ quiet, median", "×", r.Ratio(), map[string]float64{"rounds": float64(len(r.Rounds))})
	s.rep.single("API, peak resident memory", "MB", float64(r.PeakBytes)/(1<<20), nil)
	s.rep.single("API, most silent connections open at once", "connections", float64(r.Held), nil)
	return r.Check()
}
