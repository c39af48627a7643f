package classify

import "math"

// The functions below give the same bits on every processor: every product is
// rounded before it is added, so that no compiler fuses the two operations, and
// no function of package math with an assembly implementation is used.

const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// exp returns e to the x.
func exp(x float64) float64 {
	x = max(-80, min(80, x))
	k := math.Floor(float64(x/math.Ln2) + 0.5)
	r := x - float64(k*ln2High)
	r -= float64(k * ln2Low)
	// Taylor's series; the remainder is below 2^-53 for |r| ≤ ln(2)/2.
	sum := 1.0
	for n := 13.0; n >= 1; n-- {
		sum = 1 + float64(float64(sum*r)/n)
	}
	return math.Ldexp(sum, int(k))
}

// softmax replaces scores by probabilities. A single score is the log odds of
// yes, and becomes the probability of yes.
func softmax(scores []float64) {
	if len(scores) == 1 {
		scores[0] = 1 / (1 + exp(-scores[0]))
		return
	}
	top := scores[0]
	for _, s := range scores[1:] {
		top = max(top, s)
	}
	sum := 0.0
	for i, s := range scores {
		scores[i] = exp(s - top)
		sum += scores[i]
	}
	for i := range scores {
		scores[i] /= sum
	}
}

// mix spreads the bits of a hash (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// hashString is FNV-1a over a string.
func hashString(s string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}
