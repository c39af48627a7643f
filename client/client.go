// Package client speaks to a running Countersign over its REST API: it
// proposes actions, waits for them, decides about them, follows events, and
// sets everything up that the API sets up. It repeats requests that are safe to
// repeat, and returns the server's answers as Go values of package wire. It
// never shows its token.
//
// An agent proposes an action and waits for its outcome:
//
//	c, err := client.New("http://127.0.0.1:8080", os.Getenv("COUNTERSIGN_TOKEN"), client.Config{})
//	sent, err := c.Propose(ctx, envelope.Proposal{
//		Type:       envelope.TypeExec,
//		ExternalID: "welcome-ana", // the same name with the same content is the same action
//		Tool:       envelope.Tool{Source: "mail", Name: "send_email"},
//		Args:       json.RawMessage(`{"to": "ana@example.org"}`),
//	}, 0)
//	done, ended, err := c.Wait(ctx, sent.Action.Envelope.ActionID, time.Minute)
//	fmt.Println(ended, done.Phase, string(done.Envelope.Result.Output))
//
// An operator decides with [Client.Inbox], [Client.Approve] and [Client.Deny].
// [Client.Follow] passes events on and resumes a lost stream. An error is a
// [*Problem], whose kind errors.Is matches, or an [*UnreachableError].
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// maxBody bounds an answer in bytes.
	maxBody = 64 << 20
	// answerFor bounds a request, not counting the wait that it asks for.
	answerFor = 60 * time.Second
	// maxPause is the longest pause before a request is repeated. After a longer
	// Retry-After the request is not repeated.
	maxPause = 10 * time.Second
)

// Config configures a Client. Its zero value is useful.
type Config struct {
	// HTTP makes the requests; nil means one of the client's own, without a
	// time-out, since every request has a deadline.
	HTTP *http.Client
	// Token, if set, returns the token of every request, for tokens that are
	// renewed. The token passed to New is then not used.
	Token func(ctx context.Context) (string, error)
	// Agent is sent as User-Agent.
	Agent string
	// Retries bounds the repetitions of a safe request while the server is
	// unavailable, busy or limits the caller; zero means 3, a negative value none.
	Retries int
	// Silence is the time after which a silent stream of events counts as lost;
	// zero means 45 s, three times the server's heartbeat.
	Silence time.Duration
	// Pause is the first wait before a request is repeated or a lost stream is
	// opened again; zero means 200 ms. Further ones grow to 5 s.
	Pause time.Duration
}

// Client is a client of one server with one token. It is safe for concurrent
// use.
type Client struct {
	base  *url.URL
	token string
	cfg   Config
	// creating is set for a client whose PUTs create, and change nothing.
	creating bool
}

// New returns a Client for the server at an http or https address. It makes no
// connection.
func New(address, token string, cfg Config) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil {
		// The parser's own text may quote a password.
		return nil, errors.New("invalid server URL: want a form like http://127.0.0.1:8080, without a user or a password")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token has invalid characters; copy it again, without spaces")
	}
	cfg.HTTP = cmp.Or(cfg.HTTP, &http.Client{CheckRedirect: noRedirect})
	cfg.Agent = cmp.Or(cfg.Agent, "countersign")
	cfg.Retries = cmp.Or(cfg.Retries, 3)
	cfg.Silence = cmp.Or(cfg.Silence, 45*time.Second)
	cfg.Pause = cmp.Or(cfg.Pause, 200*time.Millisecond)
	return &Client{base: base, token: token, cfg: cfg}, nil
}

// Creating returns a Client whose PUTs fail with ErrChanged where the resource
// exists already. A PUT that is repeated after a lost response may fail because
// of itself.
func (c *Client) Creating() *Client {
	creating := *c
	creating.creating = true
	return &creating
}

// noRedirect keeps the token from being sent to another server.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// String names the server, and hides the token.
func (c *Client) String() string { return c.base.Redacted() }

