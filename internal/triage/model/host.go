package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

const (
	// connectTimeout bounds a connection, which is to the same machine or network.
	connectTimeout = 2 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 2 << 20
)

// host is a server: its connections, and the slots that all its models share.
type host struct {
	name   string
	base   *url.URL
	client *http.Client
	slots  *semaphore.Weighted
}

func newHost(name string, c ServerConfig) (*host, error) {
	base, transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	// A compressed answer could be many times what the limit counts.
	transport.DisableCompression = true
	return &host{
		name: name, base: base, client: safehttp.NewClient(transport, 0),
		slots: semaphore.NewWeighted(int64(max(c.Slots, 1))),
	}, nil
}

// transport returns a server's base address and a transport that connects to
// nothing but loopback, the named networks, or the named Unix socket.
func (c ServerConfig) transport() (*url.URL, *http.Transport, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, nil, errors.New("url must be http://, https:// or unix:// and an address")
	}
	if u.Scheme == "unix" {
		return &url.URL{Scheme: "http", Host: "localhost", Path: "/"}, safehttp.UnixTransport(u.Path, connectTimeout), nil
	}
	base := *u
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1") + "/"
	guard := safehttp.Guard{Networks: slices.Concat(safehttp.Loopback(), c.Networks), NetworksOnly: true, ConnectTimeout: connectTimeout}
	return &base, guard.Transport(), guard.Check()
}

// get reads a JSON document. Its error is an *Error.
func (h *host) get(ctx context.Context, path string, into any) error {
	status, body, err := h.do(ctx, http.MethodGet, path, nil)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return failStatus(status)
	case json.Unmarshal(body, into) != nil:
		return fail(Invalid, "the server answered with something else than JSON")
	}
	return nil
}

// do makes one request. Its error is an *Error.
func (h *host) do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	relative, err := url.Parse(path)
	if err != nil {
		return 0, nil, fail(Unavailable, "the address cannot be used")
	}
	r, err := http.NewRequestWithContext(ctx, method, h.base.ResolveReference(relative).String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, fail(Unavailable, "the address cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := h.client.Do(r)
	if err != nil {
		return 0, nil, connectionError(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return 0, nil, refuse(RefusedRedirect, "the server answered with a redirect, and none is followed")
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, connectionError(err)
	}
	if len(text) > maxAnswer {
		return 0, nil, fail(Invalid, "the answer is longer than 2 MiB")
	}
	return resp.StatusCode, text, nil
}

func connectionError(err error) *Error {
	e := fail(Unavailable, "the server cannot be reached")
	switch {
	case errors.Is(err, safehttp.ErrForbidden):
		e = refuse(RefusedAddress, "the address is neither of this machine nor in the server's networks")
	case errors.Is(err, context.DeadlineExceeded):
		e.Why = "the server did not answer in time"
	}
	e.cause = err
	return e
}

// failStatus returns the error of an answer that is not 200 and of which nothing
// else is known.
func failStatus(status int) *Error {
	switch {
	case status == http.StatusNotFound:
		return fail(WrongModel, "the server does not have the model (404)")
	case status == http.StatusRequestEntityTooLarge:
		return fail(TooLong, "the question is too long for the server (413)")
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		return fail(Unavailable, "the server is loading, full or failing ("+http.StatusText(status)+")")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fail(Unavailable, "the server wants a key ("+http.StatusText(status)+")")
	}
	return fail(Invalid, "the server refused the question ("+http.StatusText(status)+")")
}
