package cascade

import "github.com/countersign-dev/countersign/internal/triage/classify"

// Sample is an answer of a model to a question whose right answer is known, about
// a message that was used for nothing else. Places are those of Values.
type Sample struct {
	Said, Right int
	// Shares are those of the model, of Raw; nil where the server gives no
	// log-probabilities.
	Shares []float64
	// Embedded are the shares that the embedded models give; nil where they have no
	// answer to the question.
	Embedded []float64
}

// Fit returns the calibration for a question with n answers at which the squared
// error over the samples is least, first of the model alone and then of it with
// the embedded models. It is to be judged on other samples than these.
func Fit(samples []Sample, n int) Calibration {
	c := Calibration{Temperature: 1, Weight: halfWeight, Examples: len(samples)}
	right := 0
	for _, s := range samples {
		if s.Said == s.Right {
			right++
		}
	}
	// Of few samples all may be right; no answer is certain for that.
	c.Fixed = float64(right+1) / float64(len(samples)+2)
	least := squares(samples, n, c, false)
	for temperature := 0.2; temperature < 10; temperature *= 1.05 {
		with := c
		with.Temperature = temperature
		if sum := squares(samples, n, with, false); sum < least {
			c.Temperature, least = temperature, sum
		}
	}
	least = squares(samples, n, c, true)
	for step := range 21 {
		with := c
		with.Weight = float64(step) / 20
		if sum := squares(samples, n, with, true); sum < least {
			c.Weight, least = with.Weight, sum
		}
	}
	return c
}

// squares returns the sum of the squared errors, of the model alone or with the
// embedded models.
func squares(samples []Sample, n int, c Calibration, both bool) float64 {
	sum := 0.0
	for _, s := range samples {
		if both && s.Embedded == nil || !both && s.Shares == nil {
			continue
		}
		shares := c.believed(s.Shares, s.Said, n)
		if both {
			shares = pool(s.Embedded, shares, c.Weight)
		}
		for i, p := range shares {
			if i == s.Right {
				p--
			}
			sum += p * p
		}
	}
	return sum
}

// CalibrationError returns the mean distance between how far the answers of
// samples are believed with a calibration and the share of them that was right,
// over ten bins.
func CalibrationError(samples []Sample, n int, c Calibration) float64 {
	var bins classify.Calibration
	for _, s := range samples {
		bins.Add(c.believed(s.Shares, s.Said, n)[s.Said], s.Said == s.Right)
	}
	return bins.Error()
}
