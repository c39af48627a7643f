package evaluate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/evaluate"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// TestCalibrate checks that an overconfident model gets less confidence with
// its calibration, on held-out messages.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	s, files := noisyOf(t, trainingFolder, sometimes(3), "")
	b := backend(t, "test", modeltest.New(t, modeltest.Config{Answer: s.answer}))
	o := options(t)
	o.Training = files
	o.Cold.Mail.Epochs, o.Cold.Sentence.Epochs = 1, 1

	got, err := evaluate.Calibrate(t.Context(), o, b)
	if err != nil {
		t.Fatal(err)
	}

	var questions []string
	for _, f := range got {
		questions = append(questions, f.Question)
		if f.Why != "" || f.Before < 0.15 || f.After > f.Before/2 || f.Calibration.Examples != f.Made || f.Held < evaluate.LeastExamples || f.Model != "test-model" {
			t.Errorf("%+v", f)
		}
	}
	if text := strings.Join(questions, " "); text != "show act category priority" {
		t.Errorf("calibrated were %s", text)
	}
	path := filepath.Join(t.TempDir(), "calibrations.json")
	data, err := json.Marshal(evaluate.Calibrations(got, cascade.Calibrations{"t1.v1": {"other": {"show": {Temperature: 2, Examples: 9}}}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := cascade.OpenCalibrations(path)
	if err != nil || read["t2a.v1"]["test-model"]["act"].Examples != got[1].Made || read["t1.v1"]["other"]["show"].Temperature != 2 || len(read["t1.v1"]) != 2 {
		t.Errorf("the file has %v, %v", read, err)
	}
}

func TestCalibrateNeedsEnoughAnswers(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Config{})
	b := backend(t, "test", server)
	o := options(t) // with little training mail

	got, err := evaluate.Calibrate(t.Context(), o, b)

	if err != nil || len(got) != 4 {
		t.Fatalf("Calibrate() = %+v, %v", got, err)
	}
	for _, f := range got {
		if !strings.Contains(f.Why, "fewer than 100") {
			t.Errorf("%+v", f)
		}
	}
	if c := evaluate.Calibrations(got, nil); len(c) > 0 {
		t.Errorf("there are calibrations: %v", c)
	}
	server.Fail(modeltest.Loading)
	if got, err := evaluate.Calibrate(t.Context(), o, b); err == nil || !strings.Contains(err.Error(), "unavailable") {
		t.Errorf("without a server, Calibrate() = %+v, %v", got, err)
	}
}
