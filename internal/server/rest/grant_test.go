package rest_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// write proposes the tool that needs approval, and returns the phase.
func (c *client) write(args object, fields ...object) string {
	c.t.Helper()
	return c.phase("write", args, fields...)
}

// phase proposes a tool and returns the phase.
func (c *client) phase(tool string, args object, fields ...object) string {
	c.t.Helper()
	p := proposal(tool, args)
	for _, more := range fields {
		maps.Copy(p, more)
	}
	return c.send("POST", "/api/v1/actions", p).wants(c.t, 201).action(c.t).Phase
}

func TestGrantNeverCoversItsMaker(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("maker")
	ada := f.somebody("ada", identity.RoleAdmin)
	maker := f.holder(identity.Grant{Name: "ada", Role: identity.RoleAdmin, Operator: ada})
	another := f.holder(identity.Grant{Name: "ada, laptop", Role: identity.RoleOperator, Operator: ada})
	agent := f.holder(identity.Grant{Name: "ada's agent", Role: identity.RoleAgent, Operator: ada})

	maker.send("POST", "/api/v1/policy/grants", object{"tool": "mail:write", "pins": object{"/to": "a"}}).wants(t, 201)
	id := f.mail(object{"to": "b"})
	maker.send("POST", path(id, "/approve"), object{"always": object{"scope": "tenant", "pins": "all"}}).wants(t, 200)

	for _, to := range []string{"a", "b"} {
		for name, c := range map[string]*client{"the maker": maker, "another token of the person": another, "an agent of the person": agent} {
			if phase := c.write(object{"to": to}); phase != "pending" {
				t.Errorf("%s proposes to %s: it is %s, want pending", name, to, phase)
			}
		}
		if phase := f.operator.write(object{"to": to}); phase != "approved" {
			t.Errorf("somebody else proposes to %s: it is %s, want approved", to, phase)
		}
	}
}

func TestWideGrantsNeedPolicyWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("wide")
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAdmin, Scopes: []identity.Scope{identity.ApprovalsDecide, identity.ActionsRead}})
	id := f.mail(object{"to": "a"})

	for name, always := range map[string]object{
		"with everything loose":   {"loose": []string{""}},
		"with all members loose":  {"loose": []string{"/to"}},
		"with an empty list":      {"pins": []string{}},
		"for everybody":           {"scope": "tenant", "pins": "all"},
		"everybody, without pins": {"scope": "tenant"},
	} {
		for who, c := range map[string]*client{"an operator": f.operator, "a narrowed admin": narrow} {
			if got := c.send("POST", path(id, "/approve"), object{"always": always}); got.status != 403 {
				t.Errorf("%s grants %s = %d, want 403", who, name, got.status)
			}
		}
	}
	if got := f.operator.pendingAction(id); got.Phase != "pending" {
		t.Errorf("it is %s after refused grants, want pending", got.Phase)
	}
	f.operator.send("POST", path(id, "/approve"), object{"always": object{"pins": []string{"/to"}}}).wants(t, 200)
	f.admin.send("POST", path(f.mail(object{"to": "b"}), "/approve"), object{"always": object{"scope": "tenant"}}).wants(t, 200)
}

// A grant without an action is for the arguments that it names and no others.
func TestGrantsByHandAreStrict(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("by-hand")
	make := func(body object) answer {
		body["tool"] = "mail:danger"
		return f.admin.send("POST", "/api/v1/policy/grants", body)
	}
	f.admin.send("PUT", "/api/v1/policy/modes/mail:danger", object{"mode": "require_approval"}).wants(t, 200)
	var preview struct {
		Loose []string
		Pins  map[string]any
	}
	f.admin.send("POST", "/api/v1/policy/grants?dry_run=true", object{"tool": "mail:danger", "pins": object{"/to": "a"}}).wants(t, 200).into(t, &preview)
	if phase := f.agent.phase("danger", object{"to": "a"}); phase != "pending" || len(preview.Loose) != 0 || len(preview.Pins) != 1 {
		t.Errorf("after a dry run %+v the call is %s", preview, phase)
	}
	make(object{}).wants(t, 201)
	make(object{"pins": object{"/to": "a", "/o/x": 1}}).wants(t, 201)
	make(object{"pins": object{"/to": "b"}, "loose": []string{"/n"}}).wants(t, 201)
	make(object{"pins": object{"/to/0": "b"}}).wants(t, 400)
	for _, tt := range []struct {
		args object
		want string
	}{
		{object{}, "approved"}, {object{"n": 1}, "pending"}, {object{"to": "a"}, "pending"}, {object{"to": "a", "o": object{"x": 1}}, "approved"},
		{object{"to": "a", "o": object{"x": 1, "y": 1}}, "pending"}, {object{"to": "b"}, "approved"}, {object{"to": "b", "n": 99999}, "approved"},
		{object{"to": "b", "cc": "a"}, "pending"},
	} {
		if phase := f.agent.phase("danger", tt.args); phase != tt.want {
			t.Errorf("%v is %s, want %s", tt.args, phase, tt.want)
		}
	}
	make(object{"loose": []string{""}}).wants(t, 201)
	if phase := f.agent.phase("danger", object{"anything": 1}); phase != "approved" {
		t.Errorf("with everything loose it is %s", phase)
	}
}

