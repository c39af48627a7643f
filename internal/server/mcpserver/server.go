// Package mcpserver is the MCP server: a client of the Model Context Protocol
// gets the tenant's catalog as tools, and each of its calls is proposed to
// intake as an envelope. The package owns the names under which tools are
// offered, the sessions, the time that a call is kept open, and the result of a
// call for each end of an action. It does not decide and does not execute, and
// does not promise a tool's output: a result may be that the action is pending.
package mcpserver

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// MetaIdempotencyKey is the key of a call's _meta under which a client may give
// the call an external id of its own: the same id with the same content is the
// same action, however often it is sent. Countersign sends the same key to the
// servers behind it, so that one Countersign behind another acts once.
const MetaIdempotencyKey = "countersign.dev/idempotency-key"

// MetaAction is the key of a result's _meta with the action of the result.
const MetaAction = "countersign.dev/action"

// MetaOutcome is the key of a result's _meta with the value "conflict" if the
// effect existed already. Servers behind this one may send it too.
const MetaOutcome = "countersign.dev/outcome"

// Config configures a Server. Its zero value is useful.
type Config struct {
	// Version is the build's, as clients see it.
	Version string
	// Wait is the time that a call is kept open for its action to end; zero means
	// 45 s, below the minute after which many clients give up. It is at most
	// MaxWait.
	Wait time.Duration
	// Progress is the interval at which a client that asked for progress is
	// notified of an open call; zero means 5 s.
	Progress time.Duration
	// Poll is the interval at which catalogs are compared with the lists that
	// clients have; zero means 2 s.
	Poll time.Duration
	// Page is the number of tools on a page; zero means 100.
	Page int
	// Sessions bounds the open sessions of one token, and TenantSessions those of
	// all tokens of one tenant; zero means 50 and 500. One more ends the session
	// that was idle the longest.
	Sessions, TenantSessions int
	// Idle is the time after which a session without requests is closed; zero
	// means an hour.
	Idle time.Duration
}

// waitSeconds returns Wait in whole seconds.
func (c *Config) waitSeconds() int { return max(1, int(c.Wait.Seconds())) }

// MaxWait bounds the time that a call can be kept open.
const MaxWait = 5 * time.Minute

// firstStateless is the first version of the protocol that has no sessions.
const firstStateless = "2026-07-28"

// Server is the http.Handler of one path. It is safe for concurrent use and
// must be closed.
type Server struct {
	*request.Backend
	cfg Config
	// watch is Broker.Watch.
	watch func(context.Context, envelope.TenantID, envelope.ActionID) (<-chan struct{}, func(), error)
	// sessions serves the versions of the protocol that have sessions,
	// stateless the others, and single their requests with one answer.
	sessions, stateless, single http.Handler

	closing    chan struct{}
	background sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	servers  map[identity.TokenID]*tokenServer
	requests map[string]*openRequest
}

// New returns a Server that calls the same functions as the handlers of the REST API. A
// tool may be called by tokens that may use the equivalent operation.
func New(backend *request.Backend, cfg Config) *Server {
	cfg.Version = cmp.Or(cfg.Version, "unknown")
	cfg.Wait = min(cmp.Or(cfg.Wait, 45*time.Second), MaxWait)
	cfg.Progress = cmp.Or(cfg.Progress, 5*time.Second)
	cfg.Poll = cmp.Or(cfg.Poll, 2*time.Second)
	cfg.Page = cmp.Or(cfg.Page, 100)
	cfg.Sessions, cfg.TenantSessions = cmp.Or(cfg.Sessions, 50), cmp.Or(cfg.TenantSessions, 500)
	cfg.Idle = cmp.Or(cfg.Idle, time.Hour)
	srv := &Server{
		Backend: backend, cfg: cfg, watch: backend.Broker.Watch, closing: make(chan struct{}),
		servers: make(map[identity.TokenID]*tokenServer), requests: make(map[string]*openRequest),
	}
	// authenticate checks the origin of a request, since it distinguishes a
	// browser from a client behind a proxy.
	options := sdk.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxBody, SessionTimeout: cfg.Idle, DisableLocalhostProtection: true, PropagateRequestCancellation: true,
	}
	srv.sessions = sdk.NewStreamableHTTPHandler(serverOf, &options)
	options.Stateless = true
	srv.stateless = sdk.NewStreamableHTTPHandler(serverOf, &options)
	options.JSONResponse = true
	srv.single = sdk.NewStreamableHTTPHandler(serverOf, &options)
	srv.background.Go(srv.run)
	return srv
}

// Close ends every wait, which is answered with the current state, and every
// session, and returns when every goroutine of the Server has ended. Call it
// before the HTTP server drains, which waits for them. It may be called twice.
func (srv *Server) Close() {
	srv.mu.Lock()
	if !srv.closed {
		srv.closed = true
		close(srv.closing)
	}
	srv.mu.Unlock()
	srv.background.Wait()
	srv.drain()
	for _, ts := range srv.tokenServers() {
		ts.closeSessions() // no call is waiting now
	}
}

// drainTimeout bounds the time to send answers when the Server closes.
const drainTimeout = 5 * time.Second

// drain waits until open requests have been answered, because closing their
// sessions loses the answers.
func (srv *Server) drain() {
	srv.mu.Lock()
	calls := slices.Collect(maps.Values(srv.requests))
	srv.mu.Unlock()
	over := time.NewTimer(drainTimeout)
	defer over.Stop()
	for _, o := range calls {
		if !o.answers {
			continue
		}
		select {
		case <-o.done:
		case <-over.C:
			return
		}
	}
}

// tokenServers returns the current token servers.
func (srv *Server) tokenServers() []*tokenServer {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return slices.Collect(maps.Values(srv.servers))
}

