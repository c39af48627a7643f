package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// asTriage has this test binary, started as a child, be triage.
const asTriage = "TRIAGE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asTriage) != "" {
		main()
	}
	os.Exit(m.Run())
}

// word is in every field of the mail of these tests.
const word = "quincetangle"

const text = "Message-ID: <" + word + "@b.example>\nDate: Thu, 05 Mar 2026 16:23:00 +0000\nFrom: " + word + " <" + word + "@b.example>\n" +
	"To: " + word + "@tallis.example\nSubject: " + word + "\n\nPlease send the " + word + " by Friday.\n"

// fixture is a tenant with a Maildir and a database login.
type fixture struct {
	t          *testing.T
	db         *pgxpool.Pool
	tenant     envelope.TenantID
	login, dir string
	// environ configures a process with that login.
	environ []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: dbtest.DB(t), tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), dir: t.TempDir()}
	f.login = "triage_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	f.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", f.tenant.String(), "t-"+f.tenant.String())
	f.exec("CREATE ROLE " + f.login + " LOGIN PASSWORD '" + f.login + "' IN ROLE countersign_triage")
	t.Cleanup(func() {
		if _, err := f.db.Exec(context.WithoutCancel(t.Context()), "DROP ROLE "+f.login); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(f.db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(f.login, f.login)
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.Mkdir(filepath.Join(f.dir, part), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.dir, "cur", "1700000001.test.host:2,"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.environ = []string{
		"DATABASE_URL=" + u.String(), "COUNTERSIGN_TRIAGE_DNS=false", "COUNTERSIGN_LOG_LEVEL=debug", "COUNTERSIGN_MAILDIRS=" + f.dir,
	}
	return f
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) count(sql string) (n int) {
	f.t.Helper()
	if err := f.db.QueryRow(f.t.Context(), sql).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// bind binds the login to the tenant, and sets up the Maildir as an account.
func (f *fixture) bind() {
	f.t.Helper()
	f.exec("INSERT INTO db_logins (tenant_id, login_id, login, tools) VALUES ($1, $2, $3, '{mail:*}')", f.tenant.String(), uuid.Must(uuid.NewV7()), f.login)
	err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		return account.Put(f.t.Context(), tx, f.tenant, account.Account{
			ID: uuid.Must(uuid.NewV7()), Name: "work", Kind: account.Maildir, Enabled: true, Every: account.DefaultEvery, BackfillDays: 36500,
			Connection: account.Connection{Path: f.dir}, Proposals: plan.Config{Source: "mail", Account: "work"},
		})
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// checkLog fails the test unless a log is lines of JSON without text of mail.
func checkLog(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
	if strings.Contains(strings.ToLower(log), word) {
		t.Errorf("the log has text of mail:\n%s", log)
	}
	if !strings.Contains(log, `"mail read"`) {
		t.Errorf("the log does not say that mail was read:\n%s", log)
	}
}

func TestWrongUseAndHelp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no configuration": {nil, config.ExitConfig, "DATABASE_URL"},
		"an argument":      {[]string{"--twice"}, config.ExitConfig, "no arguments"},
		"help":             {[]string{"--help"}, config.ExitOK, "triage [run] [--once]"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), test.args, nil, &out, &errs); code != test.code || !strings.Contains(out.String()+errs.String(), test.want) {
			t.Errorf("%s: run = %d with %q and %q, want %d and %q", name, code, out.String(), errs.String(), test.code, test.want)
		}
	}
}

func TestUnboundLoginGetsTheRemedy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var out, errs bytes.Buffer

	code := run(t.Context(), []string{"--once"}, f.environ, &out, &errs)

	if want := "countersign db-login bind"; code != config.ExitFailed || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), f.login) {
		t.Errorf("run = %d with %q, want %d, the login and %q", code, errs.String(), config.ExitFailed, want)
	}
}

// collector receives exported OTLP data.
type collector struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.text.Write(body) // never fails
}

func TestOnceReadsAllAndShowsNoTextOfMail(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.bind()
	received := &collector{}
	server := httptest.NewServer(received)
	t.Cleanup(server.Close)
	var out, errs bytes.Buffer

	code := run(t.Context(), []string{"run", "--once"}, append(f.environ, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL), &out, &errs)

	if code != config.ExitOK || errs.Len() > 0 {
		t.Fatalf("run = %d with %q", code, errs.String())
	}
	if n := f.count("SELECT count(1) FROM triage_decisions"); n != 1 {
		t.Errorf("%d decisions, want 1", n)
	}
	checkLog(t, out.String())
	received.mu.Lock()
	defer received.mu.Unlock()
	exported := received.text.String()
	for _, name := range []string{"read account", "read mail", "countersign.triage.messages"} {
		if !strings.Contains(exported, name) {
			t.Errorf("%q was not exported", name)
		}
	}
	if strings.Contains(strings.ToLower(exported), word) {
		t.Error("spans or metrics have text of mail")
	}
}

func TestOnceReturnsTheAccountsThatFailed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.bind()
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer

	code := run(t.Context(), []string{"--once"}, f.environ, &out, &errs)

	if code != config.ExitFailed || !strings.Contains(errs.String(), "account work: ") {
		t.Errorf("run = %d with %q, want %d and the account", code, errs.String(), config.ExitFailed)
	}
}

// A run of a new release does not read mail with the schema of the last one.
func TestWaitsForTheMigration(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.bind()
	f.exec("UPDATE goose_db_version SET is_applied = false")
	read, write := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() { // waited for below
		code := run(t.Context(), []string{"--once"}, f.environ, write, &errs)
		_ = write.Close()
		ended <- code
	}()
	waited := false
	for lines := bufio.NewScanner(read); lines.Scan(); {
		if strings.Contains(lines.Text(), `"msg":"waiting for the database to be migrated"`) {
			waited = true
			if n := f.count("SELECT count(1) FROM triage_decisions"); n != 0 {
				t.Errorf("%d decisions before the migration, want 0", n)
			}
			f.exec("UPDATE goose_db_version SET is_applied = true")
		}
	}

	if code := <-ended; code != config.ExitOK || !waited {
		t.Errorf("run = %d with %q, waited %t, want that it waits and then reads", code, errs.String(), waited)
	}
	if n := f.count("SELECT count(1) FROM triage_decisions"); n != 1 {
		t.Errorf("%d decisions, want 1", n)
	}
}

// TestSIGTERMEndsAProcess runs triage as a process of its own.
func TestSIGTERMEndsAProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.bind()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	child := exec.CommandContext(t.Context(), program)
	child.Env = append(f.environ, asTriage+"=1")
	child.Stdout, child.Stderr = &out, &errs
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for f.count("SELECT count(1) FROM triage_schedules WHERE last_ended_at IS NOT NULL") == 0 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}

	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	if err := child.Wait(); err != nil || errs.Len() > 0 {
		t.Errorf("the process ended with %v, %q", err, errs.String())
	}
	if f.count("SELECT count(1) FROM triage_decisions") != 1 || f.count("SELECT count(1) FROM triage_schedules WHERE holder IS NULL") != 1 {
		t.Error("the mail was not decided, or the account not given back")
	}
	checkLog(t, out.String())
}
