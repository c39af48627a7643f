// Package connection connects to a tenant's sources. It owns the kinds of source
// and their configuration, the encryption of credentials, the open connections,
// and the listing of tools. It does not call tools.
package connection

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MCPConfig is the stored configuration of a source of kind mcp.
type MCPConfig struct {
	// Transport is http (streamable HTTP) or stdio.
	Transport string `json:"transport"`
	// URL is the endpoint for http.
	URL string `json:"url,omitzero"`
	// Command is the program and its arguments for stdio, Dir its working
	// directory.
	Command []string `json:"command,omitempty"`
	Dir     string   `json:"dir,omitzero"`
	// Timeout bounds the time of a call without an answer or progress; nil means
	// the default of the source.
	Timeout *envelope.Duration `json:"timeout,omitempty"`
}

// Credentials are the contents of a source's secret.
type Credentials struct {
	// Header is sent with every request over http.
	Header map[string]string `json:"header,omitempty"`
	// Env is added to the environment of a stdio child, which otherwise contains
	// only PATH and HOME.
	Env map[string]string `json:"env,omitempty"`
	// Values are a provider's credentials by name, such as ValueToken.
	Values map[string]string `json:"values,omitempty"`
	// Accounts are the passwords or tokens of mail accounts by name.
	Accounts map[string]string `json:"accounts,omitempty"`
}

// ParseMCPConfig parses and checks a configuration. The error names the invalid
// field.
func ParseMCPConfig(raw json.RawMessage) (MCPConfig, error) {
	var c MCPConfig
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, invalidConfig("", "syntax", "must be an object with transport, url or command and dir, and perhaps timeout")
	}
	if _, err := parseDuration("/timeout", c.Timeout, source.MaxTimeout); err != nil {
		return c, err
	}
	switch {
	case c.Transport == "http" && c.URL == "":
		return c, invalidConfig("/url", "required", "transport http needs the server's url")
	case c.Transport == "http" && (len(c.Command) > 0 || c.Dir != ""):
		return c, invalidConfig("/command", "unknown_field", "transport http takes no command and no dir")
	case c.Transport == "stdio" && len(c.Command) == 0:
		return c, invalidConfig("/command", "required", "transport stdio needs the program and its arguments")
	case c.Transport == "stdio" && c.URL != "":
		return c, invalidConfig("/url", "unknown_field", "transport stdio takes no url")
	case c.Transport != "http" && c.Transport != "stdio":
		return c, invalidConfig("/transport", "enum", "must be http or stdio")
	}
	return c, nil
}

func invalidConfig(at string, rule envelope.Rule, message string) error {
	return check.Invalid("/config"+at, rule, "%s", message)
}

// Config configures a Pool. The zero value is useful.
type Config struct {
	// Cipher decrypts the credentials of sources.
	Cipher Cipher
	// Breaker configures the circuit breakers of sources.
	Breaker source.BreakerConfig
	// Tokens, if not nil, returns the tokens of a source that logs in, for requests to
	// an address.
	Tokens func(tenant envelope.TenantID, source, address string) mcp.Tokens
	// Networks are allowed in addition to the public internet.
	Networks []netip.Prefix
	// Stdio reports whether a tenant's sources with transport stdio may start
	// their programs. The author of such a source can run any program as this
	// process's user; nil forbids it to all tenants.
	Stdio func(envelope.TenantID) bool
	// Maildir reports whether a tenant's sources may change the Maildir at a
	// path; nil forbids all.
	Maildir func(tenant envelope.TenantID, folder string) bool
	// Notes returns the storage for the notes of a source of kind builtin. If
	// Notes is nil or returns nil, the source has no tool for notes.
	Notes func(tenant envelope.TenantID, source string) builtin.Notes
	// Open, if not nil, opens sources for tests. If it returns nil, the pool
	// opens the source itself.
	Open func(tenant envelope.TenantID, of catalog.Source) (source.Source, error)
	// SkippedLine, if not nil, is called with the id of a source for each output
	// line of its program that is not a message.
	SkippedLine func(source string)
	// Log receives messages for operators; nil discards them.
	Log *slog.Logger
}

