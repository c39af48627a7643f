package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// errUnexpected is an answer of the SDK's server of another type than it
// documents.
var errUnexpected = errors.New("unexpected answer of the MCP server")

// call proposes a call of a catalog tool, and answers with the outcome.
func (ts *tokenServer) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	name, _ := ctx.Value(calledKey{}).(string)
	p, base, err := ts.proposal(ctx, name, req.Params)
	if err != nil {
		return nil, err
	}
	by := ts.submitter(req)
	by.Base = base
	ended := ts.Intake.Expect(by.Tenant)
	defer ended()
	answers, err := ts.Intake.Accept(ctx, by, []*envelope.Proposal{p})
	if err == nil {
		err = answers[0].Err
	}
	if broken, ok := errors.AsType[*envelope.InvalidError](err); ok && catalog.Unknown(broken.Fields[0]) {
		err = ts.suggest(ctx, name) // it was there a moment ago
	}
	if err != nil {
		return nil, err
	}
	if answers[0].Scheduled() {
		defer time.AfterFunc(quick, ended).Stop()
	} else {
		ended()
	}
	return ts.follow(ctx, req, answers[0].Action, ts.cfg.Wait, accepted{answers[0].Known, answers[0].Scheduled()})
}

// quick is how long a call may take for its client to be expected to make the next one
// soon.
const quick = 100 * time.Millisecond

// submitter returns the holder as an intake.Submitter, with the request of a
// call.
func (ts *tokenServer) submitter(req *sdk.CallToolRequest) intake.Submitter {
	by := access.Submitter(ts.by)
	by.Awaited = ts.cfg.Wait > 0
	if from := ts.requestContext(req.Extra); from != nil {
		by.Origin = request.Origin(from, execution.ViaMCP)
	}
	return by
}

