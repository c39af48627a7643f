package classify

import (
	"math"
	"slices"
)

// outcome is a head's result for a held-out example.
type outcome struct {
	scores []float64
	class  int // for a head with one output, 1 is yes
	weight float64
}

// temper returns the probabilities at a temperature.
func (o outcome) temper(temperature float64, into []float64) []float64 {
	into = into[:len(o.scores)]
	for i, s := range o.scores {
		into[i] = s / temperature
	}
	softmax(into)
	return into
}

// probability returns the probability of a class.
func probability(p []float64, class int) float64 {
	switch {
	case len(p) > 1:
		return p[class]
	case class == 1:
		return p[0]
	}
	return 1 - p[0]
}

// calibrate returns the temperature that minimises the squared error of the
// probabilities.
func calibrate(outcomes []outcome) float64 {
	if len(outcomes) == 0 {
		return 1
	}
	best, least := 1.0, math.Inf(1)
	var p [maxOutputs]float64
	for temperature := 0.2; temperature < 4; temperature = float64(temperature * 1.05) {
		sum := 0.0
		for _, o := range outcomes {
			sum += float64(o.weight * brier(o.temper(temperature, p[:]), o.class))
		}
		if sum < least {
			best, least = temperature, sum
		}
	}
	return best
}

// brier returns the squared distance between probabilities and the right class.
func brier(p []float64, class int) float64 {
	if len(p) == 1 {
		d := p[0] - float64(class)
		return float64(d * d)
	}
	sum := 0.0
	for i, q := range p {
		if i == class {
			q--
		}
		sum += float64(q * q)
	}
	return sum
}

// cutFor returns the highest cut that finds the wanted share of positives,
// given by their probabilities. The cut is halfway to the next lower
// probability of any example, so that unseen examples near it count as found.
func cutFor(positives, all []float64, recall float64) float64 {
	if len(positives) == 0 {
		return 0.5
	}
	slices.Sort(positives)
	slices.Sort(all)
	missed := int(float64(float64(len(positives)) * (1 - recall)))
	at := positives[missed]
	below, _ := slices.BinarySearch(all, at)
	if below == 0 {
		return at / 2
	}
	return (at + all[below-1]) / 2
}

// decide returns the index of the priority to choose: the probability of a
// class counts fully, that of its neighbours on the ladder by the share near.
func decide(p []float64, near float64) int {
	ladder := len(p) - 1 // the last class is not on the ladder
	best, most := 0, -1.0
	for c := range p {
		sum := p[c]
		if c < ladder && c > 0 {
			sum += float64(near * p[c-1])
		}
		if c < ladder-1 {
			sum += float64(near * p[c+1])
		}
		if sum > most {
			best, most = c, sum
		}
	}
	return best
}
