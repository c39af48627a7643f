package main

import (
	"math"
	"slices"
)

// minPairs is the least number of pairs for an interval.
const minPairs = 6

// interval returns the median of at least minPairs values and the ends of an
// interval that holds the median of their distribution with a probability of
// 95 % or more. The ends are order statistics, the k-th value from each side,
// with the largest k for which the binomial distribution with p = 1/2 gives
// P(X < k) ≤ 2.5 %. That assumes nothing about the distribution: a value that
// a busy machine spoils moves an end by one place at most.
func interval(values []float64) (mid, low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n, k, tail := len(sorted), 0, 0.0
	for p := math.Pow(0.5, float64(n)); tail+p <= 0.025; k++ {
		tail += p
		p *= float64(n-k) / float64(k+1)
	}
	return median(sorted), sorted[k-1], sorted[n-k]
}
