// Package embedded owns private PostgreSQL servers: for `countersign dev`, for
// tests and for benchmarks. Such a server listens on 127.0.0.1 and on a socket
// that only its owner can reach, and ends with the process that started it,
// however that process ends.
//
// It refuses to be an installation for production: there is no upgrade from
// one major version to the next, no replication and no backup. It knows
// nothing of Countersign's tables either. It runs on Linux and other Unixes.
package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// Database is the name of the database that every server has.
	Database = "countersign"

	superuser = "postgres"
	// startTimeout bounds the wait for a server that recovers from a crash.
	startTimeout = 2 * time.Minute
	// fastGrace is how long a fast shutdown may take before it becomes an
	// immediate one, and quitGrace how long that may take before SIGKILL.
	fastGrace = 10 * time.Second
	quitGrace = 10 * time.Second
	// portAttempts bounds the retries when another process takes the free
	// port that was found before the server could.
	portAttempts = 5
)

// Config says what kind of server to start. The zero value is a durable server
// in a temporary folder, on a free port, from the binaries that are found.
type Config struct {
	// Dir is the server's folder: the data, the log (postgres.log) and, if
	// its path is short enough for one, the socket are kept below it. Empty
	// means a fresh temporary folder, removed when the server stops. A folder
	// that holds a server's data already is used as it is.
	Dir string
	// Port is the TCP port on 127.0.0.1. Zero means a free one.
	Port int
	// Bin is the folder that holds initdb and postgres. Empty means the first
	// that is found; see Find.
	Bin string
	// Settings are run-time parameters (`SHOW ALL`) that replace or add to the
	// defaults. They are visible in the list of processes, so they hold no
	// secrets.
	Settings map[string]string
	// Fast turns fsync, synchronous_commit and full_page_writes off. A crash
	// of the machine then ruins the data, so this is for tests only.
	Fast bool
	// Logger hears of starts and stops. Nil means none.
	Logger *slog.Logger
	// Download allows fetching PostgreSQL once into the user's cache folder
	// when no binaries are found.
	Download bool
}

// Mode is how a server shuts down.
type Mode string

// The modes.
const (
	// Fast ends the sessions, writes a checkpoint and stops.
	Fast Mode = "fast"
	// Immediate stops at once, as in a crash: the next start recovers from
	// the write-ahead log.
	Immediate Mode = "immediate"
)

// RunningError says that a folder is in use by a server that is alive.
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

// Server is a running private server. Its methods may be called from several
// goroutines at once.
type Server struct {
	bin      binaries
	account  *account
	home     *home
	settings map[string]string
	port     int
	password string
	log      *slog.Logger

	mu   sync.Mutex // guards proc
	proc *process   // nil when stopped
}

// Start starts a server and waits until it takes connections. The caller must
// Stop it; should the caller's process die first, the server dies too. Ending
// ctx ends the start, not the server.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	if err := checkSettings(cfg.Settings); err != nil {
		return nil, err
	}
	acc, err := serverAccount()
	if err != nil {
		return nil, err
	}
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	bin, err := locate(ctx, cfg, acc, log)
	if err != nil {
		return nil, err
	}
	h, err := openHome(cfg.Dir, acc)
	if err != nil {
		return nil, err
	}
	s := &Server{
		bin:      bin,
		account:  acc,
		home:     h,
		settings: serverSettings(cfg),
		port:     cfg.Port,
		password: rand.Text(),
		log:      log,
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}()

	if err := h.claim(); err != nil {
		return nil, err
	}
	if err := s.initialise(ctx, cfg.Fast); err != nil {
		return nil, err
	}
	if err := s.launch(ctx, cfg.Port == 0); err != nil {
		return nil, err
	}
	if err := s.provision(ctx); err != nil {
		return nil, err
	}
	log.InfoContext(ctx, "postgres started", slog.Int("pid", s.Pid()), slog.Int("port", s.port),
		slog.String("version", bin.version), slog.String("bin", bin.dir), slog.String("dir", h.dir))
	return s, nil
}

// URL returns the superuser's address of the database Countersign. It holds
// the password, which is drawn anew by every Start, and stays the same across
// Restart.
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
func (s *Server) Dir() string { return s.home.dir }

// Pid returns the id of the server's first process, or 0 when it is stopped.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid
}

// Stop shuts the server down: fast first, immediately after ten seconds or
// when ctx ends, by SIGKILL if that does not help. It always returns with the
// server gone, and a temporary folder with it. Stopping twice is no error.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(ctx, Fast)
	return s.home.close()
}

// Kill stops the server at once, as a crash would. Its folder stays, and
// Restart brings it back. It is for tests of what happens then.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(context.Background(), Immediate)
}

