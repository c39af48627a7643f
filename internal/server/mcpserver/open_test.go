package mcpserver_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// A call beyond the limit of waits is accepted and answered without a wait; a
// request that only waits is refused.
func TestWaitsOfATokenAreLimitedOverMCP(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{Wait: waitLimit}).tenant("acme")
		f.mcp.Waits = request.NewOpenLimit("waits", 1)
		c, other := f.connect(f.agent, version), f.connect(f.other, version)
		first := c.start(t.Context(), nameWrite, object{"to": "ada"})
		c.nextProgress() // it is waiting now
		open := f.only()

		second := c.call(nameWrite, object{"to": "bob"}).wants(t, "pending", false).id(t)
		c.call("countersign_wait", object{"action_id": second.String(), "seconds": 60}).wants(t, "limited", true)
		theirs := other.start(t.Context(), nameWrite, object{"to": "cem"})
		other.nextProgress()
		f.grant(open)
		c.end(first)

		again := c.start(t.Context(), "countersign_wait", object{"action_id": second.String(), "seconds": 60})
		c.nextProgress() // there is room again
		f.grant(second)
		c.end(again)
		for _, id := range f.actions() {
			if id != open && id != second {
				f.grant(id)
			}
		}
		other.end(theirs)
	})
}

func TestStreamsOfATokenAreLimitedOverMCP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	f.mcp.Streams = request.NewOpenLimit("streams", 2)
	token, theirs := f.agent.Token.Text(), f.other.Token.Text()
	listen := func(token string) *http.Response {
		res := f.open(t.Context(), "POST", token, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`,
			"Mcp-Protocol-Version", withoutSessions, "Mcp-Method", "subscriptions/listen")
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	for range 2 {
		res := f.open(t.Context(), "GET", token, "", "Mcp-Session-Id", f.session(token))
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.StatusCode != http.StatusOK {
			t.Fatalf("a stream = %d, want 200", res.StatusCode)
		}
	}

	third := f.send("GET", token, "", "Mcp-Session-Id", f.session(token))
	listening := listen(token)
	other := listen(theirs)

	if third.status != http.StatusTooManyRequests || third.header.Get("Retry-After") == "" {
		t.Errorf("the third stream of a token = %d, Retry-After %q, want 429 with it", third.status, third.header.Get("Retry-After"))
	}
	if listening.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a stream of the newer protocol beyond the limit = %d, want 429", listening.StatusCode)
	}
	if other.StatusCode == http.StatusTooManyRequests {
		t.Error("a stream of another token is refused too")
	}
}

// A call over MCP names no automation and no employee with any arguments,
// _meta or rights of its token: only the token's own employee counts.
func TestCallsOverMCPNameNoEmployee(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	employee := envelope.EmployeeID(uuid.New())
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := limits.PutEmployee(ctx, tx, f.id, limits.Employee{ID: employee, Name: "Eve", Trust: "high"}, "test"); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, f.id, "newsletter", "box:danger", envelope.ModeAllow, "test")
	})
	named := object{"automation_id": "newsletter", "employee_id": employee.String()}
	meta := sdk.Meta{"automation_id": "newsletter", "employee_id": employee.String(), "countersign.dev/automation": "newsletter"}
	every := f.connect(f.holder(identity.Grant{Name: "every", Role: identity.RoleAgent, Session: "every", Names: identity.EveryName()}), withSessions)
	own := f.connect(f.holder(identity.Grant{Name: "own", Role: identity.RoleAgent, Session: "own", Employee: employee}), withSessions)

	denied := every.callWith(nameDanger, named, meta)
	every.callWith(nameRead, named, meta)
	own.callWith(nameRead, named, meta)

	if denied.content.Status != "denied" {
		t.Errorf("a call that names an automation in its arguments = %s, want it denied", denied.raw)
	}
	got := map[string]string{}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT session_id, coalesce(automation_id, '') || coalesce(employee_id::text, '') FROM actions")
		if err != nil {
			return err
		}
		var session, names string
		_, err = pgx.ForEachRow(rows, []any{&session, &names}, func() error {
			got[session] += names
			return nil
		})
		return err
	})
	if got["every"] != "" || got["own"] != employee.String() {
		t.Errorf("the actions name %v, want only the token's own employee", got)
	}
}
