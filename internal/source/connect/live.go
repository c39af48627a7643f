// Package connect owns the way to a tenant's sources: the kinds of source and
// their configuration, the encryption of credentials, the open connections, and
// the listing of sources' tools. It makes no calls of tools.
package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MCPConfig is the configuration of a source of kind mcp as it is stored.
type MCPConfig struct {
	// Transport is http (streamable HTTP) or stdio.
	Transport string `json:"transport"`
	// URL is the endpoint for http.
	URL string `json:"url,omitzero"`
	// Command is the program and its arguments for stdio, Dir where it runs.
	Command []string `json:"command,omitempty"`
	Dir     string   `json:"dir,omitzero"`
}

// Credentials are what a source's secret holds.
type Credentials struct {
	// Header is sent with every request over http.
	Header map[string]string `json:"header,omitempty"`
	// Env is added to the environment of a stdio child.
	Env map[string]string `json:"env,omitempty"`
	// Values are a provider's credentials by name, such as ValueToken.
	Values map[string]string `json:"values,omitempty"`
}

// ParseMCPConfig checks a configuration. The error names the field.
func ParseMCPConfig(raw json.RawMessage) (MCPConfig, error) {
	var c MCPConfig
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, invalidConfig("", "syntax", "must be an object with transport, and url or command and dir")
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
	return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: "/config" + at, Rule: rule, Message: message}}}
}

// Live holds the open connections to sources, one per source, made when first
// asked for and made anew when the source's configuration changed. It is safe
// for concurrent use.
type Pool struct {
	// Connect opens a source. NewLive sets it to what knows every kind;
	// another must be set before the first Get.
	Connect func(tenant envelope.TenantID, of catalog.Source) (source.Source, error)
	// Stdio lets sources of transport stdio start their programs. Whoever may
	// set up a source could then run anything as the worker's user, so it is
	// off unless the deployment says otherwise.
	Stdio bool
	// Notes returns what keeps the notes of a source of kind builtin. Where it
	// is nil, or returns nil, such a source has no tool for them. It must be
	// set before the first Get.
	Notes func(tenant envelope.TenantID, source string) builtin.Notes

	vault   Cipher
	breaker source.BreakerConfig
	log     *slog.Logger

	watchers sync.RWMutex
	watch    map[*Watcher]bool

	mu      sync.Mutex
	open    map[liveKey]*liveSource
	retired []source.Source
	leaving []source.Source
}

type liveKey struct {
	tenant envelope.TenantID
	id     string
}

type liveSource struct {
	of  catalog.Source
	src source.Source
}

// NewLive returns an empty set.
func NewPool(vault Cipher, breaker source.BreakerConfig, log *slog.Logger) *Pool {
	l := &Pool{vault: vault, breaker: breaker, log: log, watch: make(map[*Watcher]bool), open: make(map[liveKey]*liveSource)}
	l.Connect = l.connect
	return l
}

// Watcher hears of a source's breaker changing to a state: closed, half-open
// or open. It must be quick, and must not call the source.
type Watcher func(tenant envelope.TenantID, source, to string)

// Watch has a watcher hear of every change until stop is called; none is under
// way any more when stop returns.
func (l *Pool) Watch(w Watcher) (stop func()) {
	at := &w
	l.watchers.Lock()
	defer l.watchers.Unlock()
	l.watch[at] = true
	return func() {
		l.watchers.Lock()
		defer l.watchers.Unlock()
		delete(l.watch, at)
	}
}

func (l *Pool) changed(tenant envelope.TenantID, source, to string) {
	l.watchers.RLock()
	defer l.watchers.RUnlock()
	for w := range l.watch {
		(*w)(tenant, source, to)
	}
}

// OpenFor is how long a breaker that opens holds calls back.
func (l *Pool) OpenFor() time.Duration { return l.breaker.Open() }

// Get returns the connection to a source of the snapshot's tenant.
func (l *Pool) Get(snap *settings.Settings, id string) (source.Source, error) {
	of, ok := snap.Source(id)
	if !ok || !of.Enabled {
		return nil, fault.New(fault.NotFound, "no source %s", id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := liveKey{snap.Tenant, id}
	old := l.open[at]
	if old != nil && old.of.Kind == of.Kind && bytes.Equal(old.of.Config, of.Config) && bytes.Equal(old.of.Secret, of.Secret) {
		return old.src, nil
	}
	src, err := l.Connect(snap.Tenant, of)
	if err != nil {
		return nil, fmt.Errorf("open source %s: %w", id, err)
	}
	l.open[at] = &liveSource{of: of, src: src}
	if old != nil {
		// Calls may still run on it; Sweep closes it when they cannot.
		l.retired = append(l.retired, old.src)
	}
	return src, nil
}

// Sweep closes connections that were replaced before the sweep before this
// one. Call it at intervals longer than a call may take.
func (l *Pool) Sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, src := range l.leaving {
		l.close(src)
	}
	l.leaving, l.retired = l.retired, nil
}

// Close closes every connection.
func (l *Pool) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, s := range l.open {
		l.close(s.src)
		delete(l.open, at)
	}
	for _, src := range slices.Concat(l.leaving, l.retired) {
		l.close(src)
	}
	l.leaving, l.retired = nil, nil
}

func (l *Pool) close(src source.Source) {
	if err := src.Close(); err != nil {
		l.log.Warn("source closed badly", slog.Any("error", err))
	}
}

func (l *Pool) connect(tenant envelope.TenantID, of catalog.Source) (source.Source, error) {
	creds, err := l.credentials(tenant, of)
	if err != nil {
		return nil, err
	}
	var src source.Source
	switch of.Kind {
	case catalog.KindBuiltin:
		// It is not one place that could be ailing.
		var notes builtin.Notes
		if l.Notes != nil {
			notes = l.Notes(tenant, of.ID)
		}
		return openBuiltin(of, creds, notes)
	case catalog.KindMCP:
		src, err = l.openMCP(of, creds)
	default:
		src, err = openProvider(of, creds)
	}
	if err != nil {
		return nil, err
	}
	return source.Guard(of.ID, src, l.breaker, func(id, _, to string) { l.changed(tenant, id, to) }), nil
}

// credentials opens what is sealed; the zero value if nothing is.
func (l *Pool) credentials(tenant envelope.TenantID, of catalog.Source) (Credentials, error) {
	var creds Credentials
	if len(of.Secret) == 0 {
		return creds, nil
	}
	raw, err := l.vault.Decrypt(tenant, of.ID, of.Secret)
	if err != nil {
		return creds, err
	}
	if err := json.Unmarshal(raw, &creds); err != nil {
		return Credentials{}, fault.New(fault.Conflict, "the source's credentials cannot be read")
	}
	return creds, nil
}

func (l *Pool) openMCP(of catalog.Source, creds Credentials) (source.Source, error) {
	cfg, err := ParseMCPConfig(of.Config)
	if err != nil {
		return nil, err
	}
	if cfg.Transport == mcp.TransportStdio && !l.Stdio {
		return nil, fault.New(fault.Denied, "sources that start programs are off; set COUNTERSIGN_STDIO_SOURCES=true for the workers to allow them")
	}
	header := make(http.Header, len(creds.Header))
	for k, v := range creds.Header {
		header.Set(k, v)
	}
	env := make([]string, 0, len(creds.Env))
	for k, v := range creds.Env {
		env = append(env, k+"="+v)
	}
	return orNone(mcp.New(mcp.Config{
		Name: of.ID, Transport: cfg.Transport, URL: cfg.URL, Header: header,
		Command: cfg.Command, Env: env, Dir: cfg.Dir, Logger: l.log,
	}))
}
