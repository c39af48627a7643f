package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	env := environment(map[string]string{"DATABASE_URL": dbtest.URL(t), "COUNTERSIGN_LISTEN": "127.0.0.1:0"})
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { // waited for below
		err := run(ctx, nil, env, write)
		_ = write.Close()
		ended <- err
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

	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("GET %s = %d, want 200", path, res.StatusCode)
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

	if err := <-ended; err != nil {
		t.Errorf("run ended with %v", err)
	}
	<-drained
}

func TestHelpTeachesEveryVariable(t *testing.T) {
	t.Parallel()
	var asked []string
	_, _ = readConfig(func(name string) string {
		asked = append(asked, name)
		return ""
	})
	var out bytes.Buffer

	if err := run(t.Context(), []string{"--help"}, environment(nil), &out); err != nil {
		t.Fatal(err)
	}

	taught := regexp.MustCompile(`(?m)^  ([A-Z_]+) `).FindAllStringSubmatch(out.String(), -1)
	if len(taught) != len(asked) {
		t.Errorf("help teaches %d variables, and %d are read", len(taught), len(asked))
	}
	for _, m := range taught {
		if !slices.Contains(asked, m[1]) {
			t.Errorf("help teaches %s, which nobody reads", m[1])
		}
	}
}

func TestConfigNamesWhatIsWrongAndNoValue(t *testing.T) {
	t.Parallel()
	_, err := readConfig(environment(map[string]string{
		"COUNTERSIGN_LOG_LEVEL": "loud-x", "COUNTERSIGN_APPROVAL_WAIT": "0s", "COUNTERSIGN_MCP_WAIT": "6m", "COUNTERSIGN_DB_MAX_CONNS": "0", "COUNTERSIGN_DB_POOLED": "maybe-x", "COUNTERSIGN_TRUSTED_PROXIES": "proxy-x",
	}))
	if err == nil {
		t.Fatal("a wrong configuration was taken")
	}

	for _, name := range []string{"DATABASE_URL", "COUNTERSIGN_LOG_LEVEL", "COUNTERSIGN_APPROVAL_WAIT", "COUNTERSIGN_MCP_WAIT", "COUNTERSIGN_DB_MAX_CONNS", "COUNTERSIGN_DB_POOLED", "COUNTERSIGN_TRUSTED_PROXIES"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "-x") {
		t.Errorf("the error repeats a value: %v", err)
	}
}

func TestConfigHidesItsSecrets(t *testing.T) {
	t.Parallel()
	c, err := readConfig(environment(map[string]string{
		"DATABASE_URL": "postgres://u:hush@db:5432/countersign?sslpassword=hush", "COUNTERSIGN_SECRET_KEY": "hush", "COUNTERSIGN_DB_POOLED": "true",
	}))
	if err != nil {
		t.Fatal(err)
	}

	text := c.LogValue().String()

	if strings.Contains(text, "hush") || !strings.Contains(text, "db:5432/countersign") {
		t.Errorf("shown as %s", text)
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"serve"}, environment(nil), io.Discard); err == nil || !strings.Contains(err.Error(), "--help") {
		t.Errorf("run(serve) = %v, want an error that names --help", err)
	}
}
