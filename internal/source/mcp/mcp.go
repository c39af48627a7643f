// Package mcp is the source of tools of a Model Context Protocol server, over
// streamable HTTP or as a child process over stdio. It owns the sessions, and
// determines whether a tools/call may have reached the server. The SDK's errors
// do not reveal that, so the package watches the bytes that are written.
//
// It offers the server nothing: no sampling, no elicitation and no roots, and it
// refuses input requests of tools.
package mcp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/singleflight"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
)

// The transports.
const (
	// TransportHTTP is MCP's streamable HTTP.
	TransportHTTP = "http"
	// TransportStdio is a child process with MCP over its standard input and
	// output.
	TransportStdio = "stdio"
)

// Defaults of Config.
const (
	defaultListTimeout = 15 * time.Second
	// defaultStartTimeout replaces defaultListTimeout for a program, which may
	// have to be downloaded first.
	defaultStartTimeout   = time.Minute
	DefaultCallTimeout    = 30 * time.Second
	defaultMaxResultBytes = 4 << 20
)

// Config configures a source of one server. Fields for another transport are
// ignored.
type Config struct {
	// Name is the source's name in errors and logs.
	Name string
	// Transport is TransportHTTP or TransportStdio.
	Transport string

	// URL is the endpoint, http or https. Redirects are not followed.
	URL string
	// Header is sent with every request. It may contain secrets and is never
	// logged or echoed.
	Header http.Header
	// Tokens, if not nil, gives the bearer token of every request. It replaces a
	// header Authorization.
	Tokens Tokens
	// FailWithoutLogin refuses calls while the login is lost; otherwise they are
	// put back.
	FailWithoutLogin bool
	// Guard decides to which addresses requests are allowed.
	Guard safehttp.Guard

	// Command is the program and its arguments.
	Command []string
	// Env is added to the child's environment, as KEY=value; it may contain
	// secrets. Of this process's environment the child gets only PATH and HOME.
	Env []string
	// Dir is the child's working directory; empty means this process's.
	Dir string

	// ListTimeout bounds the setup of a session, and a listing with all its
	// pages; 0 means defaultListTimeout or, for a program, defaultStartTimeout.
	ListTimeout time.Duration
	// CallTimeout bounds the time of a call without an answer or progress
	// notification; 0 means DefaultCallTimeout.
	CallTimeout time.Duration
	// MaxResultBytes bounds the JSON of one answer; 0 means
	// defaultMaxResultBytes.
	MaxResultBytes int
	// SkippedLine, if not nil, is called for each output line of a child that is
	// not a message.
	SkippedLine func()
	// Logger logs the ends of sessions; nil discards them.
	Logger *slog.Logger
}

// Tokens are the tokens of a source that logs in.
type Tokens interface {
	// Token returns a token other than rejected, which the server did not accept; ""
	// for none. The error is source.ErrLoginLost, or source.ErrLoginUnavailable.
	Token(ctx context.Context, rejected string) (string, error)
	// NeedScopes records that the server demands scopes for a request with a token: for
	// a call of a tool, or with "" for every call. The error is a *source.ScopeError, or
	// nil if another login would not change the answer.
	NeedScopes(ctx context.Context, token, tool string, scopes []string) error
}

// Source implements source.Source for one MCP server. It connects on first use
// and shares one session among concurrent calls.
type Source struct {
	cfg    Config
	log    *slog.Logger
	client *sdk.Client
	base   *http.Transport
	dials  singleflight.Group

	mu      sync.Mutex
	closed  bool
	current *session
	// restarts computes the waits between restarts of a child that ends early;
	// nil before the first.
	restarts backoff.BackOff
	known    map[string]bool // tools of the last listing; nil before the first

	calls source.Calls // calls, dials, and the closing of old sessions

	idle    idleTimeouts
	skipped atomic.Int64 // lines of children's output that were no messages
}

// New returns a source for the server in cfg. It checks cfg and does not connect
// yet.
func New(cfg Config) (*Source, error) {
	switch cfg.Transport {
	case TransportHTTP:
		u, err := url.Parse(cfg.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fault.New(fault.Invalid, "mcp source %s: url must be an absolute http or https address", cfg.Name)
		}
	case TransportStdio:
		if len(cfg.Command) == 0 || cfg.Command[0] == "" {
			return nil, fault.New(fault.Invalid, "mcp source %s: command is empty", cfg.Name)
		}
	default:
		return nil, fault.New(fault.Invalid, "mcp source %s: unknown transport %q", cfg.Name, cfg.Transport)
	}
	cfg.Header = cfg.Header.Clone()
	cfg.Command = slices.Clone(cfg.Command)
	standard := defaultListTimeout
	if cfg.Transport == TransportStdio {
		standard = defaultStartTimeout
	}
	cfg.ListTimeout = cmp.Or(max(cfg.ListTimeout, 0), standard)
	cfg.CallTimeout = cmp.Or(max(cfg.CallTimeout, 0), DefaultCallTimeout)
	cfg.MaxResultBytes = cmp.Or(max(cfg.MaxResultBytes, 0), defaultMaxResultBytes)
	s := &Source{
		cfg:  cfg,
		log:  slog.New(slog.DiscardHandler),
		base: cfg.Guard.Transport(),
	}
	if cfg.Logger != nil {
		s.log = cfg.Logger.With(slog.String("source", cfg.Name))
	}
	s.client = sdk.NewClient(
		&sdk.Implementation{Name: "countersign", Version: "1"},
		&sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{},
			// The SDK would answer an input request by sending the call again.
			MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
			ProgressNotificationHandler: s.idle.progress,
		},
	)
	return s, nil
}

// frameLimit bounds one message, or the body of one answer. It has space for
// listings, which may be larger than the largest result.
func (s *Source) frameLimit() int {
	return max(s.cfg.MaxResultBytes, defaultMaxResultBytes) + 64<<10
}

// SkippedLines implements source.SkipsLines.
func (s *Source) SkippedLines() int { return int(s.skipped.Load()) }

func (s *Source) skippedLine() {
	s.skipped.Add(1)
	if s.cfg.SkippedLine != nil {
		s.cfg.SkippedLine()
	}
}

// Close implements source.Source. Running calls end. A child process is asked to
// exit; if it does not, its process group is killed. Close takes a few seconds
// at most.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	sess := s.current
	s.current = nil
	s.mu.Unlock()
	s.calls.Cancel()

	if sess != nil {
		sess.conn.closeChild()
		if err := sess.close(); err != nil {
			s.log.Debug("mcp session not closed cleanly", slog.String("error", printable(err).Error()))
		}
	}
	s.calls.Wait()
	s.base.CloseIdleConnections()
	return nil
}

var _ source.Source = (*Source)(nil)

// String returns a name of the source without its secrets.
func (s *Source) String() string { return fmt.Sprintf("mcp source %s", s.cfg.Name) }