// Pool holds the open connections to sources, one per source. A connection is
// opened on first use, and reopened when the configuration of the source has
// changed. A Pool is safe for concurrent use.
type Pool struct {
	cfg Config

	watchers sync.RWMutex
	watch    map[*Watcher]bool

	mu   sync.Mutex
	open map[poolKey]connection
	// replaced connections may still receive calls. The next Sweep moves them to
	// closing, and a later one closes them when no call runs.
	replaced, closing []*tracked
}

// tracked is a source that counts its running calls.
type tracked struct {
	source.Source
	running atomic.Int64
}

// Execute implements source.Source.
func (t *tracked) Execute(ctx context.Context, call source.Call) source.Outcome {
	t.running.Add(1)
	defer t.running.Add(-1)
	return t.Source.Execute(ctx, call)
}

// Unwrap returns the wrapped source.
func (t *tracked) Unwrap() source.Source { return t.Source }

// poolKey identifies a source of a tenant.
type poolKey struct {
	tenant envelope.TenantID
	id     string
}

// connection is an open source with its configuration.
type connection struct {
	of  catalog.Source
	src *tracked
}

// NewPool returns a Pool without connections.
func NewPool(cfg Config) *Pool {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.SkippedLine == nil {
		cfg.SkippedLine = func(string) {}
	}
	return &Pool{cfg: cfg, watch: make(map[*Watcher]bool), open: make(map[poolKey]connection)}
}

// Watcher is called when the circuit breaker of a source changes to a state:
// closed, half-open or open. It must return quickly and must not call the
// source.
type Watcher func(tenant envelope.TenantID, source, to string)

// Watch calls a watcher at every change until stop is called. After stop has
// returned, the watcher is not called.
func (p *Pool) Watch(w Watcher) (stop func()) {
	at := &w
	p.watchers.Lock()
	defer p.watchers.Unlock()
	p.watch[at] = true
	return func() {
		p.watchers.Lock()
		defer p.watchers.Unlock()
		delete(p.watch, at)
	}
}

func (p *Pool) breakerChanged(tenant envelope.TenantID, source, to string) {
	p.watchers.RLock()
	defer p.watchers.RUnlock()
	for w := range p.watch {
		(*w)(tenant, source, to)
	}
}

// OpenFor returns the time for which a circuit breaker stays open.
func (p *Pool) OpenFor() time.Duration { return p.cfg.Breaker.Open() }

// Get returns the connection to a source of a tenant.
func (p *Pool) Get(current *settings.Settings, id string) (source.Source, error) {
	of, ok := current.Source(id)
	if !ok || !of.Enabled {
		return nil, fault.New(fault.NotFound, "no source %s", id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := poolKey{current.Tenant, id}
	old, connected := p.open[at]
	if connected && old.of.Kind == of.Kind && bytes.Equal(old.of.Config, of.Config) && bytes.Equal(old.of.Secret, of.Secret) &&
		old.of.Generation == of.Generation && old.of.OnLostLogin == of.OnLostLogin {
		return old.src, nil
	}
	opened, err := p.connect(current.Tenant, of)
	if err != nil {
		return nil, fmt.Errorf("open source %s: %w", id, err)
	}
	src := &tracked{Source: opened}
	p.open[at] = connection{of: of, src: src}
	if connected {
		p.replaced = append(p.replaced, old.src)
	}
	return src, nil
}

// Sweep closes connections that were replaced before the previous Sweep and run
// no calls. The interval between calls must exceed the time from Get to the
// call.
func (p *Pool) Sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var idle, busy []*tracked
	for _, src := range p.closing {
		if src.running.Load() == 0 {
			idle = append(idle, src)
		} else {
			busy = append(busy, src)
		}
	}
	p.closeAll(idle)
	p.closing, p.replaced = append(busy, p.replaced...), nil
}

// Close closes every connection.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		p.closing = append(p.closing, c.src)
	}
	clear(p.open)
	p.closeAll(append(p.closing, p.replaced...))
	p.closing, p.replaced = nil, nil
}

