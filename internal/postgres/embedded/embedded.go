//go:build unix

// Package embedded owns private PostgreSQL servers: for `countersign dev`, for
// tests and for benchmarks. Such a server listens on 127.0.0.1 and on a socket
// that only its owner can reach, and ends with the process that started it, even
// if that process is killed.
//
// It is not an installation for production: it has no upgrade between major
// versions, no backup, and standbys for tests only. It is independent of Countersign's
// tables. It runs on Linux and macOS.
package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// Database is the name of the database that every server has.
	Database = "countersign"

	superuser = "postgres"
	// startTimeout bounds the wait for a server that recovers from a crash.
	startTimeout = 2 * time.Minute
	// portAttempts bounds the retries of a start whose random port is in use.
	portAttempts = 5
)

// Config configures a server. The zero value is a durable server in a
// temporary folder, on a free port, run by the first programs found.
type Config struct {
	// Dir is the server's folder: the data and the log (postgres.log) are kept
	// below it. Empty means a temporary folder, removed when the server stops.
	// A folder that holds a server's data already is used as it is.
	Dir string
	// Port is the TCP port on 127.0.0.1. Zero means a random free one.
	Port int
	// Bin is the folder that holds initdb and postgres. Empty means the one in
	// the variable COUNTERSIGN_PG_BIN, else the first installation found.
	Bin string
	// Settings are run-time parameters (`SHOW ALL`) that replace or add to the
	// defaults. They are visible in the list of processes, so they hold no
	// secrets. The port, the addresses and the socket cannot be changed here.
	Settings map[string]string
	// Fast turns fsync, synchronous_commit and full_page_writes off, and keeps
	// the data of a temporary folder in memory where there is room. A crash
	// of the machine then ruins the data, so this is for tests only.
	Fast bool
	// Logger logs starts and stops. Nil means none.
	Logger *slog.Logger
	// Download allows fetching PostgreSQL once into the user's cache folder
	// when no programs are found.
	Download bool
}

// Mode is a shutdown mode of a server.
type Mode string

// The modes.
const (
	// Fast ends the sessions, writes a checkpoint and stops.
	Fast Mode = "fast"
	// Immediate stops the server like a crash: the next start recovers from the
	// write-ahead log.
	Immediate Mode = "immediate"
)

// RunningError means that a folder is in use by a running server.
type RunningError struct {
	Dir string
	// Pid is the server's process, or 0 when it is just starting.
	Pid int
}

// Error names the folder and the process.
func (e *RunningError) Error() string {
	if e.Pid == 0 {
		return fmt.Sprintf("another process is starting a postgres server in %s", e.Dir)
	}
	return fmt.Sprintf("a postgres server is already running in %s as process %d; stop it first, or use another folder", e.Dir, e.Pid)
}

// Server is a running private server. Its methods are safe for concurrent use.
type Server struct {
	bin      binaries
	account  *account
	folder   *folder
	guard    *guard
	settings map[string]string
	password string
	log      *slog.Logger

	mu   sync.Mutex // guards port and proc
	port int
	proc *process // nil when stopped
}

// Start starts a server and waits until it takes connections. The caller must
// Stop it; should the caller's process die first, the server dies too. Ending
// ctx ends the start, not the server.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	acc, err := serverAccount()
	if err != nil {
		return nil, err
	}
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	bin, err := locate(ctx, cfg, acc, log)
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, account: acc, settings: serverSettings(cfg), password: rand.Text(), log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.takeFolder(cfg); err != nil {
		return nil, err
	}
	if err := s.initialise(ctx, cfg.Fast); err != nil {
		return nil, err
	}
	if err := s.launch(ctx, cfg.Port); err != nil {
		return nil, err
	}
	if err := s.provision(ctx); err != nil {
		return nil, err
	}
	log.InfoContext(ctx, "postgres started", slog.Int("pid", s.Pid()), slog.Int("port", s.port),
		slog.String("version", bin.version), slog.String("bin", bin.dir), slog.String("dir", s.folder.dir))
	return s, nil
}

// takeFolder takes the server's folder, and starts its guard.
func (s *Server) takeFolder(cfg Config) (err error) {
	if s.folder, err = openFolder(cfg, s.account); err != nil {
		return err
	}
	if s.guard, err = newGuard(s.folder.temporary); err != nil {
		return err
	}
	return s.folder.claim()
}

// URL returns the superuser's URL of the database Countersign. It contains the
// password, which every Start generates and Restart keeps.
func (s *Server) URL() string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + Database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Version returns the server's version, such as "15.18".
func (s *Server) Version() string { return s.bin.version }

// Dir returns the server's folder.
func (s *Server) Dir() string { return s.folder.dir }

// Pid returns the id of the server's first process, or 0 when it is stopped.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid()
}

// Ended returns a channel that is closed when the server's present process ends,
// by itself or by Stop or Restart.
func (s *Server) Ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	return s.proc.done
}

// LogFile returns the file of the server's log.
func (s *Server) LogFile() string { return s.folder.logFile() }

// Stop shuts the server down: fast first, immediately after ten seconds or
// when ctx ends, by SIGKILL if that does not help. It always returns with the
// server gone, and a temporary folder with it. Stopping twice is no error.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(ctx, Fast)
	if s.folder == nil {
		return nil
	}
	err := s.folder.close()
	s.guard.dismiss()
	return err
}

// Restart shuts the server down in the given mode, unless it is down already,
// and starts it again under the same URL. It must not be called after Stop.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(ctx, mode)
	if err := s.launch(ctx, s.port); err != nil {
		return fmt.Errorf("restart postgres: %w", err)
	}
	s.log.InfoContext(ctx, "postgres restarted", slog.Int("pid", s.proc.pid()), slog.Int("port", s.port))
	return nil
}

// end ends the process, if there is one. s.mu is held.
func (s *Server) end(ctx context.Context, mode Mode) {
	if s.proc == nil {
		return
	}
	s.log.InfoContext(ctx, "postgres stopping", slog.Int("pid", s.proc.pid()), slog.String("mode", string(mode)))
	if how := s.proc.stop(ctx, mode); how != mode {
		s.log.WarnContext(ctx, "postgres did not stop as asked", slog.Int("pid", s.proc.pid()), slog.String("ended", string(how)))
	}
	s.guard.watch(0)
	s.proc = nil
}

// launch starts the process and waits until it is ready. For port 0 it picks a
// port, and another one if that is in use. The caller holds s.mu, or s is not
// shared yet.
func (s *Server) launch(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := s.launchOn(ctx, cmp.Or(port, somePort()))
		if err == nil || port != 0 || attempt == portAttempts || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

// somePort returns a random port below the ephemeral ports, which begin at 32768 on
// Linux and at 49152 on macOS unless an administrator changed that. So the port of a
// server that restarts goes to no other socket that asks for any port.
func somePort() int {
	const first, end = 15000, 30000 // Kubernetes gives nodes the ports from 30000
	return first + mathrand.IntN(end-first)
}

// available returns an error if a server cannot listen on the port: EADDRINUSE if it is in use.
func available(ctx context.Context, port int) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d on 127.0.0.1 cannot be used: %w", port, err)
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("release port %d: %w", port, err)
	}
	return nil
}
