package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// errUnexpected says that the SDK answered with another type than it promises.
var errUnexpected = errors.New("unexpected answer of the MCP server")

// errOther tells an agent of an action that it may not see.
var errOther = fault.New(fault.Conflict, "another session has proposed an action of this name; take another one")

// call makes an envelope of a call of the catalog, and answers with what
// became of it.
func (d *desk) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	name, _ := ctx.Value(calledKey{}).(string)
	p, err := d.proposal(ctx, name, req.Params)
	if err != nil {
		return d.failed(ctx, err)
	}
	by := intake.Submitter{
		Tenant: d.by.Tenant, Token: uuid.UUID(d.by.Token), Name: d.by.Name, Employee: d.by.Employee, Session: d.by.Session, Tools: d.by.Tools,
		Origin: d.origin(req.Extra),
	}
	answers, err := d.Intake.Accept(ctx, by, []*envelope.Proposal{p})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return d.failed(ctx, err)
	}
	res, err := d.follow(ctx, req, answers[0].Action, d.cfg.Wait, answers[0].Known)
	if answers[0].Known && errors.Is(err, fault.NotFound) {
		err = errOther
	}
	if err != nil {
		return d.failed(ctx, err)
	}
	return res, nil
}

// origin is the HTTP request that a call came with, as an action keeps it.
func (d *desk) origin(extra *sdk.RequestExtra) json.RawMessage {
	request := d.requestOf(extra)
	if request == nil {
		return nil
	}
	return d.cfg.Origin(request)
}

// proposal is the envelope that a call asks for.
func (d *desk) proposal(ctx context.Context, name string, params *sdk.CallToolParamsRaw) (p *envelope.Proposal, err error) {
	key, named, err := idempotencyKey(params.Meta)
	if err != nil {
		return nil, err
	}
	err = d.inTx(ctx, d.by.Tenant, func(ctx context.Context, tx pgx.Tx) error {
		snap, err := d.Catalog.Current(ctx, tx, d.by.Tenant)
		if err != nil {
			return err
		}
		tool, ok := find(snap, name)
		if !ok {
			return protocolError(jsonrpc.CodeInvalidParams, "unknown tool; list the tools to see the ones there are")
		}
		if p, err = proposalOf(tool, params.Arguments, key); err != nil || named {
			return err
		}
		p.ExternalID, err = externalID(ctx, tx, d.by, p)
		return err
	})
	return p, err
}

// idempotencyKey is the name that the client gave the call, if it did.
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

// proposalOf writes a call as an envelope and reads it as any other.
func proposalOf(tool *catalog.Tool, args json.RawMessage, externalID string) (*envelope.Proposal, error) {
	if len(bytes.TrimSpace(args)) == 0 || string(bytes.TrimSpace(args)) == "null" {
		args = json.RawMessage("{}")
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		Type       string          `json:"type"`
		ExternalID string          `json:"external_id,omitempty"`
		Tool       envelope.Tool   `json:"tool"`
		Args       json.RawMessage `json:"args"`
	}{envelope.TypeExec, externalID, envelope.Tool{Source: tool.Key.Source, Name: tool.Key.Action}, args})
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "the arguments are not JSON")
	}
	return envelope.Parse(text.Bytes())
}

// failed says in a result what is wrong with a call. What has no kind that the
// outside can tell apart is an error of the protocol without a cause, which
// goes to the log alone.
func (d *desk) failed(ctx context.Context, err error) (*sdk.CallToolResult, error) {
	if broken, ok := errors.AsType[*envelope.InvalidError](err); ok {
		return said(report{Status: "invalid", Errors: broken.Fields}, true, invalidText(broken.Fields)), nil
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, err
	}
	shown, known := errors.AsType[*fault.Error](err)
	if !known {
		return nil, d.internal(ctx, "mcp call failed", err)
	}
	status := map[fault.Kind]string{
		fault.NotFound: "not_found", fault.Invalid: "invalid", fault.Conflict: "conflict", fault.Denied: "denied", fault.Busy: "busy", fault.Gone: "gone",
		fault.Limited: "limited",
	}[fault.KindOf(err)]
	r := report{Status: cmp.Or(status, "failed"), Reason: shown.Text, RetryAfter: int((shown.After + time.Second - 1) / time.Second)}
	return said(r, true, sentence(shown.Text)), nil
}

// internal logs an error and returns what a client may know of it.
func (d *desk) internal(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err // the client has left, and is not answered
	}
	d.cfg.Log.ErrorContext(ctx, what, slog.String("tenant_id", d.by.Tenant.String()), slog.Any("error", err))
	return protocolError(jsonrpc.CodeInternalError, "internal error")
}

// protocolError is an error of the protocol.
func protocolError(code int64, text string) error { return &jsonrpc.Error{Code: code, Message: text} }

// follow keeps a call open until its action has ended or the time is over, and
// answers with how it stands.
func (d *desk) follow(ctx context.Context, req *sdk.CallToolRequest, id envelope.ActionID, wait time.Duration, joined bool) (*sdk.CallToolResult, error) {
	v, err := d.await(ctx, id, wait, d.teller(req, wait))
	if err != nil {
		return nil, err
	}
	return d.answer(v, joined), nil
}