func (p *Pool) closeAll(sources []*tracked) {
	for _, src := range sources {
		if err := src.Close(); err != nil {
			p.cfg.Log.Warn("source not closed cleanly", slog.Any("error", err))
		}
	}
}

func (p *Pool) connect(tenant envelope.TenantID, of catalog.Source) (source.Source, error) {
	if p.cfg.Open != nil {
		if src, err := p.cfg.Open(tenant, of); err != nil || src != nil {
			return src, err
		}
	}
	creds, err := p.credentials(tenant, of)
	if err != nil {
		return nil, err
	}
	var src source.Source
	switch of.Kind {
	case catalog.KindBuiltin:
		// No circuit breaker: the tools have no common point of failure.
		return p.openBuiltin(tenant, of, creds)
	case catalog.KindMCP:
		src, err = p.openMCP(tenant, of, creds)
	case catalog.KindMail:
		src, err = orNil(p.openMail(tenant, of, creds))
	default:
		src, err = p.openProvider(of, creds)
	}
	if err != nil {
		return nil, err
	}
	return source.Guard(of.ID, src, p.cfg.Breaker, func(id, _, to string) { p.breakerChanged(tenant, id, to) }), nil
}

// credentials decrypts the credentials of a source; the zero value if there are
// none.
func (p *Pool) credentials(tenant envelope.TenantID, of catalog.Source) (Credentials, error) {
	var creds Credentials
	if len(of.Secret) == 0 {
		return creds, nil
	}
	raw, err := p.cfg.Cipher.Decrypt(tenant, of.ID, of.Secret)
	if err != nil {
		return creds, err
	}
	if err := json.Unmarshal(raw, &creds); err != nil {
		return Credentials{}, fault.New(fault.Conflict, "the source's credentials cannot be read")
	}
	return creds, nil
}

func (p *Pool) openMCP(tenant envelope.TenantID, of catalog.Source, creds Credentials) (source.Source, error) {
	cfg, err := ParseMCPConfig(of.Config)
	if err != nil {
		return nil, err
	}
	if cfg.Transport == mcp.TransportStdio && (p.cfg.Stdio == nil || !p.cfg.Stdio(tenant)) {
		return nil, fault.New(fault.Denied, "sources that start programs are off; set COUNTERSIGN_STDIO_SOURCES=true for the workers to allow them")
	}
	header := make(http.Header, len(creds.Header))
	for k, v := range creds.Header {
		header.Set(k, v)
	}
	timeout, err := parseDuration("/timeout", cfg.Timeout, source.MaxTimeout)
	if err != nil {
		return nil, err
	}
	env := make([]string, 0, len(creds.Env))
	for k, v := range creds.Env {
		env = append(env, k+"="+v)
	}
	var tokens mcp.Tokens
	if of.Login != nil && p.cfg.Tokens != nil {
		tokens = p.cfg.Tokens(tenant, of.ID, cfg.URL)
	}
	return orNil(mcp.New(mcp.Config{
		Tokens: tokens, FailWithoutLogin: of.OnLostLogin == catalog.LostLoginFails,
		Name: of.ID, Transport: cfg.Transport, URL: cfg.URL, Header: header, Guard: safehttp.Guard{Networks: p.cfg.Networks},
		Command: cfg.Command, Env: env, Dir: cfg.Dir, CallTimeout: timeout, Logger: p.cfg.Log,
		SkippedLine: func() { p.cfg.SkippedLine(of.ID) },
	}))
}
