package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

func TestWrongUse(t *testing.T) {
	t.Parallel()

	for name, args := range map[string][]string{"no configuration": nil, "an argument": {"start"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, nil, &out, &errs); code != config.ExitConfig || errs.Len() == 0 {
			t.Errorf("%s: run = %d with %q, want %d and why", name, code, errs.String(), config.ExitConfig)
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
		code := run(t.Context(), nil, []string{"DATABASE_URL=" + url}, &out, &errs)
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

	code := run(ctx, nil, []string{"DATABASE_URL=" + dbtest.URL(t)}, &out, &errs)

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

	code := run(ctx, nil, []string{
		"DATABASE_URL=" + url, "COUNTERSIGN_METRICS_LISTEN=127.0.0.1:0", "COUNTERSIGN_DB_MAX_CONNS=8",
	}, out, &errs)

	if code != 0 || errs.Len() > 0 {
		t.Errorf("run() = %d, %s", code, errs.String())
	}
	for _, line := range []string{`"msg":"worker starting"`, `"msg":"worker started"`, `"msg":"worker drained","finished":0,"returned":0`, `"msg":"worker stopped"`} {
		if !strings.Contains(out.text.String(), line) {
			t.Errorf("log has no %s:\n%s", line, out.text.String())
		}
	}
}
