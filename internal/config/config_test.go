package config_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/config"
)

const key = "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnQ="

func TestDefaults(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=postgres://u:hunter2@db/x"}
	var api config.API
	var worker, other config.Worker

	for _, c := range []config.Command{&api, &worker, &other} {
		if err := config.Read(c, environ); err != nil {
			t.Fatal(err)
		}
	}

	got := []any{api.Listen, api.MaxConns, api.ApprovalWait, api.MCPWait, api.LogLevel, api.SecretKey, len(api.Limits.TrustedProxies)}
	want := []any{"127.0.0.1:8080", int32(10), 5 * time.Minute, 45 * time.Second, slog.LevelInfo, "", 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("API (-want +got):\n%s", diff)
	}
	got = []any{
		worker.Concurrency, worker.Batch, worker.Lease, worker.Grace, worker.MaxConns, worker.PollOnly, worker.Pooled, worker.StdioSources,
		worker.LogLevel, worker.MetricsListen,
	}
	want = []any{100, 500, 30 * time.Second, 20 * time.Second, int32(20), false, false, false, slog.LevelInfo, ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Worker (-want +got):\n%s", diff)
	}
	if worker.ID == other.ID {
		t.Errorf("two workers are both called %q", worker.ID)
	}
}

func TestErrorsNameVariablesButNotValues(t *testing.T) {
	t.Parallel()
	shared := []string{
		"DATABASE_URL=hunter2://", "COUNTERSIGN_DB_POOLED=hunter2", "COUNTERSIGN_DB_MAX_CONNS=0", "COUNTERSIGN_SECRET_KEY=hunter2",
		"COUNTERSIGN_LOG_LEVEL=hunter2", "COUNTERSIGN_METRICS_LISTEN=9090", "OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318",
	}

	for name, test := range map[string]struct {
		into config.Command
		bad  []string
	}{
		"api": {&config.API{}, []string{
			"COUNTERSIGN_LISTEN=hunter2", "COUNTERSIGN_PUBLIC_URL=http://hunter2.example", "COUNTERSIGN_APPROVAL_WAIT=0s", "COUNTERSIGN_MCP_WAIT=6m", "COUNTERSIGN_TOKEN_STREAMS=0", "COUNTERSIGN_TOKEN_WAITS=x", "COUNTERSIGN_TRUSTED_PROXIES=hunter2",
			"COUNTERSIGN_READ_TIMEOUT=0s", "COUNTERSIGN_WRITE_TIMEOUT=1h", "COUNTERSIGN_CONNECTIONS=9", "COUNTERSIGN_ADDRESS_CONNECTIONS=0", "COUNTERSIGN_TOKEN_CONNECTIONS=x", "COUNTERSIGN_DB_WAIT=0s",
		}},
		"worker": {&config.Worker{}, []string{
			"COUNTERSIGN_CONCURRENCY=hunter2", "COUNTERSIGN_BATCH=0", "COUNTERSIGN_LEASE=1s", "COUNTERSIGN_GRACE=2h",
			"COUNTERSIGN_POLL_ONLY=hunter2", "COUNTERSIGN_STDIO_SOURCES=x", "COUNTERSIGN_MAILDIRS=hunter2", "COUNTERSIGN_DB_MAX_CONNS=1",
		}},
	} {
		bad := append(test.bad, shared...)

		err := config.Read(test.into, bad)

		if err == nil {
			t.Fatalf("%s: Read = nil, want an error", name)
		}
		for _, pair := range bad {
			variable, _, _ := strings.Cut(pair, "=")
			if !strings.Contains(err.Error(), "  "+variable+" must be ") {
				t.Errorf("%s: the error does not say what %s must be:\n%v", name, variable, err)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats a value: %v", name, err)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ listen, public, want string }{
		{"", "", "http://127.0.0.1:8080"},
		{"[::1]:9", "", "http://[::1]:9"},
		{"localhost:9", "", "http://localhost:9"},
		{":8080", "", ""},
		{"10.0.0.7:8080", "", ""},
		{":8080", "https://countersign.acme.com/", "https://countersign.acme.com"},
		{"", "http://localhost:8081", "http://localhost:8081"},
	} {
		var cfg config.API
		err := config.Read(&cfg, []string{"DATABASE_URL=postgres://db/x", "COUNTERSIGN_LISTEN=" + tt.listen, "COUNTERSIGN_PUBLIC_URL=" + tt.public})
		if got := cfg.Address(); err != nil || got != tt.want {
			t.Errorf("Address on %q with %q = %q, %v, want %q", tt.listen, tt.public, got, err, tt.want)
		}
	}
	for _, bad := range []string{"http://countersign.acme.com", "https://a.example/path", "https://u@a.example", "https://a.example?x", "ftp://127.0.0.1", "a.example"} {
		if err := config.Read(&config.API{}, []string{"DATABASE_URL=postgres://db/x", "COUNTERSIGN_PUBLIC_URL=" + bad}); err == nil {
			t.Errorf("COUNTERSIGN_PUBLIC_URL=%s is taken", bad)
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"COUNTERSIGN_CONCURENCY":                     "the nearest name is COUNTERSIGN_CONCURRENCY",
		"COUNTERSIGN_DB_MAXCONNS":                    "the nearest name is COUNTERSIGN_DB_MAX_CONNS",
		"COUNTERSIGN_APROVAL_WAIT":                   "the nearest name is COUNTERSIGN_APPROVAL_WAIT",
		"COUNTERSIGN_MCP_WAIT":                       "", // of another command
		"COUNTERSIGN_URL":                            "", // of the command line
		"COUNTERSIGN_TEST_PARENT":                    "",
		"COUNTERSIGN_API_SERVICE_HOST":               "", // set by Kubernetes
		"COUNTERSIGN_SERVICE_PORT_HTTP":              "",
		"COUNTERSIGN_PORT":                           "",
		"COUNTERSIGN_API_PORT_8080_TCP_ADDR":         "",
		"COUNTERSIGNER":                              "",
		"COUNTERSIGN_API_PORT_8080_TCP_ADDRESS_BOOK": "is unknown",
	} {
		err := config.Read(&config.Worker{}, []string{"DATABASE_URL=postgres://db/x", name + "=hunter2"})

		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), name+" is unknown") || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want that it is unknown and %q", name, err, want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: the error repeats the value: %v", name, err)
		}
	}
}

