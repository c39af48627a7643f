package mcpserver

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// desk is where the holder of one token is served: an MCP server of its own,
// with the tools that the holder may see.
type desk struct {
	*Front
	by     identity.Principal
	server *sdk.Server
	shown  listing

	// The Front's mutex guards these. users counts the requests that are
	// open, opened the sessions since the minute began.
	users, opened int
	minute, used  time.Time
}

// instructions are what a client may tell its model about this server.
const instructions = `Every tool call here is an action that policy, and sometimes a person, has to agree to.
A result whose structuredContent has status "pending" is no failure: the action waits, and will be done when it may. Do not make the same call again; call countersign_wait with its action_id, or go on with something else.
If a result says that nobody knows whether an action happened, do not repeat it; tell the user.
countersign_status shows how an action stands, countersign_undo takes one back that has not begun.
countersign_search finds tools by what they do. If a result has status "limited", try again when it says, not before.`

// newDesk makes a desk.
func newDesk(f *Front, by identity.Principal) *desk {
	d := &desk{Front: f, by: by}
	d.server = sdk.NewServer(&sdk.Implementation{Name: "countersign", Title: "Countersign", Version: f.cfg.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	d.server.AddTool(&sdk.Tool{Name: catalogTool, InputSchema: objectSchema(nil)}, d.call)
	d.addFollowUps()
	d.addSearch()
	d.server.AddReceivingMiddleware(d.receive)
	return d
}

// catalogTool is the tool of the SDK's server that stands for all of the
// catalog. It is not listed, and cannot be called by this name.
const catalogTool = "countersign_catalog"

type calledKey struct{}

// receive has the catalog in lists and calls, which the SDK's server does not
// know.
func (d *desk) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch r := req.(type) {
		case *sdk.ListToolsRequest:
			if err := d.May(d.by, "listTools"); err != nil {
				return nil, protocolError(jsonrpc.CodeInvalidRequest, err.Error())
			}
			return d.list(ctx, r, func(ctx context.Context, all *sdk.ListToolsRequest) (sdk.Result, error) {
				return next(ctx, method, all)
			})
		case *sdk.CallToolRequest:
			ctx, done := d.heed(ctx, r.Extra)
			defer done()
			if err := d.May(d.by, operationOf(r.Params.Name)); err != nil {
				return d.failed(ctx, err)
			}
			if isOwn(r.Params.Name) {
				return next(ctx, method, r)
			}
			of, params := *r, *r.Params
			of.Params, params.Name = &params, catalogTool
			return next(context.WithValue(ctx, calledKey{}, r.Params.Name), method, &of)
		}
		return next(ctx, method, req)
	}
}

// heed ends a call's context when its HTTP request does, and continues the
// request's trace.
func (d *desk) heed(ctx context.Context, extra *sdk.RequestExtra) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	request := d.requestOf(extra)
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

// sees says whether the holder may see an action: agents see those of their
// own session.
func (d *desk) sees(v outbox.View) bool {
	return d.by.Role != identity.RoleAgent || d.by.Session != "" && v.Envelope.SessionID == d.by.Session
}

// view reads an action that the holder may see. Another one is not there.
func (d *desk) view(ctx context.Context, tx pgx.Tx, id envelope.ActionID) (outbox.View, error) {
	views, err := outbox.Get(ctx, tx, d.by.Tenant, id)
	if err != nil {
		return outbox.View{}, err
	}
	if len(views) == 0 || !d.sees(views[0]) {
		return outbox.View{}, fault.New(fault.NotFound, "no action %s", id)
	}
	return views[0], nil
}

// look is view in a transaction of its own.
func (d *desk) look(ctx context.Context, id envelope.ActionID) (v outbox.View, err error) {
	err = d.inTx(ctx, d.by.Tenant, func(ctx context.Context, tx pgx.Tx) error {
		v, err = d.view(ctx, tx, id)
		return err
	})
	return v, err
}

// mayOpen counts a session that is about to be opened, and says whether it
// may. The Front's mutex is held.
func (d *desk) mayOpen(now time.Time) bool {
	if now.Sub(d.minute) >= time.Minute {
		d.minute, d.opened = now, 0
	}
	have := 0
	for s := range d.server.Sessions() {
		if s.ID() != "" {
			have++
		}
	}
	if have >= d.cfg.Sessions || d.opened >= d.cfg.Sessions {
		return false
	}
	d.opened++
	return true
}

// idle says that a desk can be taken away: nobody has a session there, and
// nobody came lately. The Front's mutex is held.
func (d *desk) idle(now time.Time) bool {
	if d.users > 0 || now.Sub(d.used) < time.Minute {
		return false
	}
	for range d.server.Sessions() {
		return false
	}
	return true
}
