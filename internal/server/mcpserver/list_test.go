package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func (c *client) names() []string {
	c.t.Helper()
	var names []string
	for tool, err := range c.Tools(c.t.Context(), nil) {
		if err != nil {
			c.t.Fatalf("Tools() = %v", err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// followUps are offered to everybody, and the search with them.
var followUps = [...]string{"countersign_revert", "countersign_search", "countersign_status", "countersign_undo", "countersign_wait"}

func TestListIsTheCatalog(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{}).tenant("acme")

		res, err := f.connect(f.agent, version).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}

		found := make(map[string]*sdk.Tool)
		for _, tool := range res.Tools {
			found[tool.Name] = tool
		}
		if len(found) != 2+len(followUps) || found[nameDanger] != nil {
			t.Errorf("tools = %v, want the two that are not denied and the follow-ups", found)
		}
		got := found[nameRead]
		if got == nil || got.Title != "Read" || got.Description != "as listed" || !got.Annotations.ReadOnlyHint {
			t.Errorf("read = %+v", got)
		}
		write := found[nameWrite]
		schema, err := json.Marshal(write.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"additionalProperties":false,"properties":{"n":{"type":"integer"},"to":{"type":"string"}},"type":"object"}`, string(schema)); diff != "" {
			t.Errorf("schema (-want +got):\n%s", diff)
		}
		if write.OutputSchema != nil {
			t.Error("the server promises what the tool will answer")
		}
		note, err := json.Marshal(write.Meta[mcpserver.MetaTool])
		if err != nil || string(note) != `{"mode":"require_approval","output_schema":{"required":["n"],"type":"object"},"tool":"box:box.write"}` {
			t.Errorf("note = %s, %v", note, err)
		}
	})
}

func TestListHasPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{Page: 3}).tenant("acme")
	var many []source.Tool
	for i := range 10 {
		many = append(many, source.Tool{Name: fmt.Sprintf("t%02d", i), InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutListing(ctx, tx, f.id, "box", many) })
	c := f.connect(f.agent, withSessions)

	names := c.names()
	first, err := c.ListTools(t.Context(), nil)
	_, bad := c.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: "!"})

	if len(names) != 10+len(followUps) || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names = %v, want each once and in order", names)
	}
	if err != nil || len(first.Tools) != 3 || first.NextCursor == "" {
		t.Errorf("first page = %v, %v, want 3 tools and a cursor", first, err)
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](bad); !ok || wire.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a cursor that is none gives %v, want invalid params", bad)
	}
}

func TestListOmitsToolsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	employee := envelope.EmployeeID(uuid.New())
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.id, catalog.Source{ID: "off", Kind: catalog.KindBuiltin, Enabled: false}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, f.id, "off", boxTools("")); err != nil {
			return err
		}
		if err := limits.PutToolRule(ctx, tx, f.id, limits.ToolRule{Source: "box", Name: "read", Scopes: []string{"box:read"}}, "test"); err != nil {
			return err
		}
		return limits.PutEmployee(ctx, tx, f.id, limits.Employee{ID: employee, Name: "Eve", Trust: "low", Scopes: []string{"mail:write"}}, "test")
	})
	eve := f.holder(identity.Grant{Name: "eve", Role: identity.RoleAgent, Employee: employee})

	want := append([]string{nameWrite}, followUps[:]...)
	if got := f.connect(eve, withSessions).names(); !slices.Equal(got, want) {
		t.Errorf("the employee without the scope sees %v, want %v", got, want)
	}
	if got := f.connect(f.agent, withSessions).names(); slices.Contains(got, "off__read") || !slices.Contains(got, nameRead) {
		t.Errorf("the agent sees %v, want what is switched on", got)
	}
}

func TestClientsAreNotifiedOfListChanges(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{Poll: 20 * time.Millisecond}).tenant("acme")
		c := f.connect(f.agent, version)
		if names := c.names(); slices.Contains(names, nameDanger) {
			t.Fatalf("names = %v", names)
		}

		f.allow("box:danger")

		select {
		case <-c.changed:
		case <-time.After(waitLimit):
			t.Fatal("the client is not notified")
		}
		if names := c.names(); !slices.Contains(names, nameDanger) {
			t.Errorf("after the change the names are %v", names)
		}
	})
}

// The instructions give models the number of hidden tools and the reasons,
// without any text of those tools.
func TestInstructionsCountHiddenTools(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{}).tenant("acme")
		narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAgent, Session: "s-3", Tools: []string{"box:read"}})
		blind := f.holder(identity.Grant{Name: "blind", Role: identity.RoleAgent, Session: "s-4", Scopes: []identity.Scope{identity.ActionsPropose}})
		bridged, stop := f.bridged(f.agent, version)
		instructions := func(c *client) string { return c.InitializeResult().Instructions }
		const one = "hidden from you: 1 because they can destroy something"

		for name, c := range map[string]*client{"an agent": f.connect(f.agent, version), "an agent over the bridge": bridged} {
			if got := instructions(c); !strings.Contains(got, one) || !strings.Contains(got, "countersign policy danger require_approval") || strings.Contains(got, "box") {
				t.Errorf("%s is told %q", name, got)
			}
		}
		for name, who := range map[string]identity.Issued{"a token for other tools": narrow, "a token that may not list": blind} {
			if got := instructions(f.connect(who, version)); strings.Contains(got, "hidden") {
				t.Errorf("%s is told %q", name, got)
			}
		}
		f.inTx(func(ctx context.Context, tx pgx.Tx) error {
			return settings.PutMode(ctx, tx, f.id, "", "box:*", envelope.ModeDeny, "test")
		})
		if got := instructions(f.connect(f.agent, version)); !strings.Contains(got, "hidden from you: 3 because other rules deny them") {
			t.Errorf("with a rule an agent is told %q", got)
		}
		f.allow("box:*")
		if got := instructions(f.connect(f.agent, version)); strings.Contains(got, "hidden") {
			t.Errorf("where all is allowed an agent is told %q", got)
		}
		if err := stop(); err != nil {
			t.Errorf("Bridge() = %v", err)
		}
	})
}

func TestTextsOfToolsHideNothingFromPeople(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	const hidden = "\u200b\u202e\U000e0041"
	odd := source.Tool{
		Name: "read", Title: "Re" + hidden + "ad", Description: "Reads" + hidden,
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","description":"x` + hidden + `"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","description":"\u200b\udb40\udc41"}`), Hints: source.Hints{ReadOnly: true},
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListing(ctx, tx, f.id, "box", []source.Tool{odd})
	})
	f.allow("box:*")
	c := f.connect(f.agent, withSessions)

	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := json.Marshal(list.Tools)
	if err != nil {
		t.Fatal(err)
	}
	found := c.call("countersign_search", object{"query": "reads"})

	for what, text := range map[string]string{"list": string(listed), "search": found.raw + found.text} {
		if !strings.Contains(text, nameRead) || strings.ContainsAny(text, hidden) || strings.Contains(text, `\u200b`) || strings.Contains(text, `\udb40`) {
			t.Errorf("the %s has what people do not see: %q", what, text)
		}
	}
}

func TestSchemasThatClientsRejectAreFixed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	odd := []source.Tool{
		{Name: "bool", InputSchema: json.RawMessage(`true`)},
		{Name: "none", InputSchema: json.RawMessage(`{"properties":{"a":{"maximum":12345678901234567890}}}`)},
		{Name: "list", InputSchema: json.RawMessage(`{"type":["object","null"]}`)},
		{Name: "name with spaces", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutListing(ctx, tx, f.id, "box", odd) })

	res, err := f.connect(f.agent, withSessions).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, tool := range res.Tools {
		schema, ok := tool.InputSchema.(map[string]any)
		if !ok || schema["type"] != "object" {
			t.Errorf("schema of %s = %v, want type object", tool.Name, tool.InputSchema)
		}
	}
	if len(res.Tools) != len(odd)+len(followUps) {
		t.Errorf("%d tools, want %d", len(res.Tools), len(odd)+len(followUps))
	}
}
