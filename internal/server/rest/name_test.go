package rest_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// TestProposalsNameOnlyNamesOfTheirToken names an automation that policy allows
// more, and an employee with a scope that a tool needs.
func TestProposalsNameOnlyNamesOfTheirToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("names")
	ana := uuid.New()
	f.admin.send("PUT", "/api/v1/policy/modes/mail:danger?automation_id=newsletter", object{"mode": "allow"}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/tools/mail:read/rule", object{"scopes": []string{"pay:any"}}).wants(t, 200)
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		everybody := limits.Employee{Trust: policy.TrustHigh}
		if err := limits.PutEmployee(ctx, tx, f.id, everybody, "test"); err != nil {
			return err
		}
		return limits.PutEmployee(ctx, tx, f.id, limits.Employee{ID: envelope.EmployeeID(ana), Trust: policy.TrustHigh, Scopes: []string{"pay:any"}}, "test")
	})
	named := f.holder(identity.Grant{
		Name: "named", Role: identity.RoleAgent, Names: identity.Names{Automations: []string{"news*"}, Employees: []string{ana.String()}},
	})
	own := f.holder(identity.Grant{Name: "own", Role: identity.RoleAgent, Employee: envelope.EmployeeID(ana)})
	automation, employee := object{"automation_id": "newsletter"}, object{"employee_id": ana.String()}
	with := func(p object, more object) object {
		all := object{}
		for _, part := range []object{p, more} {
			maps.Copy(all, part)
		}
		return all
	}

	for name, tt := range map[string]struct {
		by             *client
		tool           string
		names          object
		pointer        string
		wants, invokes int
	}{
		"an agent names an automation":            {f.agent, "danger", automation, "/automation_id", 403, 403},
		"an agent names an employee":              {f.agent, "read", employee, "/employee_id", 403, 403},
		"an operator names an automation":         {f.operator, "danger", automation, "/automation_id", 403, 403},
		"an operator names an employee":           {f.operator, "read", employee, "/employee_id", 403, 403},
		"a token for the automation":              {named, "danger", automation, "", 201, 202},
		"a token for the employee":                {named, "read", employee, "", 201, 202},
		"an employee's own token":                 {own, "read", employee, "", 201, 202},
		"an employee's own token, without a word": {own, "read", object{}, "", 201, 202},
		"a token for another automation":          {named, "danger", object{"automation_id": "other"}, "/automation_id", 403, 403},
		"an administrator":                        {f.admin, "danger", automation, "", 201, 202},
	} {
		one := tt.by.send("POST", "/api/v1/actions", with(proposal(tt.tool, object{}), tt.names))
		call := tt.by.send("POST", "/api/v1/tools/mail:"+tt.tool, with(object{"external_id": uuid.NewString(), "wait": "0s"}, tt.names))
		if one.status != tt.wants || call.status != tt.invokes {
			t.Errorf("%s: submit = %d, invoke = %d, want %d and %d: %s", name, one.status, call.status, tt.wants, tt.invokes, one.body)
			continue
		}
		step := with(object{"external_id": uuid.NewString(), "steps": []any{object{"tool": "mail:" + tt.tool}}}, tt.names)
		flow := tt.by.send("POST", "/api/v1/workflows", step)
		var many struct {
			Items []struct {
				Result  string
				Problem *shownProblem
			}
		}
		tt.by.send("POST", "/api/v1/actions/batch", object{"items": []any{with(proposal(tt.tool, object{}), tt.names)}}).wants(t, 200).into(t, &many)
		if tt.pointer == "" {
			if flow.status != 201 || many.Items[0].Result != "accepted" {
				t.Errorf("%s: workflow = %d, batch = %+v, want both accepted: %s", name, flow.status, many.Items[0], flow.body)
			}
			continue
		}
		for way, p := range map[string]shownProblem{"submit": one.problem(t), "invoke": call.problem(t), "workflow": flow.problem(t)} {
			if p.Status != 403 || len(p.Errors) != 1 || p.Errors[0].Pointer != tt.pointer {
				t.Errorf("%s by %s is refused with %+v, want 403 at %s", name, way, p, tt.pointer)
			}
		}
		if p := many.Items[0].Problem; p == nil || p.Status != 403 || p.Errors[0].Pointer != "/items/0"+tt.pointer {
			t.Errorf("%s in a batch = %+v", name, many.Items[0])
		}
	}
}

