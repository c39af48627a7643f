// Package rest owns the common parts of adapters that use plain HTTP: a client
// that determines as exactly as possible whether a request was sent, bounds the
// size of answers, and ends running calls when the source closes; and a source
// defined by a table of tools.
//
// It does not repeat requests and does not follow redirects.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
)

// Defaults of Config.
const (
	defaultListTimeout  = 15 * time.Second
	DefaultCallTimeout  = 30 * time.Second
	defaultMaxBodyBytes = 4 << 20
)

// Config bounds a Client. The zero value is useful.
type Config struct {
	// Guard decides to which addresses requests are allowed.
	Guard safehttp.Guard
	// Transport sends the requests in tests; nil means a transport of the
	// client's own, with Guard. It should support net/http/httptrace, otherwise
	// every failed call counts as sent.
	Transport http.RoundTripper
	// ListTimeout bounds a listing over all its requests; 0 means
	// defaultListTimeout.
	ListTimeout time.Duration
	// CallTimeout bounds one call; 0 means DefaultCallTimeout.
	CallTimeout time.Duration
	// MaxBodyBytes bounds the body of one answer; 0 means defaultMaxBodyBytes.
	MaxBodyBytes int
}

// Client sends the requests of one source. It is safe for concurrent use.
type Client struct {
	name  string
	cfg   Config
	http  *http.Client
	calls source.Calls
}

// New returns a client for the named source.
func New(name string, cfg Config) *Client {
	cfg.ListTimeout = cmp.Or(max(cfg.ListTimeout, 0), defaultListTimeout)
	cfg.CallTimeout = cmp.Or(max(cfg.CallTimeout, 0), DefaultCallTimeout)
	cfg.MaxBodyBytes = cmp.Or(max(cfg.MaxBodyBytes, 0), defaultMaxBodyBytes)
	if cfg.Transport == nil {
		cfg.Transport = cfg.Guard.Transport()
	}
	return &Client{name: name, cfg: cfg, http: safehttp.NewClient(cfg.Transport, 0)}
}

// Request is one HTTP request.
type Request struct {
	Method string
	// URL is absolute. It may contain a secret and is never echoed.
	URL string
	// Header may contain secrets and is never echoed. A body without a
	// Content-Type is JSON.
	Header http.Header
	// Body is sent unchanged; empty means no body.
	Body []byte
}

// Reply is the answer to a request, or the reason why it is missing.
type Reply struct {
	// Observation has a Code if the answer is incomplete.
	source.Observation
	Header http.Header
	// Body is the part of the answer that was read: all of it if Code is empty.
	Body []byte
	// Err is the transport's error, if no answer arrived. It may contain
	// addresses and must not be shown.
	Err error
}

// Send sends one request, within Execute or List.
func (c *Client) Send(ctx context.Context, r Request) Reply {
	if ctx.Err() != nil {
		return Reply{Observation: source.Observation{Code: source.EndedCode(ctx)}}
	}
	ctx, watch := source.WatchWrite(ctx)
	var body io.Reader
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return Reply{Observation: source.Refuse(source.CodeInvalidArgs, "")}
	}
	for name, values := range r.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "countersign/1")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		reply := Reply{Observation: source.Observation{Written: watch.Written()}, Err: err}
		reply.Code = failureCode(ctx, reply.Written)
		return reply
	}
	reply := Reply{
		Observation: source.Observation{
			Written:    true,
			Status:     resp.StatusCode,
			RetryAfter: source.RetryAfter(resp.Header.Get("Retry-After"), time.Now()),
		},
		Header: resp.Header,
	}
	reply.Body, err = io.ReadAll(io.LimitReader(resp.Body, int64(c.cfg.MaxBodyBytes)+1))
	_ = resp.Body.Close() // read to the end, or given up
	switch {
	case err != nil:
		reply.Code = failureCode(ctx, true)
	case len(reply.Body) > c.cfg.MaxBodyBytes:
		reply.Body = reply.Body[:c.cfg.MaxBodyBytes]
		reply.Code = source.CodeOversized
	}
	return reply
}

// Decode decodes the complete answer as one JSON value, and reports whether it
// succeeded.
func (r Reply) Decode(into any) bool {
	return r.Code == "" && json.Unmarshal(r.Body, into) == nil
}

// Observe returns the observation of the reply itself: its status, or the
// reason why it is missing. A complete answer of 2xx counts as answered. A JSON
// body is the result, regardless of the status.
func (r Reply) Observe() source.Observation {
	if errors.Is(r.Err, safehttp.ErrForbidden) {
		return source.Forbidden()
	}
	o := r.Observation
	if r.Code == "" && json.Valid(r.Body) {
		o.Result = r.Body
	}
	if code := source.StatusCode(r.Status); code != "" {
		o.Code = code
	}
	o.Answered = r.Code == "" && r.Succeeded()
	return o
}

