package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/server/broker"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// maxBody bounds a request in bytes: an envelope, and the frame around it.
	maxBody = envelope.MaxBytes + 64<<10

	// The headers that this package reads or sets.

	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// methodHeader is the method, in the protocol versions without sessions.
	methodHeader = "Mcp-Method"
	// openHeader carries the id of an open request to its handler, which
	// receives the headers and not the request. A client's value is
	// overwritten.
	openHeader = "Countersign-Open-Request"
)

// openRequest is an HTTP request that is being served.
type openRequest struct {
	ctx    context.Context
	cancel context.CancelFunc
	token  string
	by     identity.Principal
	// answers reports whether the request ends with an answer, unlike a stream. done
	// is closed when the request has ended.
	answers bool
	done    chan struct{}
}

// listenMethod is the method whose answer is an endless stream.
const listenMethod = "subscriptions/listen"

type tokenServerKey struct{}

// serverOf returns the MCP server for an admitted request.
func serverOf(r *http.Request) *sdk.Server {
	if ts, ok := r.Context().Value(tokenServerKey{}).(*tokenServer); ok {
		return ts.server
	}
	return nil
}

// ServeHTTP authenticates a request and serves it.
func (srv *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if srv.allowPage(w, r) {
		return
	}
	token, by, err := srv.authenticate(r)
	var body []byte
	if err == nil {
		err = request.SetCaller(r.Context(), by)
	}
	if err == nil {
		body, err = request.ReadAll(w, r, maxBody)
	}
	if answers(r) {
		ctx, cancel := context.WithTimeout(r.Context(), request.WorkTimeout+MaxWait)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if err == nil && len(body) > 0 {
		r = r.WithContext(slot.For(r.Context(), by.Tenant.String()))
		err = slot.Reading(r.Context(), len(body), func() error { return checkMessage(body) })
	}
	if err != nil {
		srv.challenge(w, r, err)
		request.WriteProblem(srv.Log, w, r, err)
		return
	}
	// The whole body is read, so that net/http notices when the client leaves.
	r.Body = io.NopCloser(bytes.NewReader(body))
	r, done, err := srv.track(w.Header(), r, token, by)
	if err != nil {
		request.WriteProblem(srv.Log, w, r, err)
		return
	}
	defer done()
	call := parseCall(r, body)
	if ts, ok := r.Context().Value(tokenServerKey{}).(*tokenServer); ok && call != nil && !ts.checkParams(w, r, call) {
		return
	}
	srv.handler(r, by, call).ServeHTTP(w, r)
}

// challenge adds to an answer 401 where a program finds the authorization server.
func (srv *Server) challenge(w http.ResponseWriter, r *http.Request, err error) {
	if srv.OAuth != nil && (errors.Is(err, request.ErrNoToken) || errors.Is(err, identity.ErrToken)) {
		w.Header().Set("WWW-Authenticate", srv.OAuth.Challenge(r.Header.Get("Authorization") != ""))
	}
}

// answers reports whether a request ends with an answer, unlike a stream.
func answers(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(methodHeader) != listenMethod
}

// checkMessage checks a message like every other body. Errors within the
// arguments of a call are left to the call, whose answer shows them to the
// model: envelope.Parse and argumentsOf check the arguments before anything
// else reads them.
func checkMessage(body []byte) error {
	err := check.JSON(body)
	invalid, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	for _, f := range invalid.Fields {
		if !strings.HasPrefix(f.Pointer, "/params/arguments/") {
			return err
		}
	}
	return nil
}

// handler returns the handler for the protocol version of a request, and sets
// the token as the owner of the session, so that no other token can use it. A call
// without progress has one answer and needs no stream.
func (srv *Server) handler(r *http.Request, by identity.Principal, call *message) http.Handler {
	next := srv.sessions
	switch {
	case call != nil && !call.asksProgress():
		next = srv.single
	case r.Header.Get(sessionHeader) == "" && r.Header.Get(versionHeader) >= firstStateless:
		next = srv.stateless
	}
	known := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: by.Token.String()}, nil
	}
	return auth.RequireBearerToken(known, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}

// authenticate checks the origin of a request and returns who sent it.
func (srv *Server) authenticate(r *http.Request) (token string, by identity.Principal, err error) {
	if !allowedOrigin(r) {
		return "", by, fault.New(fault.Denied, "requests from pages of other origins are not allowed")
	}
	return srv.AuthenticateToken(r)
}

// allowPage lets a page of this machine, such as the MCP Inspector, read answers. It
// reports whether the request was a question of the browser about that, and is answered.
func (srv *Server) allowPage(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" || !allowedOrigin(r) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id")
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowedOrigin reports whether a request comes from no web page, or from a
// page of this machine to this machine. A page whose host name was rebound to
// this machine's address still has the origin that it was loaded from. Clients
// other than browsers send neither header, with or without a proxy.
func allowedOrigin(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if origin == "" {
		return site == "" || site == "none" || loopback(r.Host)
	}
	from, err := url.Parse(origin)
	return err == nil && loopback(from.Host) && loopback(r.Host)
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return safehttp.Local(strings.Trim(host, "[]"))
}

// track stores a request, and the token server that serves it, until done is
// called.
func (srv *Server) track(answer http.Header, r *http.Request, token string, by identity.Principal) (_ *http.Request, done func(), err error) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.closed {
		return r, nil, broker.ErrClosed
	}
	ts := srv.servers[by.Token]
	if ts != nil && !ts.by.Equal(by) {
		srv.background.Go(ts.closeSessions)
		ts = nil
	}
	if ts == nil {
		ts = newTokenServer(srv, by)
		srv.servers[by.Token] = ts
	}
	answers, streamClosed := answers(r), func() {}
	if !answers && r.Method != http.MethodDelete {
		if streamClosed, err = srv.Streams.Open(by); err != nil {
			return r, nil, err
		}
	}
	release, err := ts.admit(r, answer, answers)
	if err != nil {
		streamClosed()
		return r, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), tokenServerKey{}, ts))
	o := &openRequest{
		ctx: ctx, cancel: cancel, token: token, by: by, done: make(chan struct{}),
		answers: answers,
	}
	name := uuid.NewString()
	r = r.WithContext(ctx)
	r.Header.Set(openHeader, name)
	srv.requests[name] = o
	ts.users++
	return r, func() {
		srv.mu.Lock()
		defer srv.mu.Unlock()
		delete(srv.requests, name)
		ts.users--
		ts.used = time.Now()
		release()
		streamClosed()
		cancel()
		close(o.done)
	}, nil
}

// requestContext returns the context of the HTTP request that a call came with;
// nil if the client has left.
func (srv *Server) requestContext(extra *sdk.RequestExtra) context.Context {
	if extra == nil {
		return nil
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if o := srv.requests[extra.Header.Get(openHeader)]; o != nil {
		return o.ctx
	}
	return nil
}
