package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// start starts a fast server that ends with the test.
func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	cfg.Fast = true
	s, err := embedded.Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Start(%+v) = %v, want a server", cfg, err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Stop() = %v, want nil", err)
		}
	})
	return s
}

// ask returns the text that a query returns.
func ask(t *testing.T, url, query string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var answer string
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// folder returns a folder that an unprivileged server may enter; t.TempDir is
// closed to it when the tests run as root.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "countersign-embedded-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "server")
}

func TestServerAnswersAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	pid := s.Pid()

	rows := []struct{ query, want string }{
		{"SELECT current_database()", embedded.Database},
		{"SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user", "true"},
		{"SHOW server_encoding", "UTF8"},
		{"SHOW timezone", "UTC"},
		{"SHOW listen_addresses", "127.0.0.1"},
		{"SHOW fsync", "off"},
		{"SELECT upper('é')", "É"},
		{"SELECT split_part(version(), ' ', 2)", s.Version()},
	}
	for _, row := range rows {
		if got := ask(t, s.URL(), row.query); got != row.want {
			t.Errorf("%s = %q, want %q", row.query, got, row.want)
		}
	}

	if err := s.Stop(t.Context()); err != nil {
		t.Fatalf("Stop() = %v, want nil", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("second Stop() = %v, want nil", err)
	}
	if alive(pid) {
		t.Errorf("process %d is alive after Stop", pid)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder after Stop: %v, want that it is gone", err)
	}
}

func TestServerAsksForThePassword(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	cfg, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Password = "guess"

	conn, err := pgx.ConnectConfig(t.Context(), cfg)

	if err == nil {
		conn.Close(t.Context())
		t.Error("connect with a wrong password succeeded")
	}
}

// TestSettingsCannotExposeTheServer sets another address, and a log of all
// statements.
func TestSettingsCannotExposeTheServer(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{Settings: map[string]string{
		"listen_addresses": "*", "log_statement": "all", "log_min_duration_statement": "0",
	}})

	if got := ask(t, s.URL(), "SHOW listen_addresses"); got != "127.0.0.1" {
		t.Errorf("listen_addresses = %q, want 127.0.0.1", got)
	}
	cfg, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(s.Dir(), "postgres.log"))
	if err != nil || !strings.Contains(string(log), "SHOW listen_addresses") {
		t.Errorf("the log: %v, want every statement of the session", err)
	}
	if strings.Contains(string(log), cfg.Password) {
		t.Error("the password is in the log")
	}
}

func TestServerKeepsItsDataAndURL(t *testing.T) {
	t.Parallel()
	for _, mode := range []embedded.Mode{embedded.Fast, embedded.Immediate} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := start(t, embedded.Config{})
			url, pid := s.URL(), s.Pid()
			write(t, url)

			if err := s.Restart(t.Context(), mode); err != nil {
				t.Fatalf("Restart(%s) = %v, want nil", mode, err)
			}

			if s.URL() != url || s.Pid() == pid {
				t.Errorf("after Restart: same URL %t, same process %t, want true and false", s.URL() == url, s.Pid() == pid)
			}
			if got := ask(t, url, "SELECT body FROM kept"); got != "here" {
				t.Errorf("the row after Restart = %q, want %q", got, "here")
			}
		})
	}
}

