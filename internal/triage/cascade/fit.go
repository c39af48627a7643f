package cascade

import "github.com/countersign-dev/countersign/internal/triage/classify"

// Sample is an answer of a model to a question with a known right answer, about
// a message that was used for nothing else. Places index Values.
type Sample struct {
	Said, Right int
	// Shares are those of the model, from Raw; nil if the server returns no
	// log-probabilities.
	Shares []float64
	// Embedded are the shares of the embedded models; nil if they have no
	// answer to the question.
	Embedded []float64
}

// Fit returns the calibration for a question with n answers that minimises the
// squared error over the samples, first of the model alone and then together
// with the embedded models. Evaluate it on other samples.
func Fit(samples []Sample, n int) Calibration {
	c := Calibration{Temperature: 1, Weight: halfWeight, Examples: len(samples)}
	right := 0
	for _, s := range samples {
		if s.Said == s.Right {
			right++
		}
	}
	// A small sample may be all right, which is no certainty.
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

// CalibrationError returns the expected calibration error: the mean difference
// between confidence and accuracy of the samples over ten bins.
func CalibrationError(samples []Sample, n int, c Calibration) float64 {
	var bins classify.Calibration
	for _, s := range samples {
		bins.Add(c.believed(s.Shares, s.Said, n)[s.Said], s.Said == s.Right)
	}
	return bins.Error()
}