// inTx runs fn in a transaction of a tenant.
func (srv *Server) inTx(ctx context.Context, tenant envelope.TenantID, fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, request.WorkTimeout)
	defer cancel()
	return postgres.InTx(ctx, srv.DB, postgres.API(tenant), func(tx pgx.Tx) error { return fn(ctx, tx) })
}

// tokenServer serves the holder of one token: an MCP server of its own, with
// the tools that the holder may see.
type tokenServer struct {
	*Server
	by      identity.Principal
	server  *sdk.Server
	listing listing

	// The Server's mutex guards these. users counts the open requests, opening
	// those that open a session; used is the end of the last request.
	users, opening int
	used           time.Time
	sessions       map[string]*session
}

// instructions are the text about this server for a client's model.
const instructions = `Every tool call here is an action that policy, and sometimes a person, has to agree to.
A result whose structuredContent has status "pending" is not a failure: the action waits, and will be done when it may. Do not make the same call again; call countersign_wait with its action_id, or go on with something else.
If a result says that nobody knows whether an action happened, do not repeat it; tell the user.
countersign_status shows how an action stands, countersign_undo takes one back that has not begun, countersign_revert the effect of one that was done.
countersign_search finds tools by what they do. If a result has status "limited", try again when it says, not before.`

// newTokenServer returns a token server without sessions.
func newTokenServer(srv *Server, by identity.Principal) *tokenServer {
	ts := &tokenServer{Server: srv, by: by, sessions: make(map[string]*session)}
	ts.server = sdk.NewServer(&sdk.Implementation{Name: "countersign", Title: "Countersign", Version: srv.cfg.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	ts.addTool(&sdk.Tool{Name: catalogTool, InputSchema: objectSchema(nil)}, ts.call)
	ts.addFollowUps()
	ts.addSearch()
	ts.server.AddReceivingMiddleware(ts.middleware)
	return ts
}

// catalogTool is the tool of the SDK's server that represents the whole
// catalog. It is not listed, and cannot be called by this name.
const catalogTool = "countersign_catalog"

type calledKey struct{}

// middleware adds the catalog, which the SDK's server does not have, to lists
// and calls.
func (ts *tokenServer) middleware(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch r := req.(type) {
		case *sdk.ListToolsRequest:
			if err := ts.Routes.Admit(ts.by, "listTools"); err != nil {
				return nil, protocolError(jsonrpc.CodeInvalidRequest, err.Error())
			}
			return ts.list(ctx, r, func(ctx context.Context, all *sdk.ListToolsRequest) (sdk.Result, error) {
				return next(ctx, method, all)
			})
		case *sdk.CallToolRequest:
			ctx, done := ts.withRequest(ctx, r.Extra)
			defer done()
			if err := ts.Routes.Admit(ts.by, operationOf(r.Params.Name)); err != nil {
				return ts.failed(ctx, err)
			}
			if isBuiltin(r.Params.Name) {
				return next(ctx, method, r)
			}
			of, params := *r, *r.Params
			of.Params, params.Name = &params, catalogTool
			return next(context.WithValue(ctx, calledKey{}, r.Params.Name), method, &of)
		}
		return ts.instruct(ctx, next, method, req)
	}
}

// instruct adds to the instructions for the model which tools are hidden from it,
// where a method answers with instructions.
func (ts *tokenServer) instruct(ctx context.Context, next sdk.MethodHandler, method string, req sdk.Request) (sdk.Result, error) {
	answer, err := next(ctx, method, req)
	if err != nil {
		return answer, err
	}
	var text *string
	switch a := answer.(type) {
	case *sdk.InitializeResult:
		text = &a.Instructions
	case *sdk.DiscoverResult:
		text, a.CacheScope = &a.Instructions, "private"
	default:
		return answer, nil
	}
	more, err := ts.hiddenText(ctx)
	if err != nil {
		return nil, ts.internal(ctx, "mcp hidden tools not counted", err)
	}
	*text += more
	return answer, nil
}

// withRequest returns a context that ends when the HTTP request of a call does,
// and that continues the request's trace.
func (ts *tokenServer) withRequest(ctx context.Context, extra *sdk.RequestExtra) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	request := ts.requestContext(extra)
	if request == nil {
		cancel()
		return ctx, cancel
	}
	stop := context.AfterFunc(request, cancel)
	return trace.ContextWithSpan(ctx, trace.SpanFromContext(request)), func() {
		stop()
		cancel()
	}
}

// readAction reads an action that the holder may see.
func (ts *tokenServer) readAction(ctx context.Context, id envelope.ActionID) (outbox.View, error) {
	ctx, cancel := context.WithTimeout(ctx, request.WorkTimeout)
	defer cancel()
	return access.Read(ctx, ts.Actions, ts.by, id)
}

// idle reports whether there has been no session and no open request for a
// minute. The caller holds the Server's mutex.
func (ts *tokenServer) idle(now time.Time) bool {
	return ts.users == 0 && now.Sub(ts.used) >= time.Minute && len(slices.Collect(ts.server.Sessions())) == 0
}

// closeSessions closes every session, and waits for their calls.
func (ts *tokenServer) closeSessions() {
	for s := range ts.server.Sessions() {
		_ = s.Close() // the connection is being closed
	}
}

// operationOf returns the operation of the REST API that corresponds to a tool. The
// tool is for those who may use the operation.
func operationOf(tool string) string {
	switch tool {
	case toolSearch:
		return "listTools"
	case toolWait:
		return "waitForAction"
	case toolStatus:
		return "getAction"
	case toolUndo:
		return "undoAction"
	case toolRevert:
		return "revertAction"
	}
	return "submitAction"
}