// proposal returns the envelope of a call, and the base of its external id if the
// client gave none.
func (ts *tokenServer) proposal(ctx context.Context, name string, params *sdk.CallToolParamsRaw) (p *envelope.Proposal, base string, err error) {
	key, named, err := idempotencyKey(params.Meta)
	if err != nil {
		return nil, "", err
	}
	tool, err := ts.tool(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if p, err = proposalOf(tool, params.Arguments, key); err != nil || named {
		return p, "", err
	}
	base, err = callDigest(ts.by, p)
	return p, base, err
}

// tool returns the tool that is offered under a name. It reads the tenant's
// settings only if the cached ones do not have the tool: intake uses the current
// ones.
func (ts *tokenServer) tool(ctx context.Context, name string) (*catalog.Tool, error) {
	if snap := ts.Catalog.Known(ts.by.Tenant); snap != nil {
		if tool, ok := findTool(snap, name, ts.by.Tools); ok {
			return tool, nil
		}
	}
	snap, _, err := ts.settings(ctx)
	if err != nil {
		return nil, err
	}
	if tool, ok := findTool(snap, name, ts.by.Tools); ok {
		return tool, nil
	}
	return nil, ts.suggest(ctx, name)
}

// errUnknownTool is the error for a tool that does not exist for the holder.
var errUnknownTool = protocolError(jsonrpc.CodeInvalidParams, "unknown tool; list the tools to see the ones there are")

// suggest returns the error for an unknown tool with the nearest names in the
// list of the holder. It depends only on the name and the list, so it is the
// same for tools that do not exist and tools that are not the holder's.
func (ts *tokenServer) suggest(ctx context.Context, name string) error {
	if ts.Routes.Admit(ts.by, "listTools") != nil {
		return errUnknownTool
	}
	tools, err := ts.catalog(ctx)
	if err != nil {
		return errUnknownTool
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	near := fault.Nearest(name, names)
	if len(near) == 0 {
		return errUnknownTool
	}
	return protocolError(jsonrpc.CodeInvalidParams, "unknown tool"+fault.Suggestion(near))
}

// idempotencyKey returns the external id that the client gave the call, if any.
func idempotencyKey(meta sdk.Meta) (key string, given bool, err error) {
	v, given := meta[MetaIdempotencyKey]
	if !given {
		return "", false, nil
	}
	key, text := v.(string)
	if !text || key == "" {
		return "", true, fault.New(fault.Invalid, "_meta[%q] must be a string that is not empty", MetaIdempotencyKey)
	}
	return key, true, nil
}

// proposalOf returns the proposal of a call.
func proposalOf(tool *catalog.Tool, args json.RawMessage, externalID string) (*envelope.Proposal, error) {
	if len(bytes.TrimSpace(args)) == 0 || string(bytes.TrimSpace(args)) == "null" {
		args = json.RawMessage("{}")
	}
	return request.ParseCall(request.Invocation{
		Type: envelope.TypeExec, ExternalID: externalID, Tool: envelope.Tool{Source: tool.Key.Source, Name: tool.Key.Action}, Args: args,
	})
}

// failed returns the result for the error of a call. An unknown error is an
// internal error of the protocol; its cause is only logged.
func (ts *tokenServer) failed(ctx context.Context, err error) (*sdk.CallToolResult, error) {
	if broken, ok := errors.AsType[*envelope.InvalidError](err); ok {
		return newResult(report{Status: "invalid", Errors: broken.Fields}, true, invalidText(broken.Fields)), nil
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, err
	}
	shown, known := errors.AsType[*fault.Error](err)
	if !known {
		return nil, ts.internal(ctx, "mcp call failed", err)
	}
	status := map[fault.Kind]string{
		fault.NotFound: "not_found", fault.Invalid: "invalid", fault.Conflict: "conflict", fault.Denied: "denied", fault.Busy: "busy", fault.Gone: "gone",
		fault.Limited: "limited",
	}[fault.KindOf(err)]
	r := report{Status: cmp.Or(status, "failed"), Reason: shown.Text, Code: shown.Rule, RetryAfter: int((shown.After + time.Second - 1) / time.Second)}
	return newResult(r, true, sentence(shown.Text)), nil
}

// internal logs an error and returns an internal error of the protocol.
func (ts *tokenServer) internal(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err // the client has left, and gets no answer
	}
	ts.Log.ErrorContext(ctx, what, slog.String("tenant_id", ts.by.Tenant.String()), slog.Any("error", err))
	return protocolError(jsonrpc.CodeInternalError, "internal error")
}

// protocolError returns an error of the protocol.
func protocolError(code int64, text string) error { return &jsonrpc.Error{Code: code, Message: text} }

// accepted is the part of an answer of intake that a wait depends on.
type accepted struct{ known, scheduled bool }

// follow keeps a call open until its action has ended or the time is over, and
// answers with its state. An action that was scheduled just now is read first when
// something has happened to it.
func (ts *tokenServer) follow(ctx context.Context, req *sdk.CallToolRequest, id envelope.ActionID, wait time.Duration, a accepted) (*sdk.CallToolResult, error) {
	v, err := ts.await(ctx, id, wait, a.scheduled, ts.progressFunc(req, wait))
	if req.Params.Name != toolWait && !a.known && !envelope.Ended(v.Envelope.Result.Status) {
		ts.EndWait(ctx, ts.by.Tenant, id)
	}
	if errors.Is(err, fault.Limited) && req.Params.Name != toolWait {
		err = nil // the action is accepted, and its current state is the answer
	}
	if err != nil {
		return nil, err
	}
	return ts.answer(v, a.known), nil
}

// await returns an action when it has ended, when it cannot end in time, when
// the time is over, or when the Server closes. It calls notify after every read
// of the action. The error is that of ctx, or of reading.
func (ts *tokenServer) await(ctx context.Context, id envelope.ActionID, wait time.Duration, scheduled bool, notify func(context.Context, outbox.View)) (v outbox.View, err error) {
	if !scheduled {
		if v, err = ts.readAction(ctx, id); err != nil || envelope.Ended(v.Envelope.Result.Status) {
			return v, err
		}
	}
	closed, err := ts.Waits.Open(ts.by)
	if err != nil {
		if scheduled {
			var read error
			v, read = ts.readAction(ctx, id)
			err = cmp.Or(read, err)
		}
		return v, err
	}
	defer closed()
	until := time.Now().Add(wait)
	how := request.Wait{Scheduled: scheduled, Most: wait, Every: ts.cfg.Progress, Closed: ts.closing, Watch: func(ctx context.Context) (<-chan struct{}, func(), error) {
		return ts.watch(ctx, ts.by.Tenant, id)
	}}
	v, _, err = request.Await(ctx, how, func(ctx context.Context) (outbox.View, bool, error) {
		v, err := ts.readAction(ctx, id)
		done := err != nil || envelope.Ended(v.Envelope.Result.Status) || waitsTooLong(v, until)
		if !done {
			notify(ctx, v)
		}
		return v, done, err
	})
	return v, err
}

// waitsTooLong reports whether an action waits for an event that cannot happen
// in time. A person may decide at any moment.
func waitsTooLong(v outbox.View, until time.Time) bool {
	return v.WaitsFor != "" && v.WaitsFor != outbox.WaitsApproval && v.WaitsFor != preflight.CodePaused && v.WaitsUntil.After(until)
}

// progressFunc returns a function that notifies a client that asked for
// progress. Its errors are ignored: the call itself returns them too.
func (ts *tokenServer) progressFunc(req *sdk.CallToolRequest, wait time.Duration) func(context.Context, outbox.View) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(context.Context, outbox.View) {}
	}
	began, last := time.Now(), -1.0
	return func(ctx context.Context, v outbox.View) {
		done := time.Since(began).Seconds()
		if done <= last { // progress may only grow
			return
		}
		last = done
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: wait.Seconds(), Message: ts.waitsText(v),
		})
	}
}

