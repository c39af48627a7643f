package main

import (
	"math/rand/v2"
	"testing"
)

func TestInterval(t *testing.T) {
	t.Parallel()

	for n, want := range map[int][3]float64{
		6:  {3.5, 1, 6},  // 96.9 %
		9:  {5, 2, 8},    // 96.1 %
		11: {6, 2, 10},   // 98.8 %
		12: {6.5, 3, 10}, // 96.1 %
		25: {13, 8, 18},  // 95.7 %
	} {
		values := make([]float64, n)
		for i, at := range rand.New(rand.NewPCG(1, uint64(n))).Perm(n) {
			values[i] = float64(at + 1)
		}

		mid, low, high := interval(values)

		if got := [3]float64{mid, low, high}; got != want {
			t.Errorf("interval of 1 to %d = %v, want %v", n, got, want)
		}
	}
}

// TestIntervalHoldsTheMedian counts the intervals that miss the median of a
// skewed distribution.
func TestIntervalHoldsTheMedian(t *testing.T) {
	t.Parallel()
	const runs, middle = 4000, 0.6931471805599453
	random := rand.New(rand.NewPCG(2, 3))
	missed := 0

	for range runs {
		values := make([]float64, 9)
		for i := range values {
			values[i] = random.ExpFloat64()
		}
		if _, low, high := interval(values); low > middle || high < middle {
			missed++
		}
	}

	if share := float64(missed) / runs; share > 0.05 {
		t.Errorf("the interval misses the median in %.3f of the runs, want 0.05 at most", share)
	}
}

func TestChange(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		low, high float64
		want      string
	}{{0.8, 0.9, "less"}, {0.8, 1.1, "no difference shown"}, {1.01, 1.2, "more"}} {
		if got := change(c.low, c.high); got != c.want {
			t.Errorf("change(%g, %g) = %q, want %q", c.low, c.high, got, c.want)
		}
	}
}
