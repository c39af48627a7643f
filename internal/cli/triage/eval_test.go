package triage_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

func eval(t *testing.T, flags ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), append([]string{
		"triage", "eval", "--training", "../../triage/classify/testdata/small", "--fixture", "../../triage/evaluate/testdata/fixture",
		"--languages", "../../triage/evaluate/testdata/languages", "--lures", "../../triage/evaluate/testdata/lures",
	}, flags...), command.System{Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" }})
	return code, stdout.String(), stderr.String()
}

func TestEvalAsksTheModelOfAServer(t *testing.T) {
	t.Parallel()
	one, other := modeltest.New(t, modeltest.Config{}), modeltest.New(t, modeltest.Config{})

	code, out, errs := eval(t, "--model", one.URL(), "--model", other.URL(), "--limit", "30", "--json")

	var report struct {
		Sections []struct {
			Set, Mode string
			Examples  int
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != command.ExitOK {
		t.Fatalf("exit code %d, %s, %v", code, errs, err)
	}
	seen := map[string]int{}
	for _, s := range report.Sections {
		seen[s.Set] = s.Examples
	}
	for _, want := range []string{"test-model, t1", "test-model, t2a", "test-model, t2b", "test-model, as triage asks", "test-model (2), stability"} {
		if n := seen["fixture, "+want]; n == 0 || n > 30 {
			t.Errorf("%s has %d messages, want 1 to 30: %v", want, n, seen)
		}
	}
	if !strings.Contains(errs, "questions answered") {
		t.Errorf("no progress was told: %s", errs)
	}
}

func TestEvalRefuses(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Config{})
	unfit := modeltest.New(t, modeltest.Config{})
	unfit.Fail(modeltest.Ignored)
	for name, row := range map[string]struct {
		flags []string
		code  int
		says  string
	}{
		"a server elsewhere":           {[]string{"--model", "http://192.0.2.1:8080", "--model-name", "m"}, command.ExitFailed, "remote"},
		"a server elsewhere, unnamed":  {[]string{"--model", "http://192.0.2.1:8080"}, command.ExitUsage, "not on this machine"},
		"a server without obedience":   {[]string{"--model", unfit.URL()}, command.ExitFailed, "disobedient"},
		"a name too few":               {[]string{"--model", server.URL(), "--model", server.URL(), "--model-name", "m"}, command.ExitUsage, "name all models or none"},
		"a dialect that nobody speaks": {[]string{"--model", server.URL(), "--dialect", "klingon"}, command.ExitUsage, "--dialect"},
		"a limit without a model":      {[]string{"--limit", "3"}, command.ExitUsage, "--models"},
		"a file that is not there":     {[]string{"--models", "none.yaml"}, command.ExitUsage, "none.yaml"},
	} {
		if code, out, errs := eval(t, row.flags...); code != row.code || !strings.Contains(errs, row.says) || out != "" {
			t.Errorf("%s: exit code %d, want %d: %s", name, code, row.code, errs)
		}
	}
	if n := len(server.Requests()); n > 0 {
		t.Errorf("a server was asked %d questions", n)
	}
}

func TestEvalOfAFolderWithoutSetsFails(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--corpus", "--spamassassin"} {
		dir := t.TempDir()

		code, out, errs := eval(t, flag, dir)

		want := map[string]string{"--corpus": "looked for mail-labelled/messages.jsonl", "--spamassassin": "no data/easy-ham-1"}[flag]
		if code != command.ExitFailed || out != "" || !strings.Contains(errs, flag+" "+dir) || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, %s; want a failure that names %s, the folder and %q", code, errs, flag, want)
		}
	}
}
