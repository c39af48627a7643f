//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// hba returns the access rules. They trust every user of the socket, since only
// the server's owner can enter its folder, and require the password on TCP. A
// fast server takes the plain password and stores its MD5: deriving SCRAM's key took
// a tenth of the server's processor time in tests of programs, and a seventh of that of
// the worker's tests under the race detector.
func hba(fast bool) string {
	method := "scram-sha-256"
	if fast {
		method = "password"
	}
	return "# Written by Countersign at every start.\n" +
		"local all         all trust\n" +
		"host  all         all 127.0.0.1/32 " + method + "\n" +
		"host  replication all 127.0.0.1/32 " + method + "\n"
}

const (
	// firstBuiltin is the first major version whose locales do not depend on the
	// operating system's.
	firstBuiltin = 17
	// readyPoll is the poll interval for a starting server.
	readyPoll = 5 * time.Millisecond
)

// initialise creates the cluster unless there is one, and writes its access
// rules.
func (s *Server) initialise(ctx context.Context, fast bool) error {
	data := s.folder.dataDir()
	if exists(data) {
		if err := s.checkMajor(); err != nil {
			return err
		}
	} else if err := s.initdb(ctx, fast); err != nil {
		return err
	}
	path := filepath.Join(data, "pg_hba.conf")
	if err := os.WriteFile(path, []byte(hba(fast)), 0o600); err != nil {
		return fmt.Errorf("write access rules: %w", err)
	}
	return s.account.own(path)
}

// checkMajor compares the data's major version with that of the programs.
func (s *Server) checkMajor() error {
	text, err := os.ReadFile(filepath.Join(s.folder.dataDir(), "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("%s is not a PostgreSQL data folder: %w", s.folder.dataDir(), err)
	}
	if major := strings.TrimSpace(string(text)); major != strconv.Itoa(s.bin.major) {
		return fmt.Errorf("%s holds data of PostgreSQL %s, and %s holds PostgreSQL %s: "+
			"set %s to the programs of version %s, or use another folder",
			s.folder.dir, major, s.bin.dir, s.bin.version, binEnv, major)
	}
	return nil
}

// initdb creates the cluster under another name and renames it when it is
// complete.
func (s *Server) initdb(ctx context.Context, fast bool) error {
	draft := s.folder.dataDir() + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("remove an incomplete cluster: %w", err)
	}
	if err := os.Mkdir(draft, 0o700); err != nil {
		return fmt.Errorf("create the cluster's folder: %w", err)
	}
	if err := s.account.own(draft); err != nil {
		return err
	}
	args := initdbArgs(draft, s.bin.major, fast)
	out, err := s.account.command(exec.CommandContext(ctx, s.bin.path("initdb"), args...), s.folder.dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", errors.Join(err, ctx.Err()), tail(out))
	}
	if err := os.Rename(draft, s.folder.dataDir()); err != nil {
		return fmt.Errorf("rename the complete cluster: %w", err)
	}
	return nil
}

// initdbArgs returns the arguments for a cluster that sorts by code point and
// has the case of all letters, the same on every machine.
func initdbArgs(dir string, major int, fast bool) []string {
	args := []string{
		"--pgdata=" + dir, "--username=" + superuser, "--auth=trust", "--encoding=UTF8", "--no-instructions",
	}
	if major >= firstBuiltin {
		args = append(args, "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
	} else {
		args = append(args, "--locale=C.UTF-8")
	}
	if fast {
		args = append(args, "--no-sync")
	}
	return args
}

// ForTests returns settings of a server for many short tests. No autovacuum analyses
// tables between two tests. A statement is planned once per connection, not five more
// times for its values, unless its transaction has another setting: half of the
// server's processor time in tests of the API was planning.
func ForTests() map[string]string {
	return map[string]string{"autovacuum_naptime": "1d", "plan_cache_mode": "force_generic_plan"}
}

// serverSettings returns the settings of a server for cfg.
func serverSettings(cfg Config) map[string]string {
	settings := map[string]string{
		"max_connections":     "200",
		"shared_buffers":      "128MB",
		"timezone":            "UTC",
		"log_timezone":        "UTC",
		"password_encryption": "scram-sha-256",
	}
	if cfg.Fast {
		settings["password_encryption"] = "md5"
		settings["fsync"] = "off"
		settings["synchronous_commit"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, cfg.Settings)
	return settings
}

// launchOn starts the process on a port and waits until it is ready.
func (s *Server) launchOn(ctx context.Context, port int) error {
	if err := available(ctx, port); err != nil {
		return err
	}
	log, err := os.OpenFile(s.folder.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer log.Close()
	settings := maps.Clone(s.settings)
	settings["port"] = strconv.Itoa(port)
	settings["listen_addresses"] = "127.0.0.1"
	settings["unix_socket_directories"] = s.folder.temporary
	settings["unix_socket_permissions"] = "0700"
	args := []string{"-D", s.folder.dataDir()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	// No CommandContext: the server outlives the context of its start.
	cmd := s.account.command(exec.Command(s.bin.path("postgres"), args...), s.folder.dir)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.guard.watch(p.pid())
	if err := s.awaitReady(ctx, p); err != nil {
		p.stop(ctx, Immediate)
		s.guard.watch(0)
		return s.folder.explain(err)
	}
	s.proc, s.port = p, port
	return nil
}

// awaitReady waits until the server takes connections, which it writes into
// its postmaster.pid, below its process id.
func (s *Server) awaitReady(ctx context.Context, p *process) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.done:
			return fmt.Errorf("the server exited during startup: %s", p.cmd.ProcessState)
		case <-tick.C:
		}
		text, err := os.ReadFile(s.folder.pidFile())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read the server's state: %w", err)
		}
		if pid, rest, _ := strings.Cut(string(text), "\n"); pid == strconv.Itoa(p.pid()) && strings.Contains(rest, "\nready") {
			return nil
		}
	}
}

// provision sets the superuser's password and creates the database, over the
// socket, which needs no password.
func (s *Server) provision(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host='%s' port=%d user=%s dbname=postgres sslmode=disable", s.folder.temporary, s.port, superuser))
	if err != nil {
		return s.folder.explain(err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, statement := range []string{
		// The password stays out of the server's log under any Settings.
		"SET log_statement = 'none'", "SET log_min_duration_statement = -1", "SET log_min_error_statement = 'panic'",
		"ALTER ROLE " + superuser + " PASSWORD '" + s.password + "'", // letters and digits, see rand.Text
	} {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("set the superuser's password: %w", err)
		}
	}
	var exists bool
	const query = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := conn.QueryRow(ctx, query, Database).Scan(&exists); err != nil {
		return fmt.Errorf("find database %s: %w", Database, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+Database); err != nil {
		return fmt.Errorf("create database %s: %w", Database, err)
	}
	return nil
}
