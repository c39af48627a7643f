package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
)

// The built-in tools about actions.
const (
	toolWait   = "countersign_wait"
	toolStatus = "countersign_status"
	toolUndo   = "countersign_undo"
	toolRevert = "countersign_revert"
)

// toolSearch is the tool that searches the catalog.
const toolSearch = "countersign_search"

// isBuiltin reports whether a name is that of a built-in tool, and not of the
// catalog.
func isBuiltin(name string) bool {
	return name == toolWait || name == toolStatus || name == toolUndo || name == toolRevert || name == toolSearch
}

// addTool adds a tool to the SDK's server, which notifies its clients that the
// list has changed. Errors of the handler are answered by failed.
func (ts *tokenServer) addTool(t *sdk.Tool, handler sdk.ToolHandler) {
	ts.server.AddTool(t, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		res, err := handler(ctx, req)
		if err != nil {
			return ts.failed(ctx, err)
		}
		return res, nil
	})
}

// addFollowUps adds the tools about actions.
func (ts *tokenServer) addFollowUps() {
	read := &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)}
	id := `"action_id":{"type":"string","format":"uuid","description":"the action_id that a result named"}`
	schema := func(more string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + id + more + `},"required":["action_id"],"additionalProperties":false}`)
	}
	ts.addTool(&sdk.Tool{
		Name: toolWait, Title: "Wait for an action",
		Description: "Wait for an action that is pending, and get what its tool answered. If it is still pending when the time is over, the result says so; wait again, or go on with something else.",
		InputSchema: schema(fmt.Sprintf(`,"seconds":{"type":"integer","minimum":0,"maximum":%d,"description":"how long to wait at most; %d unless said otherwise"}`,
			int(MaxWait.Seconds()), ts.cfg.waitSeconds())),
		Annotations: read,
	}, ts.callWait)
	ts.addTool(&sdk.Tool{
		Name: toolStatus, Title: "Show the state of an action",
		Description: "Show the state of an action at once: pending and what it waits for, done, denied, failed, or unknown.",
		InputSchema: schema(""),
		Annotations: read,
	}, ts.callStatus)
	ts.addTool(&sdk.Tool{
		Name: toolUndo, Title: "Take an action back",
		Description: "Take back an action that has not begun: one that waits for a person, for its time or for a rate limit. Once it runs, it is too late.",
		InputSchema: schema(""),
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false)},
	}, ts.callUndo)
	ts.addTool(&sdk.Tool{
		Name: toolRevert, Title: "Take the effect of an action back",
		Description: "Take the effect of an action back that was done, by the call that its tool declares for that. Policy, and sometimes a person, has to agree to that call as to any other. An action is reverted once: asking again gives the same result. If the tool declares nothing, or nobody knows whether the action happened, the result says so.",
		InputSchema: schema(""),
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(true)},
	}, ts.callRevert)
}

// followUp is the arguments of a tool about actions.
type followUp struct {
	Action  envelope.ActionID `json:"action_id"`
	Seconds *int              `json:"seconds"`
}

// argumentsOf returns the arguments of a tool about actions.
func argumentsOf(req *sdk.CallToolRequest) (a followUp, err error) {
	if check.JSON(req.Params.Arguments) != nil || json.Unmarshal(req.Params.Arguments, &a) != nil || a.Action == (envelope.ActionID{}) {
		return a, fault.New(fault.Invalid, "the action_id must be the id of an action, which has 36 characters")
	}
	if a.Seconds != nil && (*a.Seconds < 0 || time.Duration(*a.Seconds)*time.Second > MaxWait) {
		return a, fault.New(fault.Invalid, "seconds must be from 0 to %d", int(MaxWait.Seconds()))
	}
	return a, nil
}

func (ts *tokenServer) callWait(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	a, err := argumentsOf(req)
	if err != nil {
		return nil, err
	}
	wait := ts.cfg.Wait
	if a.Seconds != nil {
		wait = time.Duration(*a.Seconds) * time.Second
	}
	return ts.follow(ctx, req, a.Action, wait, accepted{})
}

func (ts *tokenServer) callStatus(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	a, err := argumentsOf(req)
	if err != nil {
		return nil, err
	}
	v, err := ts.readAction(ctx, a.Action)
	if err != nil {
		return nil, err
	}
	// A denied or failed action is no error of this call.
	r := ts.report(v)
	return newResult(r, false, r.text()), nil
}

func (ts *tokenServer) callUndo(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	a, err := argumentsOf(req)
	if err != nil {
		return nil, err
	}
	var v outbox.View
	err = ts.inTx(ctx, ts.by.Tenant, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := access.View(ctx, tx, ts.by, a.Action); err != nil {
			return err
		}
		if err := outbox.Undo(ctx, tx, ts.by.Tenant, a.Action, ts.by.Actor()); err != nil {
			return err
		}
		v, err = access.View(ctx, tx, ts.by, a.Action)
		return err
	})
	if err != nil {
		return nil, err
	}
	r := ts.report(v)
	return newResult(r, r.Status != "undone", r.text()), nil
}

func (ts *tokenServer) callRevert(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	a, err := argumentsOf(req)
	if err != nil {
		return nil, err
	}
	answers, err := reversal.New(ts.DB, ts.Catalog, ts.Intake).Revert(ctx, reversal.Request{
		By: ts.submitter(req), Actions: []envelope.ActionID{a.Action}, Sees: func(session string) bool { return access.SeesSession(ts.by, session) },
	})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return nil, err
	}
	res, err := ts.follow(ctx, req, answers[0].Action, ts.cfg.Wait, accepted{answers[0].Known, answers[0].Scheduled()})
	if answers[0].Known && errors.Is(err, fault.NotFound) {
		err = fault.New(fault.Conflict, "its reversal %s was proposed outside of your session", answers[0].Action)
	}
	return res, err
}
