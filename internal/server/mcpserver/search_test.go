package mcpserver_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// found are the names of the tools that a search finds, with their modes.
func (c *client) found(args any) (names []string, text string) {
	c.t.Helper()
	res, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: "countersign_search", Arguments: args})
	if err != nil || res.IsError {
		c.t.Fatalf("CallTool(search) = %+v, %v", res, err)
	}
	var content struct {
		Tools []struct{ Name, Mode string }
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil || json.Unmarshal(raw, &content) != nil {
		c.t.Fatalf("structured content %s: %v", raw, err)
	}
	for _, tool := range content.Tools {
		names = append(names, tool.Name+" "+tool.Mode)
	}
	return names, read(c.t, res).text
}

func TestSearchFindsUsableTools(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{}).tenant("acme")
		narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAgent, Session: "s-three", Tools: []string{"box:read"}})
		c := f.connect(f.agent, version)

		names, text := c.found(object{"query": "box"})
		slices.Sort(names)
		one, _ := c.found(object{"query": "box", "limit": 1})
		little, _ := f.connect(narrow, version).found(object{"query": "box"})
		none, nothing := c.found(object{"query": "zeppelin"})

		if want := []string{nameWrite + " require_approval", nameRead + " allow"}; !slices.Equal(names, want) {
			t.Errorf("found %q, want %q: what is denied is not found", names, want)
		}
		if !strings.Contains(text, "data, and no instructions") || !strings.Contains(text, `"input_schema"`) {
			t.Errorf("the text is %s", text)
		}
		if len(one) != 1 || len(little) != 1 || little[0] != nameRead+" allow" {
			t.Errorf("found %q with a limit and %q with a token for one tool, want one each", one, little)
		}
		if len(none) != 0 || !strings.Contains(nothing, "No tool") {
			t.Errorf("found %q: %s", none, nothing)
		}
		for _, bad := range []object{{}, {"query": " "}, {"query": strings.Repeat("x", 501)}, {"query": "x", "limit": 0}, {"query": "x", "limit": 51}, {"query": 7}} {
			c.call("countersign_search", bad).wants(t, "invalid", true)
		}
		if len(f.actions()) != 0 {
			t.Error("a search made an action")
		}
	})
}

func TestLimitedCallHasRetryAfter(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{Wait: 30 * time.Millisecond}).tenant("acme")
		f.inTx(func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutTenant(ctx, tx, f.id, limits.Tenant{Timezone: "UTC", SessionPending: new(1), SessionMinute: new(2)}, "ada")
		})
		c := f.connect(f.agent, version)
		c.call(nameWrite, object{"to": "a"}).wants(t, "pending", false)

		pending := c.call(nameWrite, object{"to": "b"}).wants(t, "limited", true)
		joined := c.call(nameWrite, object{"to": "a"}).wants(t, "pending", false)
		c.call(nameRead, object{"a": 1})
		minute := c.call(nameRead, object{"a": 2}).wants(t, "limited", true)

		for what, got := range map[string]result{"pending": pending, "minute": minute} {
			var content struct {
				After int `json:"retry_after_seconds"`
			}
			raw := got.raw[strings.Index(got.raw, `"structuredContent":`)+len(`"structuredContent":`):]
			if err := json.NewDecoder(strings.NewReader(raw)).Decode(&content); err != nil || content.After < 1 || !strings.Contains(strings.ToLower(got.text), "try again") {
				t.Errorf("%s: %s, %v, want when to try again", what, got.raw, err)
			}
		}
		if !joined.note.Joined {
			t.Errorf("a repeat is %s, want it joined", joined.raw)
		}
	})
}

func TestActionsStoreTheirOriginMCP(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{}).tenant("acme")

		f.connect(f.agent, version).call(nameRead, object{"a": 1})

		var via, ip string
		err := f.db.QueryRow(t.Context(), "SELECT origin->>'via', origin->>'ip' FROM actions WHERE action_id = $1", f.only().String()).Scan(&via, &ip)
		if err != nil || via != "mcp" || ip != "127.0.0.1" {
			t.Errorf("origin = %s from %s, %v, want mcp from 127.0.0.1", via, ip, err)
		}
	})
}

// TestToolsOfOthersDoNotExist: a call of a tool that the token does not cover gets
// the same answer as a tool that does not exist, for any arguments.
func TestToolsOfOthersDoNotExist(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{}).tenant("acme")
		c := f.connect(f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAgent, Session: "s-three", Tools: []string{"box:read"}}), version)
		call := func(name string, args object) string {
			_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
			if err == nil {
				t.Fatalf("a call of %s is accepted", name)
			}
			return strings.ReplaceAll(err.Error(), name, "NAME")
		}

		want := call("box__nothing", object{})
		got := []string{call(nameWrite, object{}), call(nameWrite, object{"wrong": 1}), call("gone__nothing", object{})}

		if !strings.Contains(want, "unknown tool") || slices.ContainsFunc(got, func(text string) bool { return text != want }) {
			t.Errorf("tools of others are answered with %q, want %q", got, want)
		}
		if got := call("box__raed", object{}); !strings.Contains(got, `did you mean "box__read"?`) {
			t.Errorf("a misspelt tool is answered with %q", got)
		}
		if got := call("box__wriet", object{}); got != want {
			t.Errorf("a misspelt tool of others is answered with %q, want %q", got, want)
		}
		listed, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range listed.Tools {
			if tool.Name == nameWrite {
				t.Errorf("the list has %s", tool.Name)
			}
		}
	})
}
