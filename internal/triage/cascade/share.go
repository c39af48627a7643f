package cascade

import (
	"math"
	"slices"
)

// What an answer is believed without a calibration. Both are under the
// confidence from which a level is not lowered.
const (
	// Cap is the highest confidence of an answer of a model that was not
	// calibrated.
	Cap = 0.65
	// Fixed is the confidence of an answer without log-probabilities.
	Fixed = 0.6
	// halfWeight is how much an answer without calibration counts against the
	// embedded models where the two differ.
	halfWeight = 0.5
)

// spread returns a distribution in which one place has a share and the others
// the rest, evenly.
func spread(share float64, at, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = (1 - share) / float64(n-1)
	}
	all[at] = share
	return all
}

// capped returns a distribution in which no place has more than the cap: what is
// over it goes to the others.
func capped(shares []float64, most float64) []float64 {
	at := top(shares)
	if shares[at] <= most {
		return shares
	}
	rest := 1 - shares[at]
	if rest < 1e-9 {
		return spread(most, at, len(shares))
	}
	out := make([]float64, len(shares))
	for i, s := range shares {
		out[i] = s * (1 - most) / rest
	}
	out[at] = most
	return out
}

// top returns the place of the largest share, the first of equal ones.
func top(shares []float64) int {
	best := 0
	for i, s := range shares {
		if s > shares[best] {
			best = i
		}
	}
	return best
}

// pool returns the weighted mean of two distributions. No share of it is larger
// than the larger one of the two.
func pool(a, b []float64, weight float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = mean(a[i], b[i], weight)
	}
	return out
}

func mean(a, b, weight float64) float64 {
	return min(max(a, b), max(min(a, b), (1-weight)*a+weight*b))
}

// isDistribution reports whether numbers are n shares of one.
func isDistribution(shares []float64, n int) bool {
	sum := 0.0
	for _, s := range shares {
		if !(s >= 0 && s <= 1) {
			return false
		}
		sum += s
	}
	return len(shares) == n && n > 1 && math.Abs(sum-1) < 1e-3
}

// probability returns p, or what stands for none.
func probability(p, none float64) float64 {
	if p >= 0 && p <= 1 {
		return p
	}
	return none
}

// temper returns shares at a temperature.
func temper(shares []float64, temperature float64) []float64 {
	if temperature == 1 || !(temperature > 0) {
		return shares
	}
	out := make([]float64, len(shares))
	most := slices.Max(shares)
	sum := 0.0
	for i, s := range shares {
		out[i] = math.Pow(s/most, 1/temperature)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
