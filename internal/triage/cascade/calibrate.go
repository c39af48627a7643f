package cascade

import (
	"bytes"
	_ "embed" // the calibrations
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
)

//go:embed calibration.json
var embedded []byte

// Calibration is the measured reliability of a model's answers to one question.
type Calibration struct {
	// Temperature divides the log-probabilities; 1 leaves them unchanged.
	Temperature float64 `json:"temperature"`
	// Weight is the weight of an answer against the embedded models if they
	// differ, 0 to 1.
	Weight float64 `json:"weight"`
	// Fixed is the confidence of an answer without log-probabilities; 0 if it
	// was not measured.
	Fixed float64 `json:"fixed,omitzero"`
	// Examples is the number of held-out examples.
	Examples int `json:"examples"`
}

// Calibrations maps the version of the prompt, the model's own name and the
// question to a calibration.
type Calibrations map[string]map[string]map[string]Calibration

// Calibrated returns the shipped calibrations.
func Calibrated() (Calibrations, error) { return ReadCalibrations(embedded) }

// OpenCalibrations returns the shipped calibrations, overridden by those of a
// file unless path is empty.
func OpenCalibrations(path string) (Calibrations, error) {
	shipped, err := Calibrated()
	if err != nil || path == "" {
		return shipped, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the calibrations: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxCalibrations+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the calibrations: %w", err)
	case len(data) > maxCalibrations:
		return nil, fmt.Errorf("the file of calibrations %s is longer than 1 MiB", path)
	}
	own, err := ReadCalibrations(data)
	if err != nil {
		return nil, fmt.Errorf("the file of calibrations %s: %w", path, err)
	}
	return shipped.With(own), nil
}

// maxCalibrations limits the bytes of a file of calibrations.
const maxCalibrations = 1 << 20

// With returns the calibrations overridden by others. Those of a model for a
// prompt are replaced as a whole, since they were made together.
func (c Calibrations) With(others Calibrations) Calibrations {
	out := Calibrations{}
	for _, from := range []Calibrations{c, others} {
		for prompt, models := range from {
			if out[prompt] == nil {
				out[prompt] = map[string]map[string]Calibration{}
			}
			maps.Copy(out[prompt], models)
		}
	}
	return out
}

// ReadCalibrations parses a file of calibrations.
func ReadCalibrations(data []byte) (Calibrations, error) {
	var all Calibrations
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("read the calibrations: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the calibrations: trailing data")
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

// believed returns the confidence in each of n codes if the model chose the one
// at a place, with these shares or without any.
func (c Calibration) believed(shares []float64, at, n int) []float64 {
	if shares == nil {
		return spread(c.Fixed, at, n)
	}
	return temper(shares, c.Temperature)
}

// Raw returns calibrations of a model that change nothing, to measure its
// confidence: the shares of a choice are then those of the model. They are not
// for decisions.
func Raw(model string) Calibrations {
	all := Calibrations{}
	for _, tier := range Tiers() {
		s := specOf(tier)
		questions := map[string]Calibration{}
		for _, q := range s.questions {
			questions[q.name] = Calibration{Temperature: 1, Weight: halfWeight, Examples: 1}
		}
		all[s.version] = map[string]map[string]Calibration{model: questions}
	}
	return all
}

// Prompt returns the version of a tier's prompt.
func Prompt(tier Tier) string { return specOf(tier).version }

// Questions returns the names of the questions of a tier.
func Questions(tier Tier) []string {
	var names []string
	for _, q := range specOf(tier).questions {
		names = append(names, q.name)
	}
	return names
}

// Codes returns the codes of a tier's question, in the order of the shares of a
// choice.
func Codes(tier Tier, question string) []string {
	q, _ := specOf(tier).question(question)
	var codes []string
	for _, c := range q.codes {
		codes = append(codes, c.code)
	}
	return codes
}

// Values returns the values of a tier's question, in the order of the shares of
// a choice.
func Values(tier Tier, question string) []string {
	q, _ := specOf(tier).question(question)
	var values []string
	for _, c := range q.codes {
		values = append(values, c.value)
	}
	return values
}
