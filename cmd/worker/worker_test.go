package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

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

func TestDatabaseErrorsAreReported(t *testing.T) {
	t.Parallel()

	var out, errs bytes.Buffer
	code := run(t.Context(), nil, []string{"DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/x"}, &out, &errs)
	if text := out.String() + errs.String(); code != 1 || !strings.Contains(text, "does not answer") || strings.Contains(text, "hunter2") {
		t.Errorf("run() = %d, %s, want 1 and that the database does not answer", code, text)
	}
}

// untilReady is the process's standard output. When it reports the start, it
// checks the probes and ends the worker.
type untilReady struct {
	t    *testing.T
	stop context.CancelFunc
	// migrate is called when the worker reports that it waits for a migration.
	migrate func()
	address string
	text    bytes.Buffer
}

func (w *untilReady) Write(line []byte) (int, error) {
	_, _ = w.text.Write(line) // never fails
	if _, rest, ok := strings.Cut(string(line), `"msg":"probes answered","address":"`); ok {
		w.address, _, _ = strings.Cut(rest, `"`)
	}
	// Both end the test's run, which waits.
	if strings.Contains(string(line), `"msg":"worker started"`) {
		go func() {
			defer w.stop()
			w.probe(map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusOK})
		}()
	}
	if strings.Contains(string(line), `"msg":"waiting for the database to be migrated"`) {
		go func() {
			w.probe(map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/metrics": http.StatusOK})
			w.migrate()
		}()
	}
	return len(line), nil
}

func (w *untilReady) probe(wants map[string]int) {
	for path, want := range wants {
		req, err := http.NewRequestWithContext(context.WithoutCancel(w.t.Context()), http.MethodGet, "http://"+w.address+path, http.NoBody)
		if err != nil {
			w.t.Error(err)
			return
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			w.t.Error(err)
			return
		}
		if _ = answer.Body.Close(); answer.StatusCode != want {
			w.t.Errorf("GET %s = %d, want %d", path, answer.StatusCode, want)
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

func TestWorksUntilDrained(t *testing.T) {
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

// A worker of a new release does not work on the schema of the last one.
func TestWaitsForTheMigration(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	db := dbtest.DB(t)
	if _, err := db.Exec(ctx, "UPDATE goose_db_version SET is_applied = false"); err != nil {
		t.Fatal(err)
	}
	out := &untilReady{t: t, stop: stop, migrate: func() {
		if _, err := db.Exec(ctx, "UPDATE goose_db_version SET is_applied = true"); err != nil {
			t.Error(err)
			stop()
		}
	}}
	var errs bytes.Buffer

	code := run(ctx, nil, []string{
		"DATABASE_URL=" + db.Config().ConnString(), "COUNTERSIGN_METRICS_LISTEN=127.0.0.1:0", "COUNTERSIGN_DB_MAX_CONNS=8",
	}, out, &errs)

	waited := strings.Index(out.text.String(), `"msg":"waiting for the database to be migrated"`)
	if started := strings.Index(out.text.String(), `"msg":"worker started"`); code != 0 || errs.Len() > 0 || waited < 0 || started < waited {
		t.Errorf("run() = %d, %s, want that it waits and then works:\n%s", code, errs.String(), out.text.String())
	}
}
