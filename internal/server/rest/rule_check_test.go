package rest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestUsageCountsTheActionsOfRulesAndGrants counts by the stored decisions: of
// rules that applied, of the grant that allowed, and of no other tenant.
func TestUsageCountsTheActionsOfRulesAndGrants(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, foreign := h.tenant("usage"), h.tenant("unused")
	usage := func(c *client) (u wire.PolicyUsage) {
		t.Helper()
		c.send("GET", "/api/v1/policy/usage", nil).wants(t, 200).into(t, &u)
		return u
	}
	if u := usage(f.operator); u.Examined != 0 || !u.Complete || len(u.Rules)+len(u.Grants) != 0 {
		t.Errorf("without an action: %+v", u)
	}
	rule := func(id, expression string) {
		f.admin.send("PUT", "/api/v1/policy/rules/"+id, object{"tool": "mail:write", "expression": expression, "mode": "require_approval"}).wants(t, 200)
	}
	rule("large", "args.n > 100")
	rule("never", "args.n > 9000")
	rule("grant", "args.n == 200") // the name of a layer
	var made struct {
		ID string `json:"grant_id"`
	}
	f.admin.send("POST", "/api/v1/policy/grants", object{"tool": "mail:write", "pins": object{"/n": 200}}).wants(t, 201).into(t, &made)
	before := time.Now().Add(-time.Minute)

	for _, n := range []int{200, 200, 201, 5} {
		f.agent.send("POST", "/api/v1/actions", proposal("write", object{"n": n})).wants(t, 201)
	}

	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	got := usage(viewer)
	want := wire.PolicyUsage{
		Since: got.Since, Examined: 4, Complete: true,
		Rules: []wire.Usage{{ID: "grant", Count: 2}, {ID: "large", Count: 3}}, Grants: []wire.Usage{{ID: made.ID, Count: 2}},
	}
	for _, all := range [][]wire.Usage{got.Rules, got.Grants} {
		for i := range all {
			if all[i].LastAt.Before(before) {
				t.Errorf("last at %s, before the first action", all[i].LastAt)
			}
			all[i].LastAt = time.Time{}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if u := usage(foreign.admin); u.Examined != 0 || len(u.Rules)+len(u.Grants) != 0 {
		t.Errorf("of another tenant: %+v", u)
	}
	f.agent.send("GET", "/api/v1/policy/usage", nil).wants(t, 403)
}

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