// A token with tokens:manage alone cannot enter a session that has a grant or that
// a rule names.
func TestTokenForASessionNeedsTheRightToLoosen(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("sessions")
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	narrow := f.holder(identity.Grant{Name: "no policy:write", Role: identity.RoleAdmin, Scopes: rest})
	f.operator.send("POST", path(f.mail(object{"to": "ana"}), "/approve"), object{"always": object{"pins": []string{"/to"}}}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/policy/modes/mail:read", object{"mode": "allow"}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/policy/rules/trusted", object{"tool": "mail:read", "expression": "envelope.session != 'trusted'", "mode": "deny"}).wants(t, 200)
	scopes := []string{"actions:propose", "actions:read"}
	other := f.holder(identity.Grant{Name: "other", Role: identity.RoleAgent, Session: "s-two", Scopes: []identity.Scope{identity.ActionsPropose}})
	token := func(by *client, role, session string) answer {
		body := object{"name": "x", "role": role, "scopes": scopes}
		if session != "" {
			body["session_id"] = session
		}
		return by.send("POST", "/api/v1/tokens", body)
	}

	for name, got := range map[string]answer{
		"the agent's session":      token(narrow, "agent", "s-one"),
		"a session of a rule":      token(narrow, "agent", "trusted"),
		"one for a person's token": token(narrow, "operator", "trusted"),
		"the agent's secret":       narrow.send("POST", "/api/v1/tokens/"+other.id.String()+"/rotate", nil),
	} {
		if got.status != http.StatusForbidden || !strings.Contains(string(got.body), "policy:write") {
			t.Errorf("%s = %d, want 403: %s", name, got.status, got.body)
		}
	}
	var more shownToken
	token(narrow, "agent", "").wants(t, 201).into(t, &more)
	agent := &client{fixture: f.fixture, token: more.Token}
	if got := agent.held([]object{proposal("write", object{"to": "ana"}), proposal("read", object{})}); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("what the new agent proposes is held to %v, want 1 and 2", got)
	}
	token(f.admin, "agent", "trusted").wants(t, 201)
	f.admin.send("POST", "/api/v1/tokens/"+other.id.String()+"/rotate", nil).wants(t, 200)
}

func TestPeopleDoNotProposeInAnAgentsSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("claim")
	step := object{"external_id": "w", "session_id": "s-one", "steps": []any{object{"tool": "mail:read", "inputs": object{}}}}
	mine := proposal("write", object{"to": "a"})
	theirs := proposal("write", object{"to": "a"})
	mine["session_id"], theirs["session_id"] = "my own", "s-one"
	every := f.holder(identity.Grant{Name: "every", Role: identity.RoleOperator, Names: identity.EveryName()})

	for name, got := range map[string]answer{
		"a proposal": every.send("POST", "/api/v1/actions", theirs),
		"a dry run":  every.send("POST", "/api/v1/actions?dry_run=true", theirs),
		"a call":     f.admin.send("POST", "/api/v1/tools/mail:write", object{"external_id": "c", "inputs": object{}, "session_id": "s-one"}),
		"a workflow": f.admin.send("POST", "/api/v1/workflows", step),
	} {
		if got.status != 400 || got.problem(t).Errors[0].Pointer != "/session_id" {
			t.Errorf("%s in an agent's session = %d %s, want 400 at /session_id", name, got.status, got.body)
		}
	}
	var many struct {
		Items []struct{ Result string }
	}
	every.send("POST", "/api/v1/actions/batch", object{"items": []any{theirs, mine}}).wants(t, 200).into(t, &many)
	if len(many.Items) != 2 || many.Items[0].Result != "refused" || many.Items[1].Result != "accepted" {
		t.Errorf("a batch = %+v, want refused and accepted", many.Items)
	}
	if _, err := f.issue(identity.Grant{Name: "x", Role: identity.RoleOperator, Session: "s-one"}); err == nil {
		t.Error("a person's token was bound to an agent's session")
	}
	f.holder(identity.Grant{Name: "program", Role: identity.RoleOperator, Session: "program"})
	if _, err := f.issue(identity.Grant{Name: "y", Role: identity.RoleAgent, Session: "program"}); err == nil {
		t.Error("an agent's token was bound to a person's session")
	}
}
