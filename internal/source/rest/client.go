// Package rest owns what adapters that speak plain HTTP to a provider have in
// common: one request at a time whose fate is known as exactly as can be, a
// bound on what is read, an end to running calls when the source closes, and
// words for what happened that hold nothing from the other side.
//
// It refuses to repeat a request and to follow a redirect, which would carry a
// credential to a place that nobody configured.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
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
	// Transport makes the requests; nil means one of the client's own. It
	// should support net/http/httptrace, or every failed call counts as sent.
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
	name string
	cfg  Config
	http http.Client
	own  *http.Transport // nil if the transport is somebody else's

	mu      sync.Mutex
	closed  bool
	running map[*run]struct{}
	work    sync.WaitGroup
}

// run is one List or Execute that Close has to end.
type run struct{ cancel context.CancelCauseFunc }

// errClosed is why what was running when the source closed came to an end.
var errClosed = errors.New("source is closed")

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
	c := &Client{name: name, cfg: cfg, running: make(map[*run]struct{})}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http.Transport = cfg.Transport
	if c.http.Transport == nil {
		c.own = NewTransport()
		c.http.Transport = c.own
	}
	return c
}

// NewTransport returns a transport whose idle connections suit many concurrent
// calls to one host.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   64,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		// Many servers drop a connection after five idle seconds. One that is
		// dropped just as a call is written to it costs an unknown outcome.
		IdleConnTimeout: 4 * time.Second,
	}
}

// Request is one HTTP request.
type Request struct {
	Method string
	// URL is absolute. It may hold a secret and is never echoed.
	URL string
	// Header may hold secrets and is never echoed. Where it says nothing of
	// the content's type, a body is JSON.
	Header http.Header
	// Body is sent as it is; empty for none.
	Body []byte
}

// Reply is what came of a request.
type Reply struct {
	source.Observation
	Header http.Header
	// Body is what was read of the answer: all of it if Code is empty.
	Body []byte
	// Code says why the answer is not whole; empty if it is.
	Code string
	// Err is what the transport said, if no answer came. It may hold addresses
	// and must not be shown.
	Err error
}

// Send makes one request, within a Call or a Listing.
func (c *Client) Send(ctx context.Context, r Request) Reply {
	if ctx.Err() != nil {
		return Reply{Code: Ended(ctx)}
	}
	ctx, watch := source.WatchWrite(ctx)
	var body io.Reader
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return Reply{Observation: source.Observation{Permanent: true}, Code: source.CodeInvalidArgs}
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
		reply.Code = broken(ctx, reply.Written)
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
		reply.Code = broken(ctx, true)
	case len(reply.Body) > c.cfg.MaxBodyBytes:
		reply.Body = reply.Body[:c.cfg.MaxBodyBytes]
		reply.Code = source.CodeOversized
	}
	return reply
}

// Decode reads the whole answer as one JSON value, and reports whether it is
// one that fits.
func (r Reply) Decode(into any) bool {
	return r.Code == "" && json.Unmarshal(r.Body, into) == nil
}

// Finding is what the reply says by itself: its status, or why there is none.
// One of 2xx that is whole counts as answered. A body that is JSON is the
// result, whatever the status.
func (r Reply) Finding() Finding {
	f := Finding{Observation: r.Observation, Code: r.Code}
	if r.Code == "" && json.Valid(r.Body) {
		f.Result = r.Body
	}
	if code := source.StatusCode(r.Status); code != "" {
		f.Code = code
	}
	f.Answered = r.Code == "" && r.Succeeded()
	return f
}

// Succeeded reports whether the status is one of 2xx.
func (r Reply) Succeeded() bool { return r.Status >= 200 && r.Status <= 299 }

// Execute runs one attempt at a call within the client's time limit, and says
// how it ended. An attempt that the caller or the source gave up beforehand is
// not made.
func (c *Client) Execute(ctx context.Context, call source.Call, attempt func(context.Context) Finding) source.Outcome {
	ctx, leave, ok := c.enter(ctx, c.cfg.CallTimeout)
	if !ok {
		return Finding{Code: source.CodeClosed}.conclude(c.name, call.Effect)
	}
	defer leave()
	if ctx.Err() != nil {
		return Finding{Code: Ended(ctx)}.conclude(c.name, call.Effect)
	}
	return attempt(ctx).conclude(c.name, call.Effect)
}

// List runs a listing within the client's time limit. Its error is fault.Busy,
// and shows only the text of a *ListError.
func (c *Client) List(ctx context.Context, list func(context.Context) ([]source.Tool, error)) ([]source.Tool, error) {
	ctx, leave, ok := c.enter(ctx, c.cfg.ListTimeout)
	if !ok {
		return nil, fault.Wrap(errClosed, fault.Busy, "list tools of %s: the source is closed", c.name)
	}
	defer leave()
	tools, err := list(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	if refused, ok := errors.AsType[*ListError](err); ok {
		return nil, fault.Wrap(refused, fault.Busy, "list tools of %s: %s", c.name, refused)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Busy, "list tools of %s", c.name)
	}
	return tools, nil
}

// enter registers something that runs until leave is called, and bounds it in
// time. It reports false when the client is closed.
func (c *Client) enter(ctx context.Context, limit time.Duration) (_ context.Context, leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ctx, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithTimeout(ctx, limit)
	r := &run{cancel: cancel}
	c.running[r] = struct{}{}
	c.work.Add(1)
	return ctx, func() {
		stop()
		cancel(nil)
		c.mu.Lock()
		delete(c.running, r)
		c.mu.Unlock()
		c.work.Done()
	}, true
}

// Close ends what runs and waits for it. It may be called more than once.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	for r := range c.running {
		r.cancel(errClosed)
	}
	c.mu.Unlock()
	c.work.Wait()
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// broken says why a request has no whole answer.
func broken(ctx context.Context, written bool) string {
	switch {
	case ctx.Err() != nil:
		return Ended(ctx)
	case written:
		return source.CodeLost
	}
	return source.CodeUnreachable
}

// Ended is the code for why the context of a Call or a Listing is over.
func Ended(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed):
		return source.CodeClosed
	case errors.Is(cause, context.DeadlineExceeded):
		return source.CodeTimeout
	}
	return source.CodeCancelled
}
