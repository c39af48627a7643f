// Package dev runs a development environment: a database, the API, a worker and
// an example MCP server in one process, and a demonstration that proposes and
// decides actions through the API as agents and people do. It owns the order in
// which the parts start and stop. It is not for deployments: its tokens and its
// key are in files, and everything ends with the process.
package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/triage/account"
)

// Config describes the environment.
type Config struct {
	// DatabaseURL is the database, whose user must be allowed to create roles and
	// schemas. Empty starts a private server.
	DatabaseURL string
	// SecretKey encrypts the credentials of sources: 32 bytes in base64. Empty
	// makes a key, which is kept in Dir.
	SecretKey string
	// Dir holds the private server's data, the tokens, the key and the notes, and
	// is used again by the next environment. Empty is a temporary folder, removed
	// by Close.
	Dir string
	// Listen is the API's address; port 0 is a free one.
	Listen string
	// Notes is the program notes-mcp. Empty uses the one in the folder of this
	// program, or builds it.
	Notes string
	// Getenv returns a variable of triage, such as COUNTERSIGN_MAILDIRS; nil has none.
	Getenv func(name string) string
	// Mailbox has triage read the accounts of the tenant demo and a sample mailbox.
	Mailbox bool
	// Accounts has triage read the accounts of the tenant demo. The environment is for
	// setting them up, without an example server and a demonstration.
	Accounts bool
	// Version is the version of the program, as MCP clients see it.
	Version string
	// Progress receives a line for each part that has started, if not nil.
	Progress io.Writer
	// Log receives the log of the parts, if not nil.
	Log *slog.Logger
}

// Environment is a running environment. Close it.
type Environment struct {
	cfg     Config
	dir     string
	started time.Time
	steps   progress

	listener net.Listener
	url      string
	database string
	pool     *pgxpool.Pool
	watched  *telemetry.Telemetry
	demo     tenant
	vault    connection.Cipher
	mails    account.Cipher
	mailKey  string
	cache    *settings.Cache
	live     *connection.Pool
	// wake has the worker of this process poll now, and other workers on the
	// same database soon.
	wake func()
	// The folder and the address of the example server.
	notesDir, notesURL string

	failed  chan error
	closers []func(context.Context) error
}

// closeFor bounds the time until everything has stopped, on top of the grace
// of running calls.
const closeFor = 40 * time.Second

// Open starts the parts, one after the other. If one fails, or ctx ends
// meanwhile, Open stops those that have started.
func Open(ctx context.Context, cfg Config) (_ *Environment, err error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Progress = cmp.Or(cfg.Progress, io.Discard)
	e := &Environment{cfg: cfg, started: time.Now(), steps: progress{out: cfg.Progress}, failed: make(chan error, 3)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if err := e.listen(ctx); err != nil {
		return nil, err
	}
	if err := e.makeDir(); err != nil {
		return nil, err
	}
	if e.mails, err = e.loadMailCipher(); err != nil {
		return nil, err
	}
	if e.vault, err = e.loadVault(); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name string
		up   func(context.Context) (string, error)
	}{
		{"postgres", e.startDatabase},
		{"migrate", e.migrate},
		{"tenant", e.prepareTenant},
		{"notes", e.startNotes},
		{"worker", e.startWorker},
		{"api", e.startAPI},
		{"source", e.registerDemo},
		{"triage", e.startTriage},
	} {
		if cfg.Accounts && (part.name == "notes" || part.name == "source") {
			continue
		}
		if err := e.steps.run(ctx, part.name, part.up); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// listen takes the address before anything else starts, since an address in use
// is the most frequent failure.
func (e *Environment) listen(ctx context.Context) error {
	l, err := listen.Open(ctx, e.cfg.Listen, "--listen (--listen 127.0.0.1:0 takes a free port)")
	if err != nil {
		return err
	}
	e.listener = l
	e.onClose(func(context.Context) error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	e.url = "http://" + dialable(l.Addr())
	return nil
}

// dialable returns an address at which a client on this machine reaches a
// listener that may listen on all addresses.
func dialable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// makeDir makes the folder of the environment. A private server that does not
// run as the current user must be able to pass through the folder; the secret
// files in it are readable by their owner only.
func (e *Environment) makeDir() error {
	if e.cfg.Dir == "" {
		dir, err := os.MkdirTemp("", "countersign-dev-")
		if err != nil {
			return fmt.Errorf("make a temporary folder: %w", err)
		}
		e.dir = dir
		e.onClose(func(context.Context) error { return os.RemoveAll(dir) })
		return nil
	}
	dir, err := filepath.Abs(e.cfg.Dir)
	if err != nil {
		return fmt.Errorf("find the folder %s: %w", e.cfg.Dir, err)
	}
	const passable = 0o711
	if err := os.MkdirAll(dir, passable); err != nil {
		return fmt.Errorf("make the folder for the data: %w; choose another with --data-dir", err)
	}
	e.dir = dir
	return nil
}

func (e *Environment) onClose(fn func(context.Context) error) { e.closers = append(e.closers, fn) }

// onStop is onClose for parts that stop without an error and without a time
// limit.
func (e *Environment) onStop(stop func()) {
	e.onClose(func(context.Context) error {
		stop()
		return nil
	})
}

// Close stops the parts in the reverse order and returns when all have ended.
// Running calls get a few seconds to end. Close may be called twice.
func (e *Environment) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	var errs []error
	for len(e.closers) > 0 {
		last := len(e.closers) - 1
		errs = append(errs, e.closers[last](ctx))
		e.closers = e.closers[:last]
	}
	return errors.Join(errs...)
}

// Failed receives the error of a part that ended by itself.
func (e *Environment) Failed() <-chan error { return e.failed }

// URL returns the base URL of the API.
func (e *Environment) URL() string { return e.url }

// PrivateDatabaseURL returns the address of the private server, with its password;
// empty if the configuration names another.
func (e *Environment) PrivateDatabaseURL() string {
	if e.cfg.DatabaseURL != "" {
		return ""
	}
	return e.database
}

// Tokens returns the tokens of the tenant demo.
func (e *Environment) Tokens() Tokens { return e.demo.tokens }

// NotesDir returns the folder that the example server keeps its notes in.
func (e *Environment) NotesDir() string { return e.notesDir }

// TokensFile returns the file that the tokens are kept in, or "" for none.
func (e *Environment) TokensFile() string {
	if e.cfg.Dir == "" {
		return ""
	}
	return filepath.Join(e.dir, tokensName)
}

// Elapsed returns the time since Open was called.
func (e *Environment) Elapsed() time.Duration { return time.Since(e.started) }

// progress shows the parts that start, and the duration of each start.
type progress struct{ out io.Writer }

// run starts a part and shows its name meanwhile.
func (s progress) run(ctx context.Context, name string, up func(context.Context) (string, error)) error {
	began := time.Now()
	s.printf("  %-9s ", name)
	detail, err := up(ctx)
	switch {
	case ctx.Err() != nil:
		s.printf("stopped\n")
		return context.Cause(ctx)
	case err != nil:
		s.printf("failed\n")
		return fmt.Errorf("%s: %w", name, err)
	}
	s.printf("%s (%.1f s)\n", detail, time.Since(began).Seconds())
	return nil
}

// printf ignores errors: a closed terminal is no reason to stop.
func (s progress) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }
