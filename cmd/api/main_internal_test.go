package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// started is a running api, whose log is read up to a line.
type started struct {
	t     *testing.T
	stop  context.CancelFunc
	lines *bufio.Scanner
	errs  bytes.Buffer
	ended chan int
}

func start(t *testing.T, environ ...string) *started {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	read, write := io.Pipe()
	s := &started{t: t, stop: stop, lines: bufio.NewScanner(read), ended: make(chan int, 1)}
	go func() { // end waits for it
		code := run(ctx, nil, append(environ, "COUNTERSIGN_LISTEN=127.0.0.1:0", "COUNTERSIGN_METRICS_LISTEN=127.0.0.1:0"), write, &s.errs)
		_ = write.Close()
		s.ended <- code
	}()
	return s
}

// until reads the log up to a message and returns the address in it.
func (s *started) until(message string) string {
	s.t.Helper()
	for s.lines.Scan() {
		var line struct{ Msg, Address string }
		if err := json.Unmarshal(s.lines.Bytes(), &line); err != nil {
			s.t.Fatalf("log line %s: %v", s.lines.Bytes(), err)
		}
		if line.Msg == message {
			return line.Address
		}
	}
	s.t.Fatalf("api ended without %q: %s", message, s.errs.String())
	return ""
}

// drain reads the rest of the log, which the run waits for.
func (s *started) drain() {
	for s.lines.Scan() {
	}
}

// wants compares the statuses of paths at an address.
func wants(t *testing.T, address string, statuses map[string]int) {
	t.Helper()
	for path, want := range statuses {
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
}

// asAPI has this test binary, started as a child, be the API.
const asAPI = "API_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asAPI) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	s := start(t, "DATABASE_URL="+dbtest.URL(t), "COUNTERSIGN_LINGER=0s")
	probes := s.until("probes answered")
	address := s.until("listening")
	go s.drain() // ends with the run

	// The metrics cover every tenant, and have their own listener.
	wants(t, address, map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusNotFound})
	wants(t, probes, map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusOK})
	res, err := http.Post("http://"+address+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("POST /mcp without a token = %d, want 401", res.StatusCode)
	}
	s.stop()

	if code := <-s.ended; code != config.ExitOK {
		t.Errorf("run = %d, %s", code, s.errs.String())
	}
}

// After SIGTERM a process is not ready, but still answers. A second signal
// ends it immediately.
func TestLingersWithoutBeingReady(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), asAPI+"=1", "DATABASE_URL="+dbtest.URL(t), "COUNTERSIGN_LISTEN=127.0.0.1:0", "COUNTERSIGN_METRICS_LISTEN=127.0.0.1:0", "COUNTERSIGN_LINGER=5m")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	s := &started{t: t, lines: bufio.NewScanner(out)}
	probes := s.until("probes answered")
	address := s.until("listening")
	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.until("stopping")

	wants(t, address, map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/api/v1/openapi.yaml": http.StatusOK})
	wants(t, probes, map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable})
	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.drain()
	if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the process ended with %v, want by the second signal", err)
	}
}

// A process of a new release does not serve the schema of the last one.
func TestWaitsForTheMigration(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	if _, err := db.Exec(t.Context(), "UPDATE goose_db_version SET is_applied = false"); err != nil {
		t.Fatal(err)
	}
	s := start(t, "DATABASE_URL="+db.Config().ConnString(), "COUNTERSIGN_LINGER=0s")
	probes := s.until("probes answered")
	s.until("waiting for the database to be migrated")
	wants(t, probes, map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable})
	if _, err := db.Exec(t.Context(), "UPDATE goose_db_version SET is_applied = true"); err != nil {
		t.Fatal(err)
	}

	address := s.until("listening")
	go s.drain() // ends with the run

	wants(t, address, map[string]int{"/readyz": http.StatusOK})
	s.stop()
	if code := <-s.ended; code != config.ExitOK {
		t.Errorf("run = %d, %s", code, s.errs.String())
	}
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

func TestRefusesADatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()

	var out, errs bytes.Buffer
	code := run(t.Context(), nil, []string{"DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/x", "COUNTERSIGN_LISTEN=127.0.0.1:0"}, &out, &errs)
	if text := out.String() + errs.String(); code != config.ExitFailed || !strings.Contains(text, "does not answer") || strings.Contains(text, "hunter2") {
		t.Errorf("run = %d, %s, want %d and that the database does not answer", code, text, config.ExitFailed)
	}
}
