package mcpserver

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// tokenServer serves the holder of one token: an MCP server of its own, with
// the tools that the holder may see.
type tokenServer struct {
	*Server
	by      identity.Principal
	server  *sdk.Server
	listing listing

	// The Server's mutex guards these. users counts the open requests, opened
	// the sessions since the minute began; used is when the last request ended.
	users, opened int
	minute, used  time.Time
}

// instructions are what a client may tell its model about this server.
const instructions = `Every tool call here is an action that policy, and sometimes a person, has to agree to.
A result whose structuredContent has status "pending" is no failure: the action waits, and will be done when it may. Do not make the same call again; call countersign_wait with its action_id, or go on with something else.
If a result says that nobody knows whether an action happened, do not repeat it; tell the user.
countersign_status shows how an action stands, countersign_undo takes one back that has not begun.
countersign_search finds tools by what they do. If a result has status "limited", try again when it says, not before.`

// newTokenServer returns a token server without sessions.
func newTokenServer(srv *Server, by identity.Principal) *tokenServer {
	ts := &tokenServer{Server: srv, by: by}
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

// catalogTool is the tool of the SDK's server that stands for the whole
// catalog. It is not listed, and cannot be called by this name.
const catalogTool = "countersign_catalog"

type calledKey struct{}

// middleware adds the catalog, which the SDK's server does not know, to lists
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
		return next(ctx, method, req)
	}
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
func (ts *tokenServer) readAction(ctx context.Context, id envelope.ActionID) (v outbox.View, err error) {
	err = ts.inTx(ctx, ts.by.Tenant, func(ctx context.Context, tx pgx.Tx) error {
		v, err = access.View(ctx, tx, ts.by, id)
		return err
	})
	return v, err
}

// admitSession reports whether the holder may open another session, and counts
// it. The caller holds the Server's mutex.
func (ts *tokenServer) admitSession(now time.Time) bool {
	if now.Sub(ts.minute) >= time.Minute {
		ts.minute, ts.opened = now, 0
	}
	if len(ts.sessions()) >= ts.cfg.Sessions || ts.opened >= ts.cfg.Sessions {
		return false
	}
	ts.opened++
	return true
}

// idle reports whether nobody has a session or an open request here, and nobody
// had one in the last minute. The caller holds the Server's mutex.
func (ts *tokenServer) idle(now time.Time) bool {
	return ts.users == 0 && now.Sub(ts.used) >= time.Minute && len(slices.Collect(ts.server.Sessions())) == 0
}

// sessions returns the ids of the open sessions.
func (ts *tokenServer) sessions() (ids []string) {
	for s := range ts.server.Sessions() {
		if s.ID() != "" {
			ids = append(ids, s.ID())
		}
	}
	return ids
}

// closeSessions closes every session, and waits for their calls.
func (ts *tokenServer) closeSessions() {
	for s := range ts.server.Sessions() {
		_ = s.Close() // the connection is being closed
	}
}

// operationOf returns the operation of the REST API that does what a tool does.
// Whoever may use the operation may call the tool, and nobody else.
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
	}
	return "submitAction"
}
