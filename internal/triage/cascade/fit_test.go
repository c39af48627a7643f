package cascade_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
)

// drawnSamples returns answers of an overconfident model: an answer with
// confidence p is right as often as p at a temperature.
func drawnSamples(seed uint64, many int, temperature float64) []cascade.Sample {
	random := rand.New(rand.NewPCG(seed, 1))
	samples := make([]cascade.Sample, many)
	for i := range samples {
		odds := random.NormFloat64() * 3
		said := 0
		if odds < 0 {
			said = 1
		}
		p := 1 / (1 + math.Exp(-odds))
		right := 1
		if random.Float64() < 1/(1+math.Exp(-odds/temperature)) {
			right = 0
		}
		samples[i] = cascade.Sample{Said: said, Right: right, Shares: []float64{p, 1 - p}, Embedded: []float64{.5, .5}}
	}
	return samples
}

func TestFitFindsTheTemperature(t *testing.T) {
	t.Parallel()
	for _, temperature := range []float64{0.5, 1, 3} {
		c := cascade.Fit(drawnSamples(1, 4000, temperature), 2)
		held := drawnSamples(2, 4000, temperature)

		if math.Abs(math.Log(c.Temperature/temperature)) > 0.2 || c.Weight < 0.9 || c.Examples != 4000 {
			t.Errorf("of temperature %.1f: %+v", temperature, c)
		}
		raw := cascade.CalibrationError(held, 2, cascade.Calibration{Temperature: 1})
		if fitted := cascade.CalibrationError(held, 2, c); fitted > 0.03 || temperature == 3 && fitted > raw/2 {
			t.Errorf("of temperature %.1f: the calibration error is %.3f, and %.3f without", temperature, fitted, raw)
		}
	}
}

func TestFitWithoutLogProbabilities(t *testing.T) {
	t.Parallel()
	samples := drawnSamples(1, 1000, 1)
	right := 0
	for i := range samples {
		samples[i].Shares = nil
		if samples[i].Said == samples[i].Right {
			right++
		}
	}

	c := cascade.Fit(samples, 2)

	if share := float64(right) / 1000; math.Abs(c.Fixed-share) > 0.01 || cascade.CalibrationError(samples, 2, c) > 0.01 {
		t.Errorf("%.3f are right, and %+v", share, c)
	}
	if one := cascade.Fit(samples[:1], 2); one.Fixed > 0.7 {
		t.Errorf("after one sample: %+v", one)
	}
}

func TestReadCalibrations(t *testing.T) {
	t.Parallel()
	if _, err := cascade.Calibrated(); err != nil {
		t.Errorf("the calibrations that are shipped cannot be read: %v", err)
	}
	for text, ok := range map[string]bool{
		`{"t1.v1":{"m":{"show":{"temperature":1.5,"weight":0.5,"examples":100}}}}`:                true,
		`{"t1.v1":{"m":{"show":{"temperature":0,"weight":0.5,"examples":100}}}}`:                  false,
		`{"t1.v1":{"m":{"show":{"temperature":1,"weight":1.5,"examples":100}}}}`:                  false,
		`{"t1.v1":{"m":{"show":{"temperature":1,"weight":1,"fixed":1,"examples":100}}}}`:          false,
		`{"t1.v1":{"m":{"show":{"temperature":1,"weight":1}}}}`:                                   false,
		`{"t1.v1":{"m":{"show":{"temperature":1,"weight":1,"examples":1,"note":"x"}}}}`:           false,
		`{"t1.v1":{"m":{"show":{"temperature":1,"weight":1,"examples":1}}}}{"t1.v1":{"show":{}}}`: false,
	} {
		if _, err := cascade.ReadCalibrations([]byte(text)); (err == nil) != ok {
			t.Errorf("ReadCalibrations(%s) = %v", text, err)
		}
	}
}
