package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

func TestServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	environ := []string{"DATABASE_URL=" + dbtest.URL(t), "COUNTERSIGN_LISTEN=127.0.0.1:0"}
	var errs bytes.Buffer
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() { // waited for below
		code := run(ctx, nil, environ, write, &errs)
		_ = write.Close()
		ended <- code
	}()
	var address string
	lines := bufio.NewScanner(read)
	for address == "" && lines.Scan() {
		var line struct{ Msg, Address string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("log line %s: %v", lines.Bytes(), err)
		}
		address = line.Address
	}
	drained := make(chan struct{})
	go func() { // ends with the pipe
		defer close(drained)
		_, _ = io.Copy(io.Discard, read)
	}()

	// The metrics tell of every tenant, and are on a listener of their own.
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusNotFound} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("GET %s = %d, want %d", path, res.StatusCode, want)
		}
	}
	res, err := http.Post("http://"+address+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("POST /mcp without a token = %d, want 401", res.StatusCode)
	}
	stop()

	if code := <-ended; code != config.ExitOK {
		t.Errorf("run = %d, %s", code, errs.String())
	}
	<-drained
}

func TestWrongUse(t *testing.T) {
	t.Parallel()

	for name, args := range map[string][]string{"no configuration": nil, "an argument": {"serve"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, nil, &out, &errs); code != config.ExitConfig || errs.Len() == 0 {
			t.Errorf("%s: run = %d with %q, want %d and why", name, code, errs.String(), config.ExitConfig)
		}
	}
}

func TestRefusesADatabaseThatIsNotMigrated(t *testing.T) {
	t.Parallel()

	for url, want := range map[string]string{
		"postgres://u:hunter2@127.0.0.1:1/x": "does not answer",
		dbtest.EmptyURL(t):                   "countersign migrate",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), nil, []string{"DATABASE_URL=" + url, "COUNTERSIGN_LISTEN=127.0.0.1:0"}, &out, &errs)
		if text := out.String() + errs.String(); code != config.ExitFailed || !strings.Contains(text, want) || strings.Contains(text, "hunter2") {
			t.Errorf("run = %d, %s, want %d and %q", code, text, config.ExitFailed, want)
		}
	}
}
