package cascade

import (
	"bytes"
	_ "embed" // the calibrations
	"encoding/json"
	"fmt"
)

//go:embed calibration.json
var embedded []byte

// Calibration says how far the answers of a model to one question are to be
// believed.
type Calibration struct {
	// Temperature divides the log-probabilities; 1 leaves them as they are.
	Temperature float64 `json:"temperature"`
	// Weight is how much an answer counts against the embedded models where the two
	// differ, 0 to 1.
	Weight float64 `json:"weight"`
	// Fixed is the confidence of an answer without log-probabilities; 0 if that was
	// not measured.
	Fixed float64 `json:"fixed,omitzero"`
	// Examples is how many held-out examples it was made of.
	Examples int `json:"examples"`
}

// Calibrations are those of all models, by the version of the prompt, the name of
// the model as it answers, and the question.
type Calibrations map[string]map[string]map[string]Calibration

// Calibrated returns the calibrations that are shipped.
func Calibrated() (Calibrations, error) { return ReadCalibrations(embedded) }

// ReadCalibrations reads a file of calibrations.
func ReadCalibrations(data []byte) (Calibrations, error) {
	var all Calibrations
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("read the calibrations: %w", err)
	}
	for prompt, models := range all {
		for name, questions := range models {
			for question, c := range questions {
				if !(c.Temperature >= 0.05 && c.Temperature <= 20) || !(c.Weight >= 0 && c.Weight <= 1) || !(c.Fixed >= 0 && c.Fixed < 1) || c.Examples < 1 {
					return nil, fmt.Errorf("the calibration of %s for %s of %s needs a temperature of 0.05 to 20, a weight of 0 to 1, a fixed confidence under 1, and examples", name, question, prompt)
				}
			}
		}
	}
	return all, nil
}

// of returns the calibration of a question.
func (c Calibrations) of(prompt, model, question string) (Calibration, bool) {
	one, ok := c[prompt][model][question]
	return one, ok
}
