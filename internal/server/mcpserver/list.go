package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MetaTool is the key of a tool's _meta that says what the catalog knows of it
// beside the definition: its key there, the mode that policy has for it, and
// the schema of what it answers. That schema is not the tool's outputSchema
// here, because an answer may be that the action waits, and what is kept of a
// result is redacted and cut to size.
const MetaTool = "countersign.dev/tool"

// toolNote is what MetaTool holds.
type toolNote struct {
	Key          string          `json:"key"`
	Mode         envelope.Mode   `json:"mode"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// listing is the catalog as one holder sees it, for the snapshot that it was
// made of.
type listing struct {
	mu    sync.Mutex
	of    *settings.Settings
	tools []*sdk.Tool
	// sum is of all that is listed, and told the one that clients were last
	// told of, or saw first.
	sum, told [sha256.Size]byte
}

// list answers tools/list: the follow-ups and the catalog in one order, a page at
// a time. own asks the SDK's server.
func (d *desk) list(ctx context.Context, req *sdk.ListToolsRequest, own func(context.Context, *sdk.ListToolsRequest) (sdk.Result, error)) (sdk.Result, error) {
	after, err := placeOf(req)
	if err != nil {
		return nil, err
	}
	all := *req
	all.Params = &sdk.ListToolsParams{}
	if req.Params != nil {
		all.Params.Meta = req.Params.Meta
	}
	answer, err := own(ctx, &all)
	if err != nil {
		return nil, err
	}
	page, ok := answer.(*sdk.ListToolsResult)
	if !ok {
		return nil, d.internal(ctx, "mcp tools not listed", errUnexpected)
	}
	tools, err := d.catalog(ctx)
	if err != nil {
		return nil, d.internal(ctx, "mcp tools not listed", err)
	}
	both := slices.Concat(page.Tools, tools)
	both = slices.DeleteFunc(both, func(t *sdk.Tool) bool { return t.Name == catalogTool || t.Name <= after })
	slices.SortFunc(both, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	if page.NextCursor = ""; len(both) > d.cfg.Page {
		both = both[:d.cfg.Page]
		page.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(both[len(both)-1].Name))
	}
	page.Tools, page.CacheScope = both, "private"
	return page, nil
}

// placeOf is the name behind which a page begins.
func placeOf(req *sdk.ListToolsRequest) (string, error) {
	if req.Params == nil || req.Params.Cursor == "" {
		return "", nil
	}
	name, err := base64.RawURLEncoding.Strict().DecodeString(req.Params.Cursor)
	if err != nil || len(name) == 0 || len(name) > maxName {
		return "", protocolError(jsonrpc.CodeInvalidParams, "the cursor is not one that this server gave")
	}
	return string(name), nil
}

// catalog is what the holder may use of the catalog as it is now.
func (d *desk) catalog(ctx context.Context) ([]*sdk.Tool, error) {
	snap, by, err := d.looks(ctx)
	if err != nil {
		return nil, err
	}
	d.shown.mu.Lock()
	defer d.shown.mu.Unlock()
	if err := d.show(snap, by); err != nil {
		return nil, err
	}
	if d.shown.told == [sha256.Size]byte{} {
		d.shown.told = d.shown.sum
	}
	return d.shown.tools, nil
}

// moved says whether the holder would see another list now than the one that
// clients were last told of, and takes it that they are told.
func (d *desk) moved(snap *settings.Settings, now time.Time) (bool, error) {
	d.shown.mu.Lock()
	defer d.shown.mu.Unlock()
	if err := d.show(snap, d.viewer(now)); err != nil {
		return false, err
	}
	was := d.shown.told
	d.shown.told = d.shown.sum
	return was != [sha256.Size]byte{} && was != d.shown.sum, nil
}

// show makes the listing of a snapshot. The listing's mutex is held.
func (d *desk) show(snap *settings.Settings, by settings.Viewer) error {
	if d.shown.of == snap {
		return nil
	}
	var tools []*sdk.Tool
	for _, t := range snap.Visible(by) {
		tools = append(tools, toolOf(t, snap.Decide(t, by.Proposal(t)).Mode))
	}
	text, err := json.Marshal(tools)
	if err != nil {
		return err
	}
	d.shown.of, d.shown.tools, d.shown.sum = snap, tools, sha256.Sum256(text)
	return nil
}

// looks returns the catalog as it is now, and the holder as somebody who looks
// at it.
func (d *desk) looks(ctx context.Context) (*settings.Settings, settings.Viewer, error) {
	snap, now, err := d.snapshot(ctx)
	return snap, d.viewer(now), err
}

func (d *desk) viewer(now time.Time) settings.Viewer {
	return settings.Viewer{Employee: d.by.Employee, Session: d.by.Session, Tools: d.by.Tools, Now: now}
}

// snapshot is the tenant's catalog, with the database's clock.
func (d *desk) snapshot(ctx context.Context) (snap *settings.Settings, now time.Time, err error) {
	err = d.inTx(ctx, d.by.Tenant, func(ctx context.Context, tx pgx.Tx) error {
		var state settings.State
		snap, state, err = d.Catalog.Standing(ctx, tx, d.by.Tenant)
		now = state.Now
		return err
	})
	return snap, now, err
}

// toolOf is a tool of the catalog as clients see it. Its texts are the
// source's: data, which this package only hands on.
func toolOf(t *catalog.Tool, mode envelope.Mode) *sdk.Tool {
	return &sdk.Tool{
		Name: nameOf(t.Key), Title: t.Title, Description: t.Description, InputSchema: objectSchema(t.InputSchema),
		Annotations: &sdk.ToolAnnotations{
			Title: t.Title, ReadOnlyHint: t.Hints.ReadOnly, IdempotentHint: t.Hints.Idempotent,
			DestructiveHint: t.Hints.Destructive, OpenWorldHint: t.Hints.OpenWorld,
		},
		Meta: sdk.Meta{MetaTool: toolNote{Key: t.Key.String(), Mode: mode, OutputSchema: t.OutputSchema}},
	}
}

// objectSchema is a schema of type object, which clients insist on: one that
// says something else would have them refuse the whole list. Arguments are
// objects whatever a schema says, and intake holds them to the schema as the
// source gave it.
func objectSchema(raw json.RawMessage) json.RawMessage {
	var schema map[string]json.RawMessage
	if json.Unmarshal(raw, &schema) != nil || schema == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	if string(schema["type"]) == `"object"` {
		return raw
	}
	schema["type"] = json.RawMessage(`"object"`)
	fixed, err := json.Marshal(schema)
	if err != nil { // its parts have just been read
		return json.RawMessage(`{"type":"object"}`)
	}
	return fixed
}