// recheckEvery is the interval at which the tokens of open requests are
// checked again.
const recheckEvery = 15 * time.Second

// run announces changed catalogs, ends requests whose token is no longer valid,
// and removes idle token servers, until the Server closes. Without clients it
// makes no queries.
func (srv *Server) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	polls, rechecks := time.NewTicker(srv.cfg.Poll), time.NewTicker(recheckEvery)
	defer polls.Stop()
	defer rechecks.Stop()
	srv.background.Go(func() { // ends a query that is running
		<-srv.closing
		cancel()
	})
	for {
		select {
		case <-srv.closing:
			return
		case now := <-polls.C:
			srv.removeIdle(now)
			srv.announceChanges(ctx)
		case <-rechecks.C:
			srv.recheckTokens(ctx)
		}
	}
}

// removeIdle removes idle token servers.
func (srv *Server) removeIdle(now time.Time) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	maps.DeleteFunc(srv.servers, func(_ identity.TokenID, ts *tokenServer) bool { return ts.idle(now) })
}

// announceChanges notifies every client whose list of tools has changed. It
// reads the settings once for each tenant that has clients.
func (srv *Server) announceChanges(ctx context.Context) {
	type current struct {
		snap *settings.Settings
		now  time.Time
	}
	known := make(map[envelope.TenantID]current)
	for _, ts := range srv.tokenServers() {
		if len(slices.Collect(ts.server.Sessions())) == 0 {
			continue
		}
		at := known[ts.by.Tenant]
		var err error
		if at.snap == nil {
			at.snap, at.now, err = ts.settings(ctx)
		}
		var moved bool
		if err == nil {
			known[ts.by.Tenant] = at
			moved, err = ts.listChanged(at.snap, at.now)
		}
		if err != nil && ctx.Err() == nil {
			srv.Log.WarnContext(ctx, "catalog not compared", slog.String("tenant_id", ts.by.Tenant.String()), slog.Any("error", err))
		}
		if moved {
			ts.addFollowUps() // the SDK's server notifies its clients when tools are added
		}
	}
}

// recheckTokens ends open requests whose token was revoked, has expired, or
// has other rights now.
func (srv *Server) recheckTokens(ctx context.Context) {
	srv.mu.Lock()
	calls := slices.Collect(maps.Values(srv.requests))
	srv.mu.Unlock()
	for _, o := range calls {
		by, err := srv.Auth.Authenticate(ctx, o.token, time.Now())
		if err == nil && !by.Equal(o.by) || errors.Is(err, identity.ErrToken) || errors.Is(err, fault.Denied) {
			o.cancel()
		}
	}
}
