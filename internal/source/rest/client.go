// Package rest owns what adapters that speak plain HTTP to a provider have in
// common: a client that knows as exactly as possible whether a request was
// sent, bounds what is read, and ends running calls when the source closes; and
// a source made of a table of tools.
//
// It does not repeat requests and does not follow redirects.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
)

// Defaults of Config.
const (
	DefaultListTimeout  = 15 * time.Second
	DefaultCallTimeout  = 30 * time.Second
	DefaultMaxBodyBytes = 4 << 20
)

// Config bounds a Client. The zero value is useful.
type Config struct {
	// Guard decides which addresses requests may go to.
	Guard safehttp.Guard
	// Transport makes the requests in tests; nil means a transport of the
	// client's own, with Guard. It should support net/http/httptrace, or every
	// failed call counts as sent.
	Transport http.RoundTripper
	// ListTimeout bounds a listing over all its requests; 0 means
	// DefaultListTimeout.
	ListTimeout time.Duration
	// CallTimeout bounds one call; 0 means DefaultCallTimeout.
	CallTimeout time.Duration
	// MaxBodyBytes bounds the body of one answer; 0 means DefaultMaxBodyBytes.
	MaxBodyBytes int
}

// Client makes the requests of one source. It is safe for concurrent use.
type Client struct {
	name  string
	cfg   Config
	http  *http.Client
	calls source.Calls
}

// New returns a client for the source of a name.
func New(name string, cfg Config) *Client {
	if cfg.ListTimeout <= 0 {
		cfg.ListTimeout = DefaultListTimeout
	}
	if cfg.CallTimeout <= 0 {
		cfg.CallTimeout = DefaultCallTimeout
	}
	if cfg.MaxBodyBytes <= 0 {
		cfg.MaxBodyBytes = DefaultMaxBodyBytes
	}
	if cfg.Transport == nil {
		cfg.Transport = cfg.Guard.Transport()
	}
	return &Client{name: name, cfg: cfg, http: safehttp.NewClient(cfg.Transport, 0)}
}

// Request is one HTTP request.
type Request struct {
	Method string
	// URL is absolute. It may hold a secret and is never echoed.
	URL string
	// Header may hold secrets and is never echoed. A body without a
	// Content-Type is JSON.
	Header http.Header
	// Body is sent as it is; empty for none.
	Body []byte
}

// Reply is the answer to a request, or why there is none.
type Reply struct {
	// Observation has a Code where the answer is not complete.
	source.Observation
	Header http.Header
	// Body is what was read of the answer: all of it if Code is empty.
	Body []byte
	// Err is the transport's error, if no answer came. It may hold addresses
	// and must not be shown.
	Err error
}

// Send makes one request, within Execute or List.
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

// Decode decodes the complete answer as one JSON value, and reports whether
// the value fits.
func (r Reply) Decode(into any) bool {
	return r.Code == "" && json.Unmarshal(r.Body, into) == nil
}

// Observe returns what the reply says by itself: its status, or why there is
// none. A complete answer of 2xx counts as answered. A body that is JSON is the
// result, whatever the status.
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

// ListError returns why the reply is no page of a listing.
func (r Reply) ListError() error { return r.Observe().ListError() }

// Succeeded reports whether the status is 2xx.
func (r Reply) Succeeded() bool { return r.Status >= 200 && r.Status <= 299 }

// Execute makes one attempt at a call within the client's time limit, and
// returns how it ended. Where the caller has given up, or the source is closed,
// no attempt is made.
func (c *Client) Execute(ctx context.Context, call source.Call, attempt func(context.Context) source.Observation) source.Outcome {
	ctx, end, ok := c.calls.Start(ctx, c.cfg.CallTimeout)
	if !ok {
		return source.Observation{Code: source.CodeClosed}.Outcome(c.name, call.Effect)
	}
	defer end()
	if ctx.Err() != nil {
		return source.Observation{Code: source.EndedCode(ctx)}.Outcome(c.name, call.Effect)
	}
	return attempt(ctx).Outcome(c.name, call.Effect)
}

// List runs a listing within the client's time limit. Its error is fault.Busy,
// and shows only the text of a *source.ListError.
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

// Close ends running calls and waits for them. It may be called more than once.
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
