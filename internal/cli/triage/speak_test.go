package triage_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// speakBrief runs the command with a search path, against an API with a brief.
func speakBrief(t *testing.T, searchPath string) (code int, out, errs string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(wire.TriageBrief{Account: "work\x1b[2J"}) // the client reports what fails
	}))
	t.Cleanup(server.Close)
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), []string{"triage", "brief", "work", "--speak"}, command.System{
		Out: &stdout, Err: &stderr, Getenv: func(name string) string {
			return map[string]string{"PATH": searchPath, "COUNTERSIGN_URL": server.URL, "COUNTERSIGN_TOKEN": "t"}[name]
		},
	})
	return code, stdout.String(), stderr.String()
}

func TestBriefIsSpoken(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	out := filepath.Join(folder, "text")
	if err := os.WriteFile(filepath.Join(folder, "espeak-ng"), []byte("#!/bin/sh\necho \"$@\" > "+out+"\n/bin/cat >> "+out), 0o700); err != nil {
		t.Fatal(err)
	}

	code, printed, errs := speakBrief(t, folder)

	text, err := os.ReadFile(out)
	if code != command.ExitOK || printed != "" || err != nil || !strings.HasPrefix(string(text), "--stdin\n") || len(text) < 20 || strings.Contains(string(text), "\x1b") {
		t.Errorf("brief --speak = %d, %q, %q; the synthesizer was given %q, %v", code, printed, errs, text, err)
	}
	if code, _, errs := speakBrief(t, t.TempDir()); code != command.ExitFailed || !strings.Contains(errs, "no speech synthesizer found") {
		t.Errorf("brief --speak without a synthesizer = %d, %q", code, errs)
	}
}
