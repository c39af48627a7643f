package triage_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// note runs the command on a recording, with a file of models unless it is "".
func note(t *testing.T, models string, flags ...string) (code int, out, errs string) {
	t.Helper()
	folder := t.TempDir()
	recording, path := filepath.Join(folder, "idea.wav"), filepath.Join(folder, "models.yaml")
	for name, text := range map[string]string{recording: "RIFF", path: models} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), append([]string{"triage", "note", recording}, flags...), command.System{
		In: strings.NewReader(""), Out: &stdout, Err: &stderr, Getenv: func(name string) string {
			switch {
			case name == "COUNTERSIGN_TRIAGE_MODELS" && models != "":
				return path
			case name == "COUNTERSIGN_URL":
				return "http://127.0.0.1:1" // the API is not asked
			}
			return ""
		},
	})
	return code, stdout.String(), stderr.String()
}

func TestNote(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"text":"Yes, Tuesday\u001b[2J at ten."}`)
	}))
	t.Cleanup(server.Close)
	with := "servers: {here: {url: '" + server.URL + "'}}\ndictation: {server: here, model: whisper}\n"
	for name, row := range map[string]struct {
		models string
		flags  []string
		code   int
		out    string
		errs   string
	}{
		"prints the text":            {with, nil, command.ExitOK, "Yes, Tuesday[2J at ten.\n", ""},
		"prints JSON":                {with, []string{"--json"}, command.ExitOK, `{"text":"Yes, Tuesday[2J at ten."}` + "\n", ""},
		"asks before a draft":        {with, []string{"--draft", "<a@b.example>"}, command.ExitUsage, "", "nobody can be asked"},
		"fails without a file":       {"", nil, command.ExitUsage, "", "no model for dictation"},
		"fails without a dictation":  {"servers: {here: {url: '" + server.URL + "'}}\n", nil, command.ExitUsage, "", "has no dictation"},
		"fails if the server does":   {"servers: {here: {url: 'http://127.0.0.1:1'}}\ndictation: {server: here, model: whisper}\n", nil, command.ExitFailed, "", "cannot be reached"},
		"fails for an unknown place": {"servers: {}\ndictation: {server: here, model: whisper}\n", nil, command.ExitUsage, "", "must be one of those under servers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := note(t, row.models, row.flags...)

			if code != row.code || out != row.out || !strings.Contains(errs, row.errs) {
				t.Errorf("note = %d, %q, %q; want %d, %q, %q", code, out, errs, row.code, row.out, row.errs)
			}
		})
	}
}