// Ready returns nil if the server can work. It needs no token.
func (c *Client) Ready(ctx context.Context) error {
	return c.tell(ctx, http.MethodGet, "/readyz", nil, nil)
}

// request is one exchange.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	// in is sent as JSON; nil sends no body.
	in any
	// wait is the time that the server is asked to wait.
	wait time.Duration
	// repeatable is set for a POST that has the same effect when repeated. The
	// other methods always have.
	repeatable bool
}

// send makes a request once and returns the response if it is a success; the
// caller closes its body. Any other response is a *Problem.
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
	maps.Copy(r.Header, rq.header)
	if c.creating && rq.method == http.MethodPut {
		r.Header.Set("If-None-Match", "*")
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

// exchange makes a request, again if that is safe and may help, and returns
// the body of the answer.
func (c *Client) exchange(ctx context.Context, rq request) (*http.Response, []byte, error) {
	pauses := c.pauses()
	for tries := 0; ; tries++ {
		answer, text, err := c.once(ctx, rq)
		repeatable := rq.repeatable || rq.method != http.MethodPost
		if err == nil || !repeatable || tries >= c.cfg.Retries || ctx.Err() != nil {
			return answer, text, err
		}
		again, ok := retryAfter(err)
		if again = max(again, pauses.NextBackOff()); !ok || again > maxPause {
			return nil, nil, err
		}
		if pause(ctx, again) != nil {
			return nil, nil, err
		}
	}
}

func (c *Client) once(ctx context.Context, rq request) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerFor+rq.wait)
	defer cancel()
	answer, err := c.send(ctx, rq)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err != nil {
		return nil, nil, &UnreachableError{URL: c.String(), Cause: err}
	}
	return answer, text, nil
}

// retryAfter returns the least pause before a request is repeated, and whether
// a repetition may succeed.
func retryAfter(err error) (time.Duration, bool) {
	if _, away := errors.AsType[*UnreachableError](err); away {
		return 0, true
	}
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return 0, false
	}
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return p.RetryAfter, true
	}
	return 0, false
}

// pauses are the growing waits before something is tried again.
func (c *Client) pauses() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.cfg.Pause), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
}

// pause waits. The error is that of a ctx that has ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// do makes a request and reads the answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, rq request, out any) (*http.Response, error) {
	answer, text, err := c.exchange(ctx, rq)
	if err != nil {
		return nil, err
	}
	if out == nil {
		return answer, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("read the answer of %s: unexpected content for this version; is that the address of a Countersign API?", c)
	}
	return answer, nil
}

// tell makes a request whose response has no content.
func (c *Client) tell(ctx context.Context, method, path string, query url.Values, in any) error {
	_, err := c.do(ctx, request{method: method, path: path, query: query, in: in}, nil)
	return err
}

// read gets the resource at a path.
func read[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var out T
	_, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query}, &out)
	return out, err
}

// post sends a body to a path and returns the answer.
func post[T any](ctx context.Context, c *Client, path string, in any) (T, error) {
	var out T
	_, err := c.do(ctx, request{method: http.MethodPost, path: path, in: in}, &out)
	return out, err
}

// ifMatch is the header for the ETag of the version that a change is based on;
// nil without one.
func ifMatch(tag string) http.Header {
	if tag == "" {
		return nil
	}
	return http.Header{"If-Match": {`"` + tag + `"`}}
}

// waiting asks the server to respond at the end of the action, or after d.
func (rq request) waiting(parameter string, d time.Duration) request {
	if d > 0 {
		rq.query, rq.wait = url.Values{parameter: {fmt.Sprintf("%dms", d.Milliseconds())}}, d
	}
	return rq
}

// given returns a query of names and values, without empty values.
func given(pairs ...string) url.Values {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}

// number writes a number of a query; zero is empty.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// flag writes a boolean of a query; false is empty.
func flag(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// moment writes a time of a query; zero is empty.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
