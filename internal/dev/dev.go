// Package dev is the development house: a database, the API, a worker and an
// example MCP server in one process, and a demonstration that sends envelopes
// through all of it the way agents and people do. It owns the order in which
// the parts come up and go down. It refuses to be a deployment: its tokens and
// its key lie in files, and everything ends with the process.
package dev

import (
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

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Config says what house to open.
type Config struct {
	// DatabaseURL names the database, whose user must be allowed to create
	// roles and schemas. Empty starts a private server.
	DatabaseURL string
	// SecretKey seals the credentials of sources: 32 bytes in base64. Empty is
	// one of the house's own, which Dir keeps.
	SecretKey string
	// Dir keeps the private server's data, the tokens, the key and the notes
	// from one time to the next. Empty is a temporary folder, removed by Close.
	Dir string
	// Listen is the API's address; port 0 is a free one.
	Listen string
	// Notes is the program notes-mcp. Empty is the one beside this program, or
	// one that is built.
	Notes string
	// Version is the build's, for telemetry.
	Version string
	// Progress receives a line for each part that is up; nil is nobody.
	Progress io.Writer
	// Log receives what the parts log; nil is nobody.
	Log *slog.Logger
}

// House is an open house. Close it.
type House struct {
	cfg     Config
	dir     string
	started time.Time
	steps   steps

	listener net.Listener
	url      string
	database string
	pool     *pgxpool.Pool
	watched  *telemetry.Telemetry
	tenant   envelope.TenantID
	tokens   Tokens
	vault    connect.Vault
	cache    *settings.Cache
	live     *connect.Live
	worker   *crew
	notes    *notesServer

	failed  chan error
	closers []func(context.Context) error
}

// closeFor bounds how long everything together may take to end, on top of the
// grace of running calls.
const closeFor = 40 * time.Second

// Open brings the parts up, one after the other. If one cannot, or ctx ends
// meanwhile, those that are up are taken down again.
func Open(ctx context.Context, cfg Config) (_ *House, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	h := &House{cfg: cfg, started: time.Now(), steps: steps{out: cfg.Progress}, failed: make(chan error, 2)}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := h.listen(ctx); err != nil {
		return nil, err
	}
	if err := h.makeDir(); err != nil {
		return nil, err
	}
	if h.vault, err = h.openVault(); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name string
		up   func(context.Context) (string, error)
	}{
		{"postgres", h.startDatabase},
		{"migrate", h.migrate},
		{"tenant", h.fillTenant},
		{"notes", h.startNotes},
		{"worker", h.startWorker},
		{"api", h.startAPI},
		{"source", h.registerNotes},
	} {
		if err := h.steps.run(ctx, part.name, part.up); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// listen takes the address first, since that is what most often is in the way.
func (h *House) listen(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", h.cfg.Listen)
	if err != nil {
		return fmt.Errorf("%s cannot be listened on (%w); stop what is there, or choose another: --listen 127.0.0.1:0 takes a free port", h.cfg.Listen, cause(err))
	}
	h.listener = l
	h.onClose(func(context.Context) error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	h.url = "http://" + dialable(l.Addr())
	return nil
}

// cause strips an error of the address that is named already.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// dialable is an address at which a client on this machine reaches a listener
// that may listen on all of them.
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

// makeDir makes the house's folder. A private server that does not run as the
// current user must be able to pass through it, and nothing in it that is
// secret is readable by others.
func (h *House) makeDir() error {
	if h.cfg.Dir == "" {
		dir, err := os.MkdirTemp("", "countersign-dev-")
		if err != nil {
			return fmt.Errorf("make a temporary folder: %w", err)
		}
		h.dir = dir
		h.onClose(func(context.Context) error { return os.RemoveAll(dir) })
		return nil
	}
	dir, err := filepath.Abs(h.cfg.Dir)
	if err != nil {
		return fmt.Errorf("find the folder %s: %w", h.cfg.Dir, err)
	}
	const passable = 0o711
	if err := os.MkdirAll(dir, passable); err != nil {
		return fmt.Errorf("make the folder for the data: %w; choose another with --data-dir", err)
	}
	h.dir = dir
	return nil
}

func (h *House) onClose(fn func(context.Context) error) { h.closers = append(h.closers, fn) }

// Close takes everything down in the reverse order and returns when nothing of
// it runs any more. Calls that run get a few seconds to end. Closing twice is
// no error.
func (h *House) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	var errs []error
	for len(h.closers) > 0 {
		last := len(h.closers) - 1
		errs = append(errs, h.closers[last](ctx))
		h.closers = h.closers[:last]
	}
	return errors.Join(errs...)
}

// Failed tells of a part that ended by itself.
func (h *House) Failed() <-chan error { return h.failed }

// URL is where the API is.
func (h *House) URL() string { return h.url }

// Tokens are those of the demo tenant.
func (h *House) Tokens() Tokens { return h.tokens }

// NotesDir is the folder that the example server keeps its notes in.
func (h *House) NotesDir() string { return h.notes.dir }

// TokensFile is where the tokens are kept; empty if nowhere.
func (h *House) TokensFile() string {
	if h.cfg.Dir == "" {
		return ""
	}
	return filepath.Join(h.dir, tokensName)
}

// Took is how long it is since the house began to open.
func (h *House) Took() time.Duration { return time.Since(h.started) }
