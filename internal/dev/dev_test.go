package dev_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// open opens an environment on a database, and closes it when the test ends.
func open(t *testing.T, database, dir string) *dev.Environment {
	t.Helper()
	h, err := dev.Open(t.Context(), dev.Config{DatabaseURL: database, Dir: dir, Listen: "127.0.0.1:0", Notes: sourcetest.Program(t, "examples/notes-mcp")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return h
}

func demonstrate(t *testing.T, h *dev.Environment) string {
	t.Helper()
	report, err := h.Demonstrate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Errorf("Err() = %v", err)
	}
	var out bytes.Buffer
	if err := report.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var update = flag.Bool("update", false, "rewrite golden files")

// compare compares a text with a golden file.
func compare(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// varying are the parts of a report that differ between runs.
var varying = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`/\S+/(notes|calendar):`), "FOLDER/$1:"},
	{regexp.MustCompile(`\b(countersign-)?[0-9a-f]{32}\b`), "${1}ID"},
	{regexp.MustCompile(`\b[0-9a-f]{8}…`), "ID…"},
	{regexp.MustCompile(`\b\d{1,2} [A-Z][a-z]+( 2\d{3})?\b|\b2\d{3}-\d\d-\d\d\b`), "DATE"},
	{regexp.MustCompile(`(since|,) [A-Z][a-z]+day\b`), "$1 DAY"},
	{regexp.MustCompile(`\b\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`   +`), "  "},
}

// constant returns a report with names in place of the values that differ between runs. The
// notes are sorted by their text.
func constant(report string) string {
	for _, v := range varying {
		report = v.form.ReplaceAllString(report, v.as)
	}
	lines := strings.Split(report, "\n")
	from := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Files in") }) + 1
	slices.Sort(lines[from : from+2])
	return strings.Join(lines, "\n")
}

func TestDemonstrationTwice(t *testing.T) {
	t.Parallel()
	database, dir := dbtest.URL(t), t.TempDir()
	h := open(t, database, dir)

	text := demonstrate(t, h)

	compare(t, filepath.Join("testdata", "demonstration.txt"), constant(text))
	first := h.Tokens()
	waiting, err := propose(t.Context(), h.URL(), first.Agent)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{h.TokensFile(), filepath.Join(dir, "secret.key")} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v, %v, want it readable only by its owner", name, info, err)
		}
	}

	again := open(t, database, dir)
	demonstrate(t, again)

	if again.Tokens() != first {
		t.Error("the tokens of the first time were not used again")
	}
	operator, err := again.Client(first.Operator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Approve(t.Context(), waiting, wire.Approval{}, 0); err != nil {
		t.Fatalf("approve what waited before the restart: %v", err)
	}
	if done, ended, err := operator.Wait(t.Context(), waiting, time.Minute); err != nil || !ended || done.Phase != envelope.PhaseCompleted {
		t.Errorf("what waited before the restart is %s, %v", done.Phase, err)
	}
}

func TestTokensOfAnotherDatabaseAreReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dbtest.URL(t), dir)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := open(t, dbtest.URL(t), dir)

	if second.Tokens() == first.Tokens() {
		t.Error("tokens were kept that the database does not know")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	h := open(t, dbtest.URL(t), "")
	dir := filepath.Dir(h.NotesDir())

	if err := h.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}

	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder is still there: %v", err)
	}
	var dialer net.Dialer
	if conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(h.URL(), "http://")); err == nil {
		t.Error("somebody still listens", conn.Close())
	}
	if err := h.Close(); err != nil {
		t.Errorf("a second Close() = %v", err)
	}
}

// stopAt cancels when a step begins.
type stopAt struct {
	step   string
	cancel context.CancelFunc
	text   bytes.Buffer
}

func (w *stopAt) Write(text []byte) (int, error) {
	if strings.HasPrefix(strings.TrimSpace(string(text)), w.step) {
		w.cancel()
	}
	return w.text.Write(text)
}

func TestStopWhileOpening(t *testing.T) {
	t.Parallel()
	database := dbtest.URL(t)

	for _, step := range []string{"postgres", "migrate", "tenant", "notes", "worker", "api", "source"} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &stopAt{step: step, cancel: cancel}
		cfg := dev.Config{DatabaseURL: database, Listen: "127.0.0.1:0", Progress: out}
		if step != "notes" { // which builds the program otherwise
			cfg.Notes = sourcetest.Program(t, "examples/notes-mcp")
		}

		_, err := dev.Open(ctx, cfg)

		cancel()
		if !errors.Is(err, context.Canceled) || !strings.HasSuffix(out.text.String(), "stopped\n") {
			t.Errorf("stopped at %s: %v after\n%s", step, err, out.text.String())
		}
	}
}

func TestOpenReturnsTheRemedy(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	nobody := "postgres://u:hunter2@127.0.0.1:1/x"
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for name, tt := range map[string]struct {
		cfg  dev.Config
		want string
	}{
		"address taken":      {dev.Config{DatabaseURL: nobody, Listen: taken.Addr().String()}, "--listen 127.0.0.1:0"},
		"folder is a file":   {dev.Config{DatabaseURL: nobody, Listen: "127.0.0.1:0", Dir: file}, "--data-dir"},
		"no database":        {dev.Config{DatabaseURL: nobody, Listen: "127.0.0.1:0"}, "the database does not answer"},
		"no database URL":    {dev.Config{DatabaseURL: "hunter2://", Listen: "127.0.0.1:0"}, "DATABASE_URL"},
		"no example server":  {dev.Config{DatabaseURL: dbtest.URL(t), Listen: "127.0.0.1:0", Notes: file + "-not"}, "start notes-mcp"},
		"not the one either": {dev.Config{DatabaseURL: dbtest.URL(t), Listen: "127.0.0.1:0", Notes: "/bin/true"}, "did not print its address"},
	} {
		_, err := dev.Open(t.Context(), tt.cfg)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: Open() = %v, want it to say %q", name, err, tt.want)
		}
	}
}

// Settings of the user in the tenant demo change neither the start of the
// environment nor the end of the demonstration.
func TestTheUsersSettingsDoNotReachTheDemonstration(t *testing.T) {
	t.Parallel()
	database, dir := dbtest.URL(t), t.TempDir()
	first := open(t, database, dir)
	admin, err := first.Client(first.Tokens().Admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []struct {
		pattern string
		mode    envelope.Mode
	}{{"*", envelope.ModeDeny}, {dev.NotesSource + ":notes.publish", envelope.ModeRequireApproval}, {dev.NotesSource + ":notes.create", envelope.ModeAllow}} {
		if err := admin.PutMode(t.Context(), wire.Mode{Tool: mode.pattern, Mode: mode.mode}); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := open(t, database, dir)

	if text := demonstrate(t, second); !strings.Contains(text, "All 8 actions and 5 mails ended as expected.") {
		t.Errorf("the demonstration ended otherwise:\n%s", text)
	}
}
