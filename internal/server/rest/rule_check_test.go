package rest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestRuleCheckCountsThePast has the mistakes with their places, the names, and
// the results for past actions, for viewers too.
func TestRuleCheckCountsThePast(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, foreign := h.tenant("check"), h.tenant("foreign")
	for _, args := range []object{{"n": 200}, {"n": 201, "to": "a"}, {"n": 5}, {"to": "b"}} {
		f.agent.send("POST", "/api/v1/actions", proposal("write", args)).wants(t, 201)
	}
	foreign.agent.send("POST", "/api/v1/actions", proposal("write", object{"n": 200})).wants(t, 201)
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	check := func(c *client, body object) (r wire.RuleChecked) {
		t.Helper()
		c.send("POST", "/api/v1/policy/check", body).wants(t, 200).into(t, &r)
		return r
	}

	got := check(viewer, object{"tool": "mail:write", "expression": "args.n > 100"})

	p := got.Past
	if p == nil || len(got.Errors) != 0 || p.Compared != 4 || !p.Complete || p.True.Count != 2 || p.False.Count != 1 || p.Failed.Count != 1 || len(p.Reasons) != 1 {
		t.Fatalf("check = %+v, %+v", got, p)
	}
	if len(p.True.Actions) != 2 || len(p.Failed.Actions) != 1 || len(got.Arguments) != 2 || got.Arguments[0] != (wire.ExpressionName{Name: "args.n", Type: "integer"}) || len(got.Variables) == 0 {
		t.Errorf("check = %+v, %+v", got, p)
	}
	if p := check(viewer, object{"tool": "mail:write", "expression": "true", "automation_id": "nightly"}).Past; p.Compared != 0 || p.Examined != 4 {
		t.Errorf("for an automation that proposed nothing: %+v", p)
	}
	if p := check(viewer, object{"tool": "*", "expression": "true", "limit": 3}).Past; p.Compared != 3 || p.Complete {
		t.Errorf("with a limit: %+v", p)
	}
	for text, want := range map[string]wire.ExpressionError{
		"true &&\n args.to == 'ż🙂' && args.m > 1": {Line: 2, Column: 25, Length: 2, Message: `the tool has no argument "m"; it has n, to`},
		"  ":                      {Message: "is empty"},
		strings.Repeat("ą", 4096): {Message: "has more than 4096 bytes"},
	} {
		if r := check(viewer, object{"tool": "mail:write", "expression": text}); r.Past != nil || len(r.Errors) != 1 || r.Errors[0] != want {
			t.Errorf("check(%.30q) = %+v, want %+v", text, r, want)
		}
	}
	viewer.send("POST", "/api/v1/policy/check", object{"tool": "mail:write", "expression": strings.Repeat("x", 4097)}).wants(t, 400)
	viewer.send("POST", "/api/v1/policy/check", object{"tool": "m*l:write", "expression": "true"}).wants(t, 400)
	viewer.send("POST", "/api/v1/policy/check", object{"tool": "mail:write", "expression": "true", "since": time.Now().Add(time.Hour)}).wants(t, 400)
	f.agent.send("POST", "/api/v1/policy/check", object{"tool": "mail:write", "expression": "true"}).wants(t, 403)
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleViewer, Tools: []string{"mail:read"}})
	narrow.send("POST", "/api/v1/policy/check", object{"tool": "mail:*", "expression": "true"}).wants(t, 403)
	noRead := f.holder(identity.Grant{Name: "policy", Role: identity.RoleViewer, Scopes: []identity.Scope{identity.PolicyRead}})
	if p := check(noRead, object{"tool": "mail:write", "expression": "true"}).Past; p.True.Count != 4 || len(p.True.Actions) != 0 {
		t.Errorf("without the scope of actions: %+v", p)
	}
}

// TestRuleCheckHasBoundedCost checks an expression that never ends within its
// bounds: it fails, and is not an error of the server.
func TestRuleCheckHasBoundedCost(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("costly")
	for range 3 {
		f.agent.send("POST", "/api/v1/actions", proposal("write", object{"to": strings.Repeat("a,", 20_000)})).wants(t, 201)
	}
	for _, text := range []string{
		`args.to.split(",").exists(a, args.to.split(",").exists(b, a + b == "x"))`,
		strings.Repeat(`args.to.contains("x") || `, 160) + "false",
	} {
		var r wire.RuleChecked
		f.operator.send("POST", "/api/v1/policy/check", object{"tool": "mail:write", "expression": text}).wants(t, 200).into(t, &r)
		if r.Past == nil || r.Past.Failed.Count != 3 || len(r.Past.Reasons) != 1 || !strings.HasPrefix(r.Past.Reasons[0], "it takes more") {
			t.Errorf("check(%.40q) = %+v, %+v", text, r, r.Past)
		}
	}
}
