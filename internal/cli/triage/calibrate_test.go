package triage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

func calibrate(t *testing.T, flags ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), append([]string{"triage", "calibrate"}, flags...), command.System{
		Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" },
	})
	return code, stdout.String(), stderr.String()
}

func TestCalibrateWritesNothingThatMayNotBeUsed(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Config{})
	path := filepath.Join(t.TempDir(), "calibrations.json")
	const other = `{"t1.v1":{"other":{"show":{"temperature":2,"weight":0.5,"examples":9}}}}`
	if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}

	code, out, errs := calibrate(t, "--model", server.URL(), "--training", "../../triage/classify/testdata/small", "--out", path)
	data, err := os.ReadFile(path)
	if code != command.ExitFailed || !strings.Contains(errs, "nothing was written") || !strings.Contains(out, "NOT CALIBRATED: there are fewer than 100") || string(data) != other || err != nil {
		t.Errorf("of too few answers: exit code %d, %s\n%s\n%s, %v", code, errs, out, data, err)
	}
}

func TestCalibrateRefuses(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(broken, []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, flags := range map[string][]string{
		"--out is required":         {"--model", "http://127.0.0.1:1"},
		"name the models":           {"--out", broken + ".json"},
		"invalid calibrations file": {"--model", "http://127.0.0.1:1", "--training", "../../triage/classify/testdata/small", "--out", broken},
	} {
		if code, _, errs := calibrate(t, flags...); code != command.ExitUsage || !strings.Contains(errs, says) {
			t.Errorf("exit code %d, %s, want %q", code, errs, says)
		}
	}
}
