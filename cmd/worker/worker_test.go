package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

func environment(pairs ...string) func(string) string {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()

	c, err := configFrom(environment(varDatabase, "postgres://u:hunter2@db/x"))
	if err != nil {
		t.Fatal(err)
	}

	got := []any{c.concurrency, c.batch, c.lease, c.grace, c.conns, c.pollOnly, c.pooled, c.level, c.metricsListen}
	want := []any{100, 500, 30 * time.Second, 20 * time.Second, int32(20), false, false, slog.LevelInfo, ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configFrom() (-want +got):\n%s", diff)
	}
	other, err := configFrom(environment(varDatabase, "postgres://u@db/x"))
	if err != nil || c.id == other.id {
		t.Errorf("two workers are both called %q, %v", c.id, err)
	}
}

func TestConfigNamesEveryBadVariable(t *testing.T) {
	t.Parallel()
	bad := []string{
		varDatabase, "hunter2://", varConcurrency, "hunter2", varBatch, "0", varLease, "1s", varGrace, "2h", varPollOnly, "hunter2",
		varPooled, "perhaps", varStdio, "x", varConns, "1", varKey, "hunter2", varLevel, "loud", varMetrics, "9090", varOTLP, "collector:4318",
	}

	_, err := configFrom(environment(bad...))

	if err == nil {
		t.Fatal("configFrom() = nil, want an error")
	}
	for i := 0; i < len(bad); i += 2 {
		if !strings.Contains(err.Error(), "  "+bad[i]+" must ") && !strings.Contains(err.Error(), "  "+bad[i]+" is ") {
			t.Errorf("error does not say what %s must be:\n%v", bad[i], err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error repeats a value: %v", err)
	}
}

func TestConfigHidesSecretsFromTheLog(t *testing.T) {
	t.Parallel()
	c, err := configFrom(environment(varDatabase, "postgres://u:hunter2@db:5433/x", varKey, "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnQ=",
		varOTLP, "http://user:hunter2@collector:4318"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer

	slog.New(slog.NewJSONHandler(&out, nil)).Info("starting", slog.Any("config", c))

	if text := out.String(); strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVy") || !strings.Contains(text, "db:5433/x") {
		t.Errorf("log line = %s", text)
	}
}

func TestHelpTeachesEveryVariable(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer

	code := run(t.Context(), []string{"--help"}, environment(), &out, &errs)

	if code != 0 || errs.Len() > 0 {
		t.Errorf("run(--help) = %d, %s", code, errs.String())
	}
	asked := map[string]bool{}
	_, _ = configFrom(func(name string) string { // only the names matter here
		asked[name] = true
		return ""
	})
	for name := range asked {
		if !strings.Contains(out.String(), "  "+name+" ") {
			t.Errorf("help does not teach %s", name)
		}
	}
	if len(asked) != len(variables()) {
		t.Errorf("%d variables are read, and %d taught", len(asked), len(variables()))
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{nil, {"start"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, environment(), &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("run(%q) = %d with %q, want 2 and why", args, code, errs.String())
		}
	}
}

func TestSaysWhatIsWrongWithTheDatabase(t *testing.T) {
	t.Parallel()

	for url, want := range map[string]string{
		"postgres://u:hunter2@127.0.0.1:1/x": "does not answer",
		dbtest.EmptyURL(t):                   "countersign migrate",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), nil, environment(varDatabase, url), &out, &errs)
		if text := out.String() + errs.String(); code != 1 || !strings.Contains(text, want) || strings.Contains(text, "hunter2") {
			t.Errorf("run() = %d, %s, want 1 and %q", code, text, want)
		}
	}
}

// untilReady is the process's standard output. It ends the worker when that
// says that it has started, after asking its probes.
type untilReady struct {
	t       *testing.T
	stop    context.CancelFunc
	address string
	text    bytes.Buffer
}

func (w *untilReady) Write(line []byte) (int, error) {
	_, _ = w.text.Write(line) // never fails
	if _, rest, ok := strings.Cut(string(line), `"msg":"probes answered","address":"`); ok {
		w.address, _, _ = strings.Cut(rest, `"`)
	}
	if strings.Contains(string(line), `"msg":"worker started"`) {
		go w.probe("http://" + w.address) // it ends the test's run, which waits
	}
	return len(line), nil
}

func (w *untilReady) probe(base string) {
	defer w.stop()
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		req, err := http.NewRequestWithContext(context.WithoutCancel(w.t.Context()), http.MethodGet, base+path, http.NoBody)
		if err != nil {
			w.t.Error(err)
			return
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			w.t.Error(err)
			return
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
			w.t.Errorf("GET %s = %d, want 200", path, answer.StatusCode)
		}
	}
}

func TestEndsWhileStarting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer

	code := run(ctx, nil, environment(varDatabase, dbtest.URL(t)), &out, &errs)

	if code != 0 || errs.Len() > 0 {
		t.Errorf("run() = %d, %s", code, errs.String())
	}
}

func TestWorksUntilAskedToDrain(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &untilReady{t: t, stop: stop}
	var errs bytes.Buffer
	url := dbtest.URL(t)

	code := run(ctx, nil, environment(varDatabase, url, varMetrics, "127.0.0.1:0", varConns, "8"), out, &errs)

	if code != 0 || errs.Len() > 0 {
		t.Errorf("run() = %d, %s", code, errs.String())
	}
	for _, line := range []string{`"msg":"worker starting"`, `"msg":"worker started"`, `"msg":"worker stopped"`} {
		if !strings.Contains(out.text.String(), line) {
			t.Errorf("log has no %s:\n%s", line, out.text.String())
		}
	}
}
