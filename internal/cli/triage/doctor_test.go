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

// doctor runs the command with a file of models.
func doctor(t *testing.T, file string, flags ...string) (code int, out, errs string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), append([]string{"triage", "doctor"}, flags...), command.System{
		Out: &stdout, Err: &stderr, Getenv: func(name string) string {
			if name == "COUNTERSIGN_TRIAGE_MODELS" {
				return path
			}
			return ""
		},
	})
	return code, stdout.String(), stderr.String()
}

func models(server *modeltest.Server) string {
	return "servers: {here: {url: '" + server.URL() + "'}}\ntiers: {t1: {server: here, model: test-model}, t2a: {server: here, model: test-model}}\n"
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	t.Run("reports a model that may be asked", func(t *testing.T) {
		t.Parallel()
		code, out, errs := doctor(t, models(modeltest.New(t, modeltest.Config{})))
		for _, want := range []string{"ok     test-model on here (http://127.0.0.1:", "for t1, t2a", "llama-server", "4 concurrent questions", "100 messages take about"} {
			if !strings.Contains(out, want) {
				t.Errorf("the report lacks %q:\n%s", want, out)
			}
		}
		if code != command.ExitOK || errs != "" {
			t.Errorf("exit code %d, %s", code, errs)
		}
	})
	t.Run("fails for one that may not", func(t *testing.T) {
		t.Parallel()
		server := modeltest.New(t, modeltest.Config{})
		server.Fail(modeltest.Ignored)
		code, out, errs := doctor(t, models(server))
		if code != command.ExitFailed || !strings.Contains(errs, "1 of 1 models cannot be used") || !strings.Contains(out, "UNFIT") || !strings.Contains(out, "→ Use a server that enforces") {
			t.Errorf("exit code %d, %s\n%s", code, errs, out)
		}
		code, out, _ = doctor(t, models(server), "--json")
		if code != command.ExitFailed || !strings.Contains(out, `"kind":"disobedient"`) && !strings.Contains(out, `"kind": "disobedient"`) {
			t.Errorf("exit code %d\n%s", code, out)
		}
	})
	t.Run("names the place of a mistake", func(t *testing.T) {
		t.Parallel()
		code, _, errs := doctor(t, "servers: {a: {url: 'http://127.0.0.1'}}\ntiers: {t1: {server: b, model: m}}")
		if code != command.ExitUsage || !strings.Contains(errs, "line 2: tiers.t1: server must be") {
			t.Errorf("exit code %d, %s", code, errs)
		}
	})
}
