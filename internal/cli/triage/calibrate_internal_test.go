package triage

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/evaluate"
)

func TestCalibrationsAreWrittenBesideThoseOfOtherModels(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "calibrations.json")
	of := cascade.Calibration{Temperature: 2, Weight: 0.5, Examples: 200}
	was := cascade.Calibrations{"t1.v1": {"other": {"show": of}, "one": {"kind": of}}}
	var out, errs bytes.Buffer
	a := &command.App{System: command.System{Out: &out, Err: &errs}}

	err := showFitted(a, path, was, []evaluate.Fitted{
		{Tier: cascade.T1, Question: "show", Model: "one", Made: 200, Held: 190, Before: 0.3, After: 0.04, Calibration: of},
		{Tier: cascade.T2a, Question: "act", Model: "one", Made: 200, Held: 190, After: 0.2, Why: "it errs"},
	})

	got, readErr := cascade.OpenCalibrations(path)
	if err != nil || readErr != nil || got["t1.v1"]["one"]["show"] != of || got["t1.v1"]["other"]["show"] != of {
		t.Errorf("the file has %v, %v, %v", got, err, readErr)
	}
	if len(got["t1.v1"]["one"]) != 1 || len(got["t2a.v1"]) != 0 {
		t.Errorf("the file has more than was fitted: %v", got)
	}
	for _, want := range []string{"one t1 show: error 0.040 (was 0.300) on 190 answers; calibrated on 200", "one t2a act: NOT CALIBRATED: it errs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".cal*")); len(left) > 0 || err != nil {
		t.Errorf("it left %v, %v", left, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file is %v, %v", info, err)
	}
}