// DecodePage decodes the reply to a request for a page of a listing. The error
// is a *source.ListError.
func (r Reply) DecodePage(into any) error {
	if r.Succeeded() && r.Decode(into) {
		return nil
	}
	return r.ListError()
}

// ListError returns the reason why the reply is not a page of a listing.
func (r Reply) ListError() error { return r.Observe().ListError() }

// Succeeded reports whether the status is 2xx.
func (r Reply) Succeeded() bool { return r.Status >= 200 && r.Status <= 299 }

// Execute makes one attempt at a call within the client's time limit, and
// returns its outcome. If the context has ended or the source is closed, it
// makes no attempt.
func (c *Client) Execute(ctx context.Context, call source.Call, attempt func(context.Context) source.Observation) source.Outcome {
	ctx, end, ok := c.calls.Start(ctx, cmp.Or(call.Timeout, c.cfg.CallTimeout))
	if !ok {
		return source.Observation{Code: source.CodeClosed}.Outcome(c.name, call.Effect)
	}
	defer end()
	if ctx.Err() != nil {
		return source.Observation{Code: source.EndedCode(ctx)}.Outcome(c.name, call.Effect)
	}
	return attempt(ctx).Outcome(c.name, call.Effect)
}

// List runs a listing within the client's time limit. Its error is fault.Busy
// and contains only the text of a *source.ListError.
func (c *Client) List(ctx context.Context, list func(context.Context) ([]source.Tool, error)) ([]source.Tool, error) {
	ctx, end, ok := c.calls.Start(ctx, c.cfg.ListTimeout)
	if !ok {
		return nil, fault.Wrap(source.ErrClosed, fault.Busy, "list tools of %s: the source is closed", c.name)
	}
	defer end()
	tools, err := list(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	if refused, ok := errors.AsType[*source.ListError](err); ok {
		return nil, fault.Wrap(refused, fault.Busy, "list tools of %s: %s", c.name, refused)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Busy, "list tools of %s", c.name)
	}
	return tools, nil
}

// Close cancels running calls and waits for them. It may be called more than
// once.
func (c *Client) Close() error {
	c.calls.Cancel()
	c.calls.Wait()
	c.http.CloseIdleConnections()
	return nil
}

// failureCode returns the code for a request without a complete answer.
func failureCode(ctx context.Context, written bool) string {
	switch {
	case ctx.Err() != nil:
		return source.EndedCode(ctx)
	case written:
		return source.CodeLost
	}
	return source.CodeUnreachable
}

// Base is the base address of a provider's API. The zero Base is invalid.
type Base struct{ at *url.URL }

// ParseBase parses an absolute http or https address without user, query and
// fragment. The error is fault.Invalid and does not repeat the address.
func ParseBase(address string) (Base, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return Base{}, fault.New(fault.Invalid, "must be an absolute http or https address without user, query and fragment")
	}
	return Base{at: u}, nil
}

// URL returns the address of a path below the base. Each segment is escaped to
// exactly one segment. URL returns false for "." and "..", which cannot be
// escaped. An empty last segment adds a trailing slash.
func (b Base) URL(query url.Values, segments ...string) (string, bool) {
	escaped := make([]string, len(segments))
	for i, s := range segments {
		if s == "." || s == ".." || s == "" && i < len(segments)-1 {
			return "", false
		}
		escaped[i] = url.PathEscape(s)
		if s == "" {
			escaped[i] = "/"
		}
	}
	u := b.at.JoinPath(escaped...)
	u.RawQuery = query.Encode()
	return u.String(), true
}

// Secret is a credential. Printing, logging or encoding a value that contains
// one does not reveal the text; only Reveal returns it. The zero Secret is
// empty.
type Secret struct {
	// A function prints as an address, also through reflection.
	text func() string
}

// NewSecret returns a text as a Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: func() string { return text }}
}

// NewSecrets converts the values of a map to Secrets.
func NewSecrets(texts map[string]string) map[string]Secret {
	secrets := make(map[string]Secret, len(texts))
	for name, text := range texts {
		secrets[name] = NewSecret(text)
	}
	return secrets
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return s.text()
}

// FitsHeader reports whether the text is a valid header value.
func (s Secret) FitsHeader() bool { return httpguts.ValidHeaderFieldValue(s.Reveal()) }

// Empty reports whether the text is empty.
func (s Secret) Empty() bool { return s.text == nil }