// TestEveryVariableOfTheModuleIsKnown checks that Read accepts every variable
// that the module reads.
func TestEveryVariableOfTheModuleIsKnown(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == "node_modules" || entry.Name() == ".git" {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range regexp.MustCompile(`"(COUNTERSIGN_[A-Z_]*[A-Z])"`).FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for name := range found {
		if err := config.Read(&config.API{}, []string{"DATABASE_URL=postgres://db/x", name + "="}); err != nil {
			t.Error(err)
		}
	}
}

func TestSecretsAreNotLogged(t *testing.T) {
	t.Parallel()
	environ := []string{
		"DATABASE_URL=postgres://u:hunter2@db:5433/x?sslpassword=hunter2", "COUNTERSIGN_SECRET_KEY=" + key,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:hunter2@collector:4318",
	}

	for _, c := range []config.Command{&config.API{}, &config.Worker{}} {
		if err := config.Read(c, environ); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("starting", slog.Any("config", c))

		text := out.String()
		if strings.Contains(text, "hunter2") || strings.Contains(text, key) {
			t.Errorf("logged with a secret: %s", text)
		}
		for _, want := range []string{`"database_url":"db:5433/x"`, `"secret_key":"true"`, `"otel_exporter_otlp_endpoint":"collector:4318"`, `"log_level":"info"`} {
			if !strings.Contains(text, want) {
				t.Errorf("logged without %s: %s", want, text)
			}
		}
	}
}

func TestStart(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		args, environ []string
		exit          int
		ended         bool
		stdout        string
		stderr        string
	}{
		"help":              {[]string{"--help"}, nil, config.ExitOK, true, "COUNTERSIGN_LEASE", ""},
		"an argument":       {[]string{"start"}, nil, config.ExitConfig, true, "", "--help"},
		"nothing set":       {nil, nil, config.ExitConfig, true, "", "DATABASE_URL is required"},
		"all that it needs": {nil, []string{"DATABASE_URL=postgres://db/x"}, config.ExitOK, false, "", ""},
	} {
		var stdout, stderr bytes.Buffer

		exit, ended := config.Start(&config.Worker{}, test.args, test.environ, &stdout, &stderr)

		if exit != test.exit || ended != test.ended {
			t.Errorf("%s: Start = %d, %t, want %d, %t", name, exit, ended, test.exit, test.ended)
		}
		for got, want := range map[string]string{stdout.String(): test.stdout, stderr.String(): test.stderr} {
			if (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s: wrote %q, want %q in it", name, got, want)
			}
		}
	}
}

func TestParseNetworks(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"proxy.example", "10.0.0.0/33", "10.0.0.1:80", "10.0.0.0/8;"} {
		if got, err := config.ParseNetworks(text); err == nil {
			t.Errorf("ParseNetworks(%q) = %v, want an error", text, got)
		}
	}
	if got, err := config.ParseNetworks(" 10.0.0.1, 10.1.2.3/8  ::1 "); err != nil || len(got) != 3 || got[1].String() != "10.0.0.0/8" {
		t.Errorf("ParseNetworks = %v, %v", got, err)
	}
}

// TestLimitHeap changes a setting of the process, which no other test here reads.
func TestLimitHeap(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)

	if config.LimitAPIHeap([]string{"GOMEMLIMIT=1GiB"}); debug.SetMemoryLimit(-1) != before {
		t.Error("the limit of the environment does not hold")
	}
	if config.LimitAPIHeap([]string{"GOGC=100"}); debug.SetMemoryLimit(-1) != 360<<20 {
		t.Errorf("limit = %d, want 360 MiB", debug.SetMemoryLimit(-1))
	}
}
