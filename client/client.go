// Package client is the way to a running Countersign over its REST API: what
// the command line and other Go programs of this project speak through. It
// owns the requests, the representations as Go values, and a stream of events
// that resumes by itself. It refuses to decide or to print anything, and it
// never shows its token.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

const (
	// maxBody bounds an answer in bytes.
	maxBody = 64 << 20
	// answerFor bounds a request, not counting the time that it asks the
	// server to wait.
	answerFor = 60 * time.Second
)

// Config says how a Client works. Its zero value is useful.
type Config struct {
	// HTTP makes the requests; nil means one of the client's own, without a
	// time-out, since every request has a deadline.
	HTTP *http.Client
	// Token, if set, is asked for the token of every request, for one that is
	// renewed from time to time. The one that New was given is then not used.
	Token func(ctx context.Context) (string, error)
	// Agent is sent as User-Agent.
	Agent string
	// Silence is how long a stream of events may be silent before it is taken
	// for lost; zero means 45 s, three times the server's heartbeat.
	Silence time.Duration
	// Pause is the first wait before a lost stream is opened again; zero means
	// 200 ms. Further ones grow to 5 s.
	Pause time.Duration
}

// Client speaks to one server with one token. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	cfg   Config
}

// New returns a Client for the server at an http or https address. It dials
// nothing.
func New(address, token string, cfg Config) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil {
		// The parser's own text may quote a password.
		return nil, errors.New("the server's URL must look like http://127.0.0.1:8080, without a user or a password")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token holds characters that no token has; copy it again, without spaces")
	}
	cfg.HTTP = cmp.Or(cfg.HTTP, &http.Client{CheckRedirect: noRedirect})
	cfg.Agent = cmp.Or(cfg.Agent, "countersign")
	cfg.Silence = cmp.Or(cfg.Silence, 45*time.Second)
	cfg.Pause = cmp.Or(cfg.Pause, 200*time.Millisecond)
	return &Client{base: base, token: token, cfg: cfg}, nil
}

// noRedirect keeps the token from going anywhere else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// String names the server, and hides the token.
func (c *Client) String() string { return c.base.Redacted() }

// UnreachableError says that no answer came from the server.
type UnreachableError struct {
	// URL is the server's.
	URL string
	// Cause is what went wrong.
	Cause error
}

// Error names the server and the cause.
func (e *UnreachableError) Error() string {
	cause := e.Cause
	if wrapped, ok := errors.AsType[*url.Error](cause); ok {
		cause = wrapped.Err
	}
	return fmt.Sprintf("no answer from %s: %v", e.URL, cause)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// request is one exchange.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	// in is sent as JSON; nil sends no body.
	in any
	// wait is how long the server is asked to take.
	wait time.Duration
}

// send makes a request and returns the answer, whose body the caller closes,
// if it is a success. Any other is a *Problem.
func (c *Client) send(ctx context.Context, rq request) (*http.Response, error) {
	var body io.Reader
	if rq.in != nil {
		text, err := json.Marshal(rq.in)
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	at := c.base.JoinPath(rq.path)
	at.RawQuery = rq.query.Encode()
	r, err := http.NewRequestWithContext(ctx, rq.method, at.String(), body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	for name, values := range rq.header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", c.cfg.Agent)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	token := c.token
	if c.cfg.Token != nil {
		if token, err = c.cfg.Token(ctx); err != nil {
			return nil, err
		}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.cfg.HTTP.Do(r)
	if err != nil {
		return nil, &UnreachableError{URL: c.String(), Cause: err}
	}
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, readProblem(answer)
}

// do makes a request and reads the answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, rq request, out any) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, answerFor+rq.wait)
	defer cancel()
	answer, err := c.send(ctx, rq)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err != nil {
		return nil, &UnreachableError{URL: c.String(), Cause: err}
	}
	if out == nil {
		return answer, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("read the answer of %s: it is not what this version expects; is that the address of a Countersign API?", c)
	}
	return answer, nil
}

// ifMatch is the header for the ETag of the version that a change is based on;
// nil without one.
func ifMatch(tag string) http.Header {
	if tag == "" {
		return nil
	}
	return http.Header{"If-Match": {`"` + tag + `"`}}
}

// putDocument replaces the document at a path and returns the changes; with dry
// it changes nothing. It is based on the document as it is when it is called,
// so that of two who replace it at the same time one is refused.
func (c *Client) putDocument(ctx context.Context, path string, doc json.RawMessage, dry bool) ([]limits.Change, error) {
	rq := request{method: http.MethodPut, path: path, in: doc}
	if dry {
		rq.query = url.Values{"dry_run": {"true"}}
	} else {
		answer, err := c.do(ctx, request{method: http.MethodGet, path: path}, nil)
		if err != nil {
			return nil, err
		}
		rq.header = ifMatch(strings.Trim(answer.Header.Get("ETag"), `"`))
	}
	var out struct{ Changes []limits.Change }
	_, err := c.do(ctx, rq, &out)
	return out.Changes, err
}

func isJSON(answer *http.Response) bool {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && (media == "application/json" || media == "application/problem+json")
}

// duration writes a time to wait as the API takes it.
func duration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
