package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/chaos/load"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// suite has what all drills share.
type suite struct {
	dir, programs, postgres, newPostgres string
	blocks                               map[string]paragraphs
	stdout                               io.Writer

	log    *os.File
	tool   *counting.Process
	tenant envelope.TenantID
}

// unavailable returns why a kind cannot be drilled here; empty if it can.
func (s *suite) unavailable(k kind) string {
	if _, err := exec.LookPath("pgbackrest"); k.archive && err != nil {
		return "pgbackrest is not installed (Debian and Ubuntu: apt-get install pgbackrest)"
	}
	return ""
}

// prepare starts the counting server, and makes the data folder that each drill begins with:
// a migrated database with a tenant, in which no worker has worked.
func (s *suite) prepare(ctx context.Context) (err error) {
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return err
	}
	s.tool, err = counting.Start(ctx, counting.Config{Journal: s.journal(), Call: callTime})
	if err != nil {
		return err
	}
	base := server{bin: s.postgres, data: filepath.Join(s.dir, "base")}
	if err := s.create(ctx, &base); err != nil {
		return err
	}
	db, err := database.Open(ctx, base.url("app"), embedded.Config{})
	if err != nil {
		return err
	}
	s.tenant, err = load.NewTenant(ctx, db.Pool, settings.NewCache(), "drill", s.tool.URL, classes())
	return errors.Join(err, db.Close(), s.stop(base.data, "fast"))
}

func (s *suite) journal() string { return filepath.Join(s.dir, "journal") }

// close stops everything that a drill left.
func (s *suite) close() (err error) {
	folders, _ := filepath.Glob(filepath.Join(s.dir, "*", "*", "postmaster.pid")) // the pattern is a good one
	for _, file := range folders {
		err = errors.Join(err, s.stop(filepath.Dir(file), "immediate"))
	}
	return errors.Join(err, s.tool.Stop(), s.log.Close())
}

// server is a PostgreSQL server.
type server struct {
	bin, data string
	port      int
}

func (v server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", v.port, database)
}

// create makes a cluster with an empty database, and starts it.
func (s *suite) create(ctx context.Context, v *server) error {
	if err := s.command(ctx, filepath.Join(v.bin, "initdb"), "-D", v.data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"); err != nil {
		return err
	}
	if err := s.start(ctx, v, "fsync=off", "listen_addresses='127.0.0.1'", "unix_socket_directories='"+s.dir+"'"); err != nil {
		return err
	}
	return s.command(ctx, filepath.Join(s.postgres, "psql"), "-Xqc", "CREATE DATABASE app", v.url("postgres"))
}

// start starts a server at a free port, with more settings.
func (s *suite) start(ctx context.Context, v *server, settings ...string) (err error) {
	if v.port, err = freePort(ctx); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(v.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "port=%d\n%s\n", v.port, strings.Join(settings, "\n"))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return s.command(ctx, filepath.Join(v.bin, "pg_ctl"), "-D", v.data, "-l", v.data+".log", "-w", "start")
}

func (s *suite) stop(data, mode string) error {
	return s.command(context.Background(), filepath.Join(s.postgres, "pg_ctl"), "-D", data, "-m", mode, "-w", "stop")
}

// command runs a command, which prints to the log.
func (s *suite) command(ctx context.Context, name string, args ...string) error {
	return s.logged(exec.CommandContext(ctx, name, args...))
}

func (s *suite) logged(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(s.log.Name()) // the error is the command's
		return fmt.Errorf("%s: %w; the end of the log:\n%s", strings.Join(cmd.Args, " "), err, text[max(0, len(text)-2000):])
	}
	return nil
}

// freePort returns a port that is free now.
func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
