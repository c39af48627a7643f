package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// maxBody bounds a request in bytes: an envelope, and the frame around it.
	maxBody = envelope.MaxBytes + 64<<10
	// readFor bounds how long a body may take to come, writeFor how long a
	// piece of an answer may take to go.
	readFor  = 30 * time.Second
	writeFor = 15 * time.Second
)

// The headers that this package looks at or sets.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// methodHeader names the method, in the versions without sessions.
	methodHeader = "Mcp-Method"
	// openHeader carries the name of an open request to its handler, which
	// gets the headers and not the request. What a client puts there is
	// overwritten.
	openHeader = "Countersign-Open-Request"
)

// refusal is a request that is turned away at the door.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// open is an HTTP request that is being served.
type open struct {
	ctx    context.Context
	cancel context.CancelFunc
	token  string
	by     identity.Principal
	// answers says that it ends with an answer, as streams do not; done is
	// closed when it has ended.
	answers bool
	done    chan struct{}
}

// listenMethod is the method whose answer is a stream without an end.
const listenMethod = "subscriptions/listen"

type deskKey struct{}

// serverOf is the MCP server for a request that was let in.
func serverOf(r *http.Request) *sdk.Server {
	if d, ok := r.Context().Value(deskKey{}).(*desk); ok {
		return d.server
	}
	return nil
}

// ServeHTTP lets a request in and serves it.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, by, err := f.admit(r)
	if err == nil {
		f.cfg.Caller(r.Context(), by)
		err = readBody(w, r)
	}
	if err != nil {
		f.turnAway(w, r, err)
		return
	}
	r, leave, err := f.enter(r, token, by)
	if err != nil {
		f.turnAway(w, r, err)
		return
	}
	defer leave()
	f.handler(r, by).ServeHTTP(pacedWriter{w}, r)
}

// handler picks the handler for the version of the protocol that a request
// speaks, and tells it who asks: a session is then for that token alone.
func (f *Front) handler(r *http.Request, by identity.Principal) http.Handler {
	next := f.sessions
	if r.Header.Get(sessionHeader) == "" && r.Header.Get(versionHeader) >= firstStateless {
		next = f.single
	}
	known := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: by.Token.String()}, nil
	}
	return auth.RequireBearerToken(known, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}

// opensSession says that a request may open a session.
func opensSession(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && r.Header.Get(versionHeader) < firstStateless
}

// admit finds out who sent a request, and whether it may come from there.
func (f *Front) admit(r *http.Request) (token string, by identity.Principal, err error) {
	if !ownOrigin(r) {
		return "", by, &refusal{http.StatusForbidden, "a page of another origin may not do this"}
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", by, &refusal{http.StatusUnauthorized, "show a token: Authorization: Bearer cs_…"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), workFor)
	defer cancel()
	by, err = f.auth.Authenticate(ctx, token, time.Now())
	if errors.Is(err, identity.ErrToken) {
		err = &refusal{http.StatusUnauthorized, err.Error()}
	}
	return token, by, err
}

// ownOrigin says that a request is not made by a web page, or by one of this
// machine to this machine. A page whose name was bound to this machine's
// address still has the origin that it came from. What is no browser sends
// neither header, whatever proxy stands between.
func ownOrigin(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if origin == "" {
		return site == "" || site == "none" || loopback(r.Host)
	}
	from, err := url.Parse(origin)
	return err == nil && loopback(from.Host) && loopback(r.Host)
}

// loopback says that a host, with or without a port, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// readBody reads the whole body, in time and within bounds, so that a client
// that leaves is noticed from then on.
func readBody(w http.ResponseWriter, r *http.Request) error {
	// Cleared afterwards: a connection whose deadline passes is taken for one
	// that went away. What cannot have a deadline is a test's recorder.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readFor))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &refusal{http.StatusRequestEntityTooLarge, "the body is larger than an envelope may be"}
	}
	if err != nil {
		return &refusal{http.StatusBadRequest, "the body could not be read"}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// turnedAway says that an error is about the token, and none of the way to the
// answer.
func turnedAway(err error) bool {
	return errors.Is(err, identity.ErrToken) || errors.Is(err, fault.Denied)
}

// turnAway answers a request that is not let in. What nobody can act on goes
// to the log alone.
func (f *Front) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	why, ok := errors.AsType[*refusal](err)
	shown, known := errors.AsType[*fault.Error](err)
	switch {
	case ok:
	case known && shown.Kind == fault.Denied:
		why = &refusal{http.StatusForbidden, shown.Text}
	case known && shown.Kind == fault.Busy:
		why = &refusal{http.StatusServiceUnavailable, shown.Text}
	default:
		f.cfg.Log.ErrorContext(r.Context(), "mcp request failed", slog.Any("error", err))
		why = &refusal{http.StatusInternalServerError, "internal error"}
	}
	switch why.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign"`)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "60")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, why.text, why.status)
}

// enter takes note of a request, and of the desk where it is served, until
// leave is called.
func (f *Front) enter(r *http.Request, token string, by identity.Principal) (_ *http.Request, leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return r, nil, &refusal{http.StatusServiceUnavailable, "the server is closing; try again"}
	}
	d := f.desks[by.Token]
	if d != nil && !d.by.Equal(by) {
		f.watching.Go(d.leave)
		d = nil
	}
	if d == nil {
		d = newDesk(f, by)
		f.desks[by.Token] = d
	}
	if session := r.Header.Get(sessionHeader); session != "" && !d.owns(session) {
		return r, nil, &refusal{http.StatusNotFound, "no such session; open another one"}
	}
	if opensSession(r) && !d.mayOpen(time.Now()) {
		return r, nil, &refusal{http.StatusTooManyRequests, "this token has too many sessions open, or opened too many; close some, or try again"}
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), deskKey{}, d))
	o := &open{
		ctx: ctx, cancel: cancel, token: token, by: by, done: make(chan struct{}),
		answers: r.Method == http.MethodPost && r.Header.Get(methodHeader) != listenMethod,
	}
	name := uuid.NewString()
	r = r.WithContext(ctx)
	r.Header.Set(openHeader, name)
	f.calls[name] = o
	d.users++
	return r, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.calls, name)
		d.users--
		d.used = time.Now()
		cancel()
		close(o.done)
	}, nil
}

// requestOf is the context of the HTTP request that a call came with; nil if
// the client has left.
func (f *Front) requestOf(extra *sdk.RequestExtra) context.Context {
	if extra == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.calls[extra.Header.Get(openHeader)]; o != nil {
		return o.ctx
	}
	return nil
}

// pacedWriter gives every piece of an answer a time of its own to go out: a
// client that does not read is cut off.
type pacedWriter struct{ http.ResponseWriter }

// Unwrap lets http.ResponseController find the connection.
func (w pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write sends a piece.
func (w pacedWriter) Write(b []byte) (int, error) {
	w.hurry()
	return w.ResponseWriter.Write(b)
}

// FlushError sends what was held back.
func (w pacedWriter) FlushError() error {
	w.hurry()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// hurry sets the deadline. What cannot have one is a test's recorder.
func (w pacedWriter) hurry() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeFor))
}