// Restart shuts the server down in the given mode, unless it is down already,
// and starts it again under the same URL. It must not be called after Stop.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	s.mu.Lock()
	s.end(ctx, mode)
	s.mu.Unlock()
	if err := s.launch(ctx, false); err != nil {
		return fmt.Errorf("restart postgres: %w", err)
	}
	s.log.InfoContext(ctx, "postgres restarted", slog.Int("pid", s.Pid()), slog.Int("port", s.port))
	return nil
}

// end ends the process, if there is one. s.mu is held.
func (s *Server) end(ctx context.Context, mode Mode) {
	if s.proc == nil {
		return
	}
	s.log.InfoContext(ctx, "postgres stopping", slog.Int("pid", s.proc.pid), slog.String("mode", string(mode)))
	if how := s.proc.stop(ctx, mode); how != mode {
		s.log.WarnContext(ctx, "postgres did not stop as asked", slog.Int("pid", s.proc.pid), slog.String("ended", string(how)))
	}
	s.proc = nil
}

// launch starts the process and waits until it is ready. With anyPort it
// picks a free port, and another one if it was taken meanwhile.
func (s *Server) launch(ctx context.Context, anyPort bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		port, err := probePort(ctx, s.port)
		if err != nil {
			return err
		}
		err = s.launchOn(ctx, port)
		if err == nil {
			return nil
		}
		if !anyPort || attempt == portAttempts || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

func (s *Server) launchOn(ctx context.Context, port int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return &RunningError{Dir: s.home.dir, Pid: s.proc.pid}
	}
	cmd, closeLog, err := s.command(port)
	if err != nil {
		return err
	}
	defer closeLog()
	p, err := spawn(cmd, s.home.doomed())
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	if err := s.home.awaitReady(ctx, p); err != nil {
		p.stop(ctx, Immediate)
		return s.explain(err)
	}
	s.proc, s.port = p, port
	return nil
}

var errPortTaken = errors.New("the port is in use")

// explain adds the end of the server's log to the error of a start.
func (s *Server) explain(err error) error {
	tail := s.home.logTail()
	if strings.Contains(tail, "could not create any TCP/IP sockets") {
		err = errors.Join(errPortTaken, err)
	}
	if tail == "" {
		return fmt.Errorf("start postgres: %w", err)
	}
	return fmt.Errorf("start postgres: %w; its log ends with:\n%s", err, tail)
}

// probePort returns port if nobody listens on it, or a free one for 0.
func probePort(ctx context.Context, port int) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, fmt.Errorf("port %d on 127.0.0.1 cannot be used: %w", port, err)
	}
	free := l.Addr().(*net.TCPAddr).Port // a tcp4 listener has no other address
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("release port %d: %w", free, err)
	}
	return free, nil
}

// provision gives the superuser its password and creates the database, over
// the socket, where no password is asked.
func (s *Server) provision(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cfg, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return fmt.Errorf("prepare postgres: %w", err)
	}
	cfg.Host, cfg.Port = s.home.socketDir, uint16(s.port) // a TCP port
	cfg.User, cfg.Password, cfg.Database = superuser, "", "postgres"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return s.explain(err)
	}
	err = provisionOn(ctx, conn, s.password)
	return errors.Join(err, conn.Close(ctx))
}

func provisionOn(ctx context.Context, conn *pgx.Conn, password string) error {
	verifier, err := scramVerifier(password, rand.Reader)
	if err != nil {
		return fmt.Errorf("prepare postgres: %w", err)
	}
	// The verifier is base64, '$' and ':' only, so quoting it is safe.
	if _, err := conn.Exec(ctx, "ALTER ROLE "+superuser+" PASSWORD '"+verifier+"'"); err != nil {
		return fmt.Errorf("set the superuser's password: %w", err)
	}
	var exists bool
	const query = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := conn.QueryRow(ctx, query, Database).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", Database, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+Database); err != nil {
		return fmt.Errorf("create database %s: %w", Database, err)
	}
	return nil
}

// tail returns what r ends with, from a whole line on, in at most size bytes.
func tail(r io.ReadSeeker, size int64) string {
	end, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	if _, err := r.Seek(max(0, end-size), io.SeekStart); err != nil {
		return ""
	}
	text, err := io.ReadAll(r)
	if err != nil && len(text) == 0 {
		return ""
	}
	if _, whole, ok := strings.Cut(string(text), "\n"); ok && end > size {
		return strings.TrimSpace(whole)
	}
	return strings.TrimSpace(string(text))
}

// exists says whether there is a file or folder of that name.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