// A grant holds in one session, and a rule requires approval in all others: a
// proposal that names the session needs a token that may name it.
func TestProposalsNameOnlySessionsOfTheirToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("sessions")
	f.admin.send("POST", "/api/v1/policy/grants", object{"tool": "mail:write", "session_id": "trusted"}).wants(t, 201)
	f.admin.send("PUT", "/api/v1/policy/rules/untrusted", object{
		"tool": "mail:read", "expression": `envelope.session != "trusted"`, "mode": "require_approval", "enabled": true,
	}).wants(t, 200)
	named := f.holder(identity.Grant{Name: "named", Role: identity.RoleOperator, Names: identity.Names{Sessions: []string{"trust*"}}})
	other := f.holder(identity.Grant{Name: "other", Role: identity.RoleOperator, Names: identity.Names{Sessions: []string{"trust"}}})
	bound := f.holder(identity.Grant{Name: "bound", Role: identity.RoleOperator, Session: "trusted"})

	for name, tt := range map[string]struct {
		by            *client
		session       string
		refused, runs bool
	}{
		"an operator outside":                 {f.operator, "", false, false},
		"an operator who names the session":   {f.operator, "trusted", true, false},
		"a token for another session":         {other, "trusted", true, false},
		"a token for the session":             {named, "trusted", false, true},
		"a token for the session, outside":    {named, "", false, false},
		"a token of the session":              {bound, "", false, true},
		"whoever may loosen":                  {f.owner(), "trusted", false, true},
		"an operator who names any session":   {f.operator, "any", true, false},
		"whoever may loosen, another session": {f.owner(), "any", false, false},
	} {
		for _, tool := range []string{"read", "write"} {
			with := func(p object) object {
				if tt.session != "" {
					p["session_id"] = tt.session
				}
				return p
			}
			one := tt.by.send("POST", "/api/v1/actions", with(proposal(tool, object{})))
			all := map[string]answer{
				"submit":   one,
				"invoke":   tt.by.send("POST", "/api/v1/tools/mail:"+tool, with(object{"external_id": uuid.NewString(), "wait": "0s"})),
				"dry run":  tt.by.send("POST", "/api/v1/tools/mail:"+tool, with(object{"dry_run": true})),
				"workflow": tt.by.send("POST", "/api/v1/workflows", with(object{"external_id": uuid.NewString(), "steps": []any{object{"tool": "mail:" + tool}}})),
			}
			for way, a := range all {
				if !tt.refused {
					if a.status >= 300 {
						t.Errorf("%s: %s of %s = %d, want it accepted: %s", name, way, tool, a.status, a.body)
					}
				} else if a.status != 403 || a.problem(t).Errors[0].Pointer != "/session_id" {
					t.Errorf("%s: %s of %s = %d, want 403 at /session_id: %s", name, way, tool, a.status, a.body)
				}
			}
			if tt.refused {
				continue
			}
			var is struct{ Phase string }
			if one.into(t, &is); (is.Phase == "approved") != tt.runs {
				t.Errorf("%s: %s is %s, want it to run without people: %t", name, tool, is.Phase, tt.runs)
			}
		}
	}
}

func TestIssuedNamesNeedTheSameNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("hand-out")
	narrow := f.holder(identity.Grant{
		Name: "n", Role: identity.RoleAdmin, Scopes: []identity.Scope{identity.TokensManage}, Names: identity.Names{Automations: []string{"news*"}, Sessions: []string{"chat-*"}},
	})
	scopes := []string{"tokens:manage"}

	for name, tt := range map[string]struct {
		by   *client
		body object
		want int
	}{
		"any, by an administrator": {f.admin, object{"name": "x", "role": "agent", "automations": []string{"*"}, "employees": []string{"*"}}, 201},
		"its own":                  {narrow, object{"name": "x", "role": "agent", "scopes": scopes, "automations": []string{"newsletter", "newsy*"}}, 201},
		"others":                   {narrow, object{"name": "x", "role": "agent", "scopes": scopes, "automations": []string{"new*"}}, 403},
		"its own sessions":         {narrow, object{"name": "x", "role": "operator", "scopes": scopes, "sessions": []string{"chat-1", "chat-b*"}}, 201},
		"other sessions":           {narrow, object{"name": "x", "role": "operator", "scopes": scopes, "sessions": []string{"chat*"}}, 403},
		"no session":               {f.admin, object{"name": "x", "role": "operator", "sessions": []string{}}, 400},
		"a star within a session":  {f.admin, object{"name": "x", "role": "operator", "sessions": []string{"a*b"}}, 400},
		"an employee":              {narrow, object{"name": "x", "role": "agent", "scopes": scopes, "employees": []string{uuid.NewString()}}, 403},
		"an employee's own token":  {narrow, object{"name": "x", "role": "agent", "scopes": scopes, "employee_id": uuid.NewString()}, 403},
		"a star within":            {f.admin, object{"name": "x", "role": "agent", "automations": []string{"a*b"}}, 400},
		"no employee":              {f.admin, object{"name": "x", "role": "agent", "employees": []string{"ana"}}, 400},
	} {
		if a := tt.by.send("POST", "/api/v1/tokens", tt.body); a.status != tt.want {
			t.Errorf("%s = %d, want %d: %s", name, a.status, tt.want, a.body)
		}
	}
	var list struct {
		Items []struct{ Automations, Employees, Sessions []string }
	}
	f.admin.send("GET", "/api/v1/tokens", nil).wants(t, 200).into(t, &list)
	for _, want := range [][2][]string{{{"newsletter", "newsy*"}, nil}, {nil, {"chat-1", "chat-b*"}}} {
		if !slices.ContainsFunc(list.Items, func(i struct{ Automations, Employees, Sessions []string }) bool {
			return slices.Equal(i.Automations, want[0]) && i.Employees == nil && slices.Equal(i.Sessions, want[1])
		}) {
			t.Errorf("tokens are shown as %+v, want one for %q", list.Items, want)
		}
	}
}

// A person who makes tokens stays one person, with any names of the tokens.
func TestTokensOfOneMakerAreOnePerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("maker")
	f.admin.send("PUT", "/api/v1/reviews/*", object{"approvals": 2}).wants(t, 200)
	issue := func(by *client, name string) *client {
		var made shownToken
		by.send("POST", "/api/v1/tokens", object{"name": name, "role": "operator"}).wants(t, 201).into(t, &made)
		return &client{fixture: f.fixture, token: made.Token}
	}
	first, second := issue(f.admin, "first"), issue(f.admin, "second")
	id := f.agent.propose("write")

	first.send("POST", path(id, "/approve"), nil).wants(t, 200)
	second.send("POST", path(id, "/approve"), nil)
	f.admin.send("POST", path(id, "/approve"), nil)

	if got := f.operator.pendingAction(id); got.Phase != "pending" {
		t.Errorf("an action that two must agree to is %s after one person's three votes, want pending", got.Phase)
	}
	f.operator.send("POST", path(id, "/approve"), nil).wants(t, 200)
	if got := f.operator.pendingAction(id); got.Phase != "approved" {
		t.Errorf("it is %s after another person's vote, want approved", got.Phase)
	}
	mine := first.propose("write")
	second.send("POST", path(mine, "/approve"), nil).wants(t, 403)
}

func TestNarrowedTokensIssueNoWiderTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("people")
	narrow := f.holder(identity.Grant{Name: "n", Role: identity.RoleOwner, Scopes: []identity.Scope{identity.OperatorsManage}})
	issuer := object{"issuer": "https://login.example.org", "audience": "countersign-" + f.id.String(), "role_claim": "groups", "roles": object{"x": "owner"}}

	narrow.send("POST", "/api/v1/operators", object{"name": "x", "role_set": "admin"}).wants(t, 403)
	narrow.send("POST", "/api/v1/operators", object{"name": "x", "role_set": "operator"}).wants(t, 403)
	narrow.send("POST", "/api/v1/operators", object{"name": "x", "role_set": "viewer"}).wants(t, 201)
	narrow.send("PUT", "/api/v1/identity-providers/x", issuer).wants(t, 403)
	f.owner().send("PUT", "/api/v1/identity-providers/x", issuer).wants(t, 200)
}
