package cascade

import (
	"math"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// Confidences without a calibration. Both are below the confidence at which a
// level is not lowered.
const (
	// Cap is the highest confidence of an answer of an uncalibrated model.
	Cap = 0.65
	// Fixed is the confidence of an answer without log-probabilities.
	Fixed = 0.6
	// halfWeight is the weight of an uncalibrated answer against the embedded
	// models if they differ.
	halfWeight = 0.5
)

// spread returns a distribution in which one place has a share and the others
// divide the rest evenly.
func spread(share float64, at, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = (1 - share) / float64(n-1)
	}
	all[at] = share
	return all
}

// capped returns a distribution in which no place exceeds the cap: the excess
// goes to the others.
func capped(shares []float64, most float64) []float64 {
	at := classify.Largest(shares)
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

// pool returns the weighted mean of two distributions. No share exceeds the
// larger one of the two.
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

// isDistribution reports whether numbers are n shares that sum to one.
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

// probability returns p if it is a valid probability, else none.
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
