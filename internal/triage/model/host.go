package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

const (
	// connectTimeout bounds connecting, which is within the machine or the
	// network.
	connectTimeout = 2 * time.Second
	// maxAnswer limits the bytes that are read of an answer.
	maxAnswer = 2 << 20
	// openFor is how long a breaker rejects questions before it lets one
	// through as a trial, and failures the number of consecutive failures that
	// open it.
	openFor  = 15 * time.Second
	failures = 3
)

// errSlow is the cause of a call that took too long.
var errSlow = errors.New("the server did not answer in time")

// host is a server: its connections and the state that its models share.
type host struct {
	name    string
	url     string
	base    *url.URL
	client  *http.Client
	breaker *gobreaker.CircuitBreaker[struct{}]
	// fixed reports whether the configuration sets the number of slots.
	fixed bool
	slots atomic.Pointer[slots]
	// inFlight counts the questions that hold a slot.
	inFlight atomic.Int32
	limit    limits
}

// slots limits the concurrent questions to a server.
type slots struct {
	*semaphore.Weighted
	count int
}

func newHost(name string, c ServerConfig, l limits) (*host, error) {
	base, transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	// A compressed answer could be many times larger than the limit.
	transport.DisableCompression = true
	h := &host{name: name, url: c.URL, base: base, client: safehttp.NewClient(transport, 0), fixed: c.Slots > 0, limit: l}
	h.slots.Store(&slots{semaphore.NewWeighted(int64(max(c.Slots, 1))), max(c.Slots, 1)})
	h.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  1,
		Timeout:      l.openFor,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsSuccessful: func(err error) bool { e := asError(err); return e == nil || e.Kind != Unavailable },
		IsExcluded:   func(err error) bool { e := asError(err); return e != nil && e.abandoned },
	})
	return h, nil
}

// transport returns a server's base URL and a transport that only connects to
// loopback, the allowed networks, or the given Unix socket.
func (c ServerConfig) transport() (*url.URL, *http.Transport, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, nil, errors.New("url cannot be read")
	}
	switch {
	case u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return &url.URL{Scheme: "http", Host: "localhost", Path: "/"}, safehttp.UnixTransport(u.Path, connectTimeout), nil
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, nil, errors.New("url must be http:// or https:// and an address, such as http://127.0.0.1:8080, or unix:// and an absolute path")
	}
	base := *u
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1") + "/"
	guard := safehttp.Guard{
		Networks: slices.Concat(safehttp.Loopback(), c.Networks), NetworksOnly: true, ConnectTimeout: connectTimeout, Resolver: c.Resolver,
	}
	return &base, guard.Transport(), guard.Check()
}

// setSlots sets the number of slots that the server reports. Questions in
// flight return their slots to the old semaphore.
func (h *host) setSlots(n int) {
	const most = 256 // no server means more
	if n = min(n, most); !h.fixed && n > 0 && n != h.slots.Load().count {
		h.slots.Store(&slots{semaphore.NewWeighted(int64(n)), n})
	}
}

// acquire takes a slot and returns the function that releases it.
func (h *host) acquire(ctx context.Context) (release func(), err error) {
	s := h.slots.Load()
	if err := s.Acquire(ctx, 1); err != nil {
		return nil, &Error{Kind: Unavailable, Why: "no slot of the server was free in time", cause: err, abandoned: true}
	}
	h.inFlight.Add(1)
	return func() {
		h.inFlight.Add(-1)
		s.Release(1)
	}, nil
}

// guarded makes a call unless the server's breaker is open.
func (h *host) guarded(call func() error) error {
	_, err := h.breaker.Execute(func() (struct{}, error) { return struct{}{}, call() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return fail(Unavailable, "the server failed several times in a row; its circuit breaker is open")
	}
	return err
}

// get gets a JSON document. Its error is an *Error.
func (h *host) get(ctx context.Context, path string, into any) error {
	return h.read(ctx, http.MethodGet, path, nil, into)
}

// post posts a JSON document and decodes the answer. Its error is an *Error.
func (h *host) post(ctx context.Context, path string, document, into any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return &Error{Kind: Invalid, Why: "the request cannot be encoded", cause: err}
	}
	return h.read(ctx, http.MethodPost, path, body, into)
}

func (h *host) read(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.limit.identify, errSlow)
	defer cancel()
	status, text, err := h.do(ctx, method, path, body)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return failStatus(status)
	case json.Unmarshal(text, into) != nil:
		return &Error{Kind: Unavailable, Why: "the server's answer is not JSON", answered: true}
	}
	return nil
}

// do makes one request with a JSON document. Its error is an *Error.
func (h *host) do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	return h.send(ctx, method, path, "application/json", body)
}

// send makes one request. Its error is an *Error.
func (h *host) send(ctx context.Context, method, path, contentType string, body []byte) (int, []byte, error) {
	relative, err := url.Parse(path)
	if err != nil {
		return 0, nil, fail(Unavailable, "the address cannot be used")
	}
	r, err := http.NewRequestWithContext(ctx, method, h.base.ResolveReference(relative).String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, fail(Unavailable, "the address cannot be used")
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := h.client.Do(r)
	if err != nil {
		return 0, nil, connectionError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return 0, nil, refuse(RefusedRedirect, "the server answered with a redirect")
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, connectionError(ctx, err)
	}
	if len(text) > maxAnswer {
		return 0, nil, &Error{Kind: Invalid, Why: "the answer is longer than 2 MiB", answered: true}
	}
	return resp.StatusCode, text, nil
}

func connectionError(ctx context.Context, err error) *Error {
	e := fail(Unavailable, "the server cannot be reached")
	switch {
	case errors.Is(err, safehttp.ErrForbidden):
		e = refuse(RefusedAddress, "the address is not on this machine or in the server's networks")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Why = errSlow.Error()
	case ctx.Err() != nil:
		e.Why, e.abandoned = "the question was given up", true
	}
	e.cause = err
	return e
}

// failStatus returns the error of an answer with another status than 200.
func failStatus(status int) *Error {
	e := &Error{Kind: Invalid, Why: "the server rejected the question", answered: true}
	switch {
	case status == http.StatusNotFound:
		e.Kind, e.Why = WrongModel, "the server does not have the model"
	case status == http.StatusRequestEntityTooLarge:
		e.Kind, e.Why = TooLong, "the question is too long for the server"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Kind, e.Why = Unavailable, "the server wants a key"
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		e.Kind, e.Why = Unavailable, "the server is loading, full or failing"
	}
	e.Why = fmt.Sprintf("%s (status %d)", e.Why, status)
	return e
}
