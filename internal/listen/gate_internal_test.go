package listen

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestGateCountsOpenConnections opens, reassigns and releases connections at
// random: none exceeds a bound, and released ones are not counted.
func TestGateCountsOpenConnections(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	refused := 0
	g := newGate(Limits{Connections: 12, AddressConnections: 2, CallerConnections: 1}, func(string) { refused++ })
	var open []*holding
	for range 20_000 {
		address := key{boundAddress, fmt.Sprint(random.IntN(8))}
		caller := []key{{boundCaller, fmt.Sprint(random.IntN(12))}, {boundTenant, fmt.Sprint(random.IntN(2))}, {bound: boundAll}}
		switch i := random.IntN(len(open) + 1); {
		case i == len(open):
			if h := g.take(key{bound: boundAll}, address); h != nil {
				open = append(open, h)
			}
		case random.IntN(3) == 0:
			open[i].release()
			_, _ = open[i].replace(caller) // its handler goes on
			open[i].release()
			open = append(open[:i], open[i+1:]...)
		default:
			_, _ = open[i].replace(caller)
		}
		want := make(map[key]int)
		for _, h := range open {
			for _, k := range h.keys {
				want[k]++
			}
		}
		for k, n := range g.held {
			if n != want[k] || n > g.most(k.bound) || n <= 0 {
				t.Fatalf("held %d of %v, want %d, at most %d", n, k, want[k], g.most(k.bound))
			}
		}
		if len(g.held) != len(want) {
			t.Fatalf("held %v, want %v", g.held, want)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