// write commits one row to disk.
func write(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	const text = "SET synchronous_commit = on; CREATE TABLE kept AS SELECT 'here'::text AS body"
	if _, err := conn.Exec(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func TestCrashedServerRestarts(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	write(t, s.URL())

	if err := syscall.Kill(s.Pid(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}

	if err := s.Restart(t.Context(), embedded.Fast); err != nil {
		t.Fatalf("Restart() = %v, want nil", err)
	}
	if got := ask(t, s.URL(), "SELECT body FROM kept"); got != "here" {
		t.Errorf("the row after the crash = %q, want %q", got, "here")
	}
}

// An ephemeral port may go to any socket while its server restarts.
func TestPortIsNotEphemeral(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})

	u, err := url.Parse(s.URL())

	if err != nil {
		t.Fatal(err)
	}
	if port, err := strconv.Atoi(u.Port()); err != nil || port < 15000 || port >= 30000 {
		t.Errorf("the port = %s, %v, want one from 15000 to 29999", u.Port(), err)
	}
}

// TestStandby has a standby confirm a commit, and promotes it.
func TestStandby(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	write(t, s.URL())

	standby, err := s.Standby(t.Context())

	if err != nil {
		t.Fatalf("Standby() = %v, want a server", err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Stop() = %v, want nil", err)
		}
	})
	if got := ask(t, standby.URL(), "SELECT body || ' ' || pg_is_in_recovery() FROM kept"); got != "here true" {
		t.Errorf("the standby has %q, want %q", got, "here true")
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	do(t, standby.URL(), fmt.Sprintf("ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port=%s user=postgres password=%s'", u.Port(), password),
		"SELECT pg_reload_conf()")
	do(t, s.URL(), "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	commitsConfirmed(t, s.URL(), standby.URL(), "UPDATE kept SET body = 'there'")
	if got := ask(t, standby.URL(), "SELECT body FROM kept"); got != "there" {
		t.Errorf("the standby has %q after a commit that it confirmed, want %q", got, "there")
	}
	if got := ask(t, standby.URL(), "SELECT pg_promote()::text"); got != "true" {
		t.Fatalf("pg_promote() = %q, want true", got)
	}
	do(t, standby.URL(), "SET synchronous_commit = local; UPDATE kept SET body = 'promoted'")
}

// commitsConfirmed has a statement wait for a standby that applies nothing, until it goes
// on. Only the primary's checkpointer decides whether commits wait: one that does not wait
// was made before it had read its configuration, and is made again.
func commitsConfirmed(t *testing.T, primary, standby, statement string) {
	t.Helper()
	do(t, standby, "SELECT pg_wal_replay_pause()")
	committed := make(chan error, 1)
	commit := func() {
		conn, err := pgx.Connect(t.Context(), primary)
		if err == nil {
			_, err = conn.Exec(t.Context(), "SET synchronous_commit = remote_apply; "+statement, pgx.QueryExecModeSimpleProtocol)
			err = errors.Join(err, conn.Close(context.WithoutCancel(t.Context())))
		}
		committed <- err
	}
	go commit()
	for waits := ""; waits != "true"; {
		select {
		case err := <-committed:
			if err != nil {
				t.Fatal(err)
			}
			go commit()
		default:
		}
		waits = ask(t, primary, "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend')::text")
	}
	do(t, standby, "SELECT pg_wal_replay_resume()")
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
}

// do runs statements one after the other.
func do(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func TestFolderIsUsedAgain(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := start(t, embedded.Config{Dir: dir})
	write(t, first.URL())
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := start(t, embedded.Config{Dir: dir, Settings: map[string]string{"work_mem": "5MB"}})

	if got := ask(t, second.URL(), "SELECT body FROM kept"); got != "here" {
		t.Errorf("the row in the second server = %q, want %q", got, "here")
	}
	if got := ask(t, second.URL(), "SHOW work_mem"); got != "5MB" {
		t.Errorf("work_mem = %q, want %q", got, "5MB")
	}
}

func TestSecondServerInAFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := start(t, embedded.Config{Dir: dir})

	_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Fast: true})

	running, ok := errors.AsType[*embedded.RunningError](err)
	if !ok || running.Pid != first.Pid() || !strings.Contains(err.Error(), strconv.Itoa(first.Pid())) {
		t.Errorf("second Start() = %v, want a RunningError for process %d", err, first.Pid())
	}
	if got := ask(t, first.URL(), "SELECT 'alive'"); got != "alive" {
		t.Errorf("the first server answers %q, want %q", got, "alive")
	}
}

func TestStalePidFileIsRemoved(t *testing.T) {
	t.Parallel()
	gone := exec.CommandContext(t.Context(), "true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), "cat")
	if _, err := other.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	rows := map[string]int{
		"process is gone":                   gone.Process.Pid,
		"number belongs to another program": other.Process.Pid,
		"number belongs to the test itself": os.Getpid(),
	}
	for name, pid := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			s := start(t, embedded.Config{Dir: dir})
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			data := filepath.Join(dir, "data")
			text := fmt.Sprintf("%d\n%s\n1\n5432\n/nowhere\n127.0.0.1\n 1 1\nready\n", pid, data)
			if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}

			again := start(t, embedded.Config{Dir: dir})

			if got := ask(t, again.URL(), "SELECT 'alive'"); got != "alive" {
				t.Errorf("the server answers %q, want %q", got, "alive")
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	busy := start(t, embedded.Config{})
	cfg, err := pgx.ParseConfig(busy.URL())
	if err != nil {
		t.Fatal(err)
	}
	foreign := folder(t)
	if err := os.MkdirAll(filepath.Join(foreign, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "data", "PG_VERSION"), []byte("9.6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := map[string]struct {
		cfg  embedded.Config
		want string
	}{
		"a port in use":             {embedded.Config{Port: int(cfg.Port)}, "cannot be used"},
		"an unknown setting":        {embedded.Config{Settings: map[string]string{"no_such": "1"}}, `unrecognized configuration parameter "no_such"`},
		"a folder without programs": {embedded.Config{Bin: t.TempDir()}, "does not hold"},
		"data of another version":   {embedded.Config{Dir: foreign}, "holds data of PostgreSQL 9.6"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, err := embedded.Start(t.Context(), row.cfg)

			if err == nil {
				s.Stop(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("Start() = %v, want an error with %q", err, row.want)
			}
		})
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	s, err := embedded.Start(ctx, embedded.Config{Fast: true})

	if err == nil {
		s.Stop(t.Context())
		t.Error("Start() with a cancelled context succeeded")
	}
}

func ExampleStart() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Config{Fast: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Stop(ctx)
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close(ctx)
	var name string
	err = conn.QueryRow(ctx, "SELECT current_database()").Scan(&name)
	fmt.Println(name, err)
	// Output: countersign <nil>
}
