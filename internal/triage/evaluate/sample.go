package evaluate

import (
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// leastSamples is the number of samples that a half needs for the figures of a
// calibration made from the other half.
const leastSamples = 20

// right returns the labelled answer to a question, or "".
func (e example) right(question string) string {
	switch question {
	case questionShow:
		if e.shown() {
			return "yes"
		}
		return "no"
	case questionAct:
		return e.labels.Act
	case questionCategory:
		return e.labels.Category
	case questionPriority:
		return e.labels.Priority
	}
	return ""
}

// embedded returns the embedded models' distribution over the answers to a
// question, or nil.
func (e example) embedded(question string, values []string) []float64 {
	spread := func(value string, sure float64) []float64 {
		at := slices.Index(values, value)
		if at < 0 {
			return nil
		}
		out := make([]float64, len(values))
		for i := range out {
			out[i] = (1 - sure) / float64(len(values)-1)
		}
		out[at] = sure
		return out
	}
	switch question {
	case questionAct:
		return spread(string(e.prediction.Act), e.prediction.ActConfidence)
	case questionCategory:
		return spread(string(e.prediction.Category), e.prediction.CategoryConfidence)
	case questionPriority:
		out := make([]float64, len(values))
		for i, v := range values {
			out[i] = e.prediction.Priorities[classify.Priority(v)]
		}
		return out
	}
	return nil
}

// samples returns the answers to a question with a known right answer, in two
// halves by the ids of the messages. The answers have the shares of the model.
func (s set) samples(tier cascade.Tier, question string, raw answers) (halves [2][]cascade.Sample) {
	values := cascade.Values(tier, question)
	for i, e := range s.examples {
		c, ok := raw.choice(i, question)
		right := slices.Index(values, e.right(question))
		if !ok || right < 0 {
			continue
		}
		sample := cascade.Sample{Said: slices.Index(values, c.Value), Right: right, Embedded: e.embedded(question, values)}
		if c.Calibrated {
			sample.Shares = c.Shares
		}
		half := fold(e.mail.ID.String(), 0, 2)
		halves[half] = append(halves[half], sample)
	}
	return halves
}

// calibration returns the calibration errors of answers: with the model's
// confidence, with triage's, and with calibrations that are fitted on one half
// of the messages and evaluated on the other.
func (s set) calibration(tier cascade.Tier, replies, raw answers) []Figure {
	var figures []Figure
	for _, question := range cascade.Questions(tier) {
		halves := s.samples(tier, question, raw)
		all := slices.Concat(halves[0], halves[1])
		if len(all) == 0 {
			continue
		}
		n, name := len(cascade.Values(tier, question)), question+" calibration error"
		weighed := slices.DeleteFunc(slices.Clone(all), func(s cascade.Sample) bool { return s.Shares == nil })
		if len(weighed) > 0 {
			figures = append(figures, Figure{Name: name + ", as the model gives it", Value: cascade.CalibrationError(weighed, n, cascade.Calibration{Temperature: 1})})
		}
		var believed classify.Calibration
		for i, e := range s.examples {
			if c, ok := replies.choice(i, question); ok && e.right(question) != "" {
				believed.Add(c.Confidence, c.Value == e.right(question))
			}
		}
		figures = append(figures, Figure{Name: name + ", as it is believed", Value: believed.Error()})
		if min(len(halves[0]), len(halves[1])) >= leastSamples {
			sum := 0.0
			for i, half := range halves {
				sum += float64(len(half)) * cascade.CalibrationError(half, n, cascade.Fit(halves[1-i], n))
			}
			figures = append(figures, Figure{Name: name + ", fitted on the other half", Value: sum / float64(len(all))})
		}
	}
	return figures
}
