package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
)

// The follow-ups: tools beside the catalog, about actions themselves.
const (
	toolWait   = "countersign_wait"
	toolStatus = "countersign_status"
	toolUndo   = "countersign_undo"
)

// toolSearch searches the catalog.
const toolSearch = "countersign_search"

// isOwn says that a name is that of a follow-up or of the search, and none of
// the catalog.
func isOwn(name string) bool {
	return name == toolWait || name == toolStatus || name == toolUndo || name == toolSearch
}

// addFollowUps has the SDK's server offer the follow-ups. Its clients are told
// each time that the list changed.
func (d *desk) addFollowUps() {
	id := `"action_id":{"type":"string","format":"uuid","description":"the action_id that a result named"}`
	schema := func(more string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + id + more + `},"required":["action_id"],"additionalProperties":false}`)
	}
	d.server.AddTool(&sdk.Tool{
		Name: toolWait, Title: "Wait for an action",
		Description: "Wait for an action that is pending, and get what its tool answered. If it is still pending when the time is over, the result says so; wait again, or go on with something else.",
		InputSchema: schema(fmt.Sprintf(`,"seconds":{"type":"integer","minimum":0,"maximum":%d,"description":"how long to wait at most; %d unless said otherwise"}`,
			int(MaxWait.Seconds()), d.cfg.waitSeconds())),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)},
	}, d.callWait)
	d.server.AddTool(&sdk.Tool{
		Name: toolStatus, Title: "How an action stands",
		Description: "See how an action stands, at once: whether it is pending and what it waits for, done, denied, failed, or unknown.",
		InputSchema: schema(""),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)},
	}, d.callStatus)
	d.server.AddTool(&sdk.Tool{
		Name: toolUndo, Title: "Take an action back",
		Description: "Take back an action that has not begun: one that waits for a person, for its time or for its turn. Once it runs, it is too late.",
		InputSchema: schema(""),
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false)},
	}, d.callUndo)
}

// followUp is what a follow-up is called with.
type followUp struct {
	Action  envelope.ActionID `json:"action_id"`
	Seconds *int              `json:"seconds"`
}

// argumentsOf reads and checks them.
func argumentsOf(req *sdk.CallToolRequest) (a followUp, err error) {
	if json.Unmarshal(req.Params.Arguments, &a) != nil || a.Action == (envelope.ActionID{}) {
		return a, fault.New(fault.Invalid, "the action_id must be the id of an action, which has 36 characters")
	}
	if a.Seconds != nil && (*a.Seconds < 0 || time.Duration(*a.Seconds)*time.Second > MaxWait) {
		return a, fault.New(fault.Invalid, "seconds must be from 0 to %d", int(MaxWait.Seconds()))
	}
	return a, nil
}

func (d *desk) callWait(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	a, err := argumentsOf(req)
	if err != nil {
		return d.failed(ctx, err)
	}
	wait := d.cfg.Wait
	if a.Seconds != nil {
		wait = time.Duration(*a.Seconds) * time.Second
	}
	res, err := d.follow(ctx, req, a.Action, wait, false)
	if err != nil {
		return d.failed(ctx, err)
	}
	return res, nil
}

func (d *desk) callStatus(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	a, err := argumentsOf(req)
	if err != nil {
		return d.failed(ctx, err)
	}
	v, err := d.look(ctx, a.Action)
	if err != nil {
		return d.failed(ctx, err)
	}
	// That an action was denied or failed is what was asked for.
	r := d.report(v)
	return said(r, false, r.text()), nil
}

func (d *desk) callUndo(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	a, err := argumentsOf(req)
	if err != nil {
		return d.failed(ctx, err)
	}
	var v outbox.View
	err = d.inTx(ctx, d.by.Tenant, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := d.view(ctx, tx, a.Action); err != nil {
			return err
		}
		if err := outbox.Undo(ctx, tx, d.by.Tenant, a.Action, d.by.Name); err != nil {
			return err
		}
		v, err = d.view(ctx, tx, a.Action)
		return err
	})
	if err != nil {
		return d.failed(ctx, err)
	}
	r := d.report(v)
	return said(r, r.Status != "undone", r.text()), nil
}
