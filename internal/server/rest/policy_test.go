package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	api "github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// ruled makes one of everything that narrows or grants, under a name, and
// returns the id of the grant.
func (f *tenantFixture) ruled(name string) string {
	f.t.Helper()
	f.admin.send("PUT", "/api/v1/policy/rules/"+name, object{"tool": name + ":*", "expression": "true", "mode": "deny"}).wants(f.t, 200)
	f.admin.send("PUT", "/api/v1/policy/sessions/"+name+"/"+name+":*", object{"mode": "deny", "expires_in": "1m"}).wants(f.t, 200)
	f.operator.send("PUT", "/api/v1/preferences/"+name+":*", nil).wants(f.t, 200)
	var made struct {
		ID string `json:"grant_id"`
	}
	f.admin.send("POST", "/api/v1/policy/grants", object{"tool": "mail:danger"}).wants(f.t, 201).into(f.t, &made)
	return made.ID
}

func refund(n any) object { return object{"n": n} }

// TestRulesGrantsAndSessionsReachTheWay sets each and proposes the same call.
func TestRulesGrantsAndSessionsReachTheWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("policy")
	decided := func(c *client, args object) (string, string) {
		type made struct{ Policy struct{ Mode, Source string } }
		var v struct {
			made
			Action made // of a problem
		}
		c.send("POST", "/api/v1/actions", proposal("write", args)).into(t, &v)
		if v.Action.Policy.Mode != "" {
			v.made = v.Action
		}
		return v.Policy.Mode, v.Policy.Source
	}
	check := func(name string, c *client, args object, mode, source string) {
		t.Helper()
		if gotMode, gotSource := decided(c, args); gotMode != mode || gotSource != source {
			t.Errorf("%s: %s from %s, want %s from %s", name, gotMode, gotSource, mode, source)
		}
	}

	f.admin.send("PUT", "/api/v1/policy/modes/mail:write", object{"mode": "allow"}).wants(t, 200)
	check("allowed", f.agent, refund(200), "allow", "org_default")
	f.admin.send("PUT", "/api/v1/policy/rules/large", object{"tool": "mail:write", "expression": "args.n > 100", "mode": "require_approval", "reason": "More than 100"}).wants(t, 200)
	check("a rule that applies", f.agent, refund(200), "require_approval", "org_default+arguments:large")
	check("a rule that does not", f.agent, refund(20), "allow", "org_default")
	check("a rule that fails", f.agent, object{}, "require_approval", "org_default+arguments:large")

	var made struct {
		ID string `json:"grant_id"`
	}
	f.admin.send("POST", "/api/v1/policy/grants", object{"tool": "mail:write", "session_id": "s-one", "pins": object{"/n": 200}, "expires_in": "10m"}).wants(t, 201).into(t, &made)
	check("a grant", f.agent, refund(200), "allow", "org_default+arguments:large+grant:"+made.ID)
	check("another number than the grant's", f.agent, refund(201), "require_approval", "org_default+arguments:large")
	check("another session than the grant's", f.other, refund(200), "require_approval", "org_default+arguments:large")
	f.operator.send("DELETE", "/api/v1/policy/grants/"+made.ID, nil).wants(t, 204)
	check("a grant taken back", f.agent, refund(200), "require_approval", "org_default+arguments:large")
	f.operator.send("DELETE", "/api/v1/policy/grants/"+made.ID, nil).wants(t, 404)

	f.admin.send("PUT", "/api/v1/policy/sessions/s-two/mail:*", object{"mode": "deny", "expires_in": "10m"}).wants(t, 200)
	check("a session that may not", f.other, refund(20), "deny", "org_default+session_capability")
	check("another session", f.agent, refund(20), "allow", "org_default")

	f.operator.send("PUT", "/api/v1/preferences/mail:write", nil).wants(t, 200)
	check("switched off", f.agent, refund(20), "deny", "org_default+user_preference")
	f.operator.send("DELETE", "/api/v1/preferences/mail:write", nil).wants(t, 204)
	check("switched on again", f.agent, refund(20), "allow", "org_default")

	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAgent, Session: "s-three", Tools: []string{"mail:read"}})
	if p := narrow.send("POST", "/api/v1/actions", proposal("write", refund(20))).wants(t, 400).problem(t); len(p.Errors) != 1 || p.Errors[0].Rule != "unknown_tool" {
		t.Errorf("a token for others gets %+v, want the answer for a tool that does not exist", p)
	}
}

func TestRulesAreCheckedBeforeTheyAreStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("rules")
	for name, tt := range map[string]struct {
		body object
		want string
	}{
		"no boolean":             {object{"tool": "mail:*", "expression": "1 + 1", "mode": "deny"}, "must return true or false, not int"},
		"no such variable":       {object{"tool": "mail:*", "expression": "tool.sauce == 'x'", "mode": "deny"}, "line 1, column 5: undeclared reference to 'tool.sauce'"},
		"no such argument":       {object{"tool": "mail:write", "expression": "args.amount > 1", "mode": "deny"}, `the tool has no argument "amount"; it has n, to`},
		"a mode that allows":     {object{"tool": "mail:*", "expression": "true", "mode": "allow"}, "set the mode allow for the tool"},
		"a key of its own":       {object{"tool": "m*il:*", "expression": "true", "mode": "deny"}, "the pattern of tools must be"},
		"an expression too long": {object{"tool": "mail:*", "expression": strings.Repeat(" ", 4097), "mode": "deny"}, "max_length"},
	} {
		if a := f.admin.send("PUT", "/api/v1/policy/rules/r", tt.body).wants(t, 400); !strings.Contains(strings.ReplaceAll(string(a.body), `\"`, `"`), tt.want) {
			t.Errorf("%s: %s, want it to say %q", name, a.body, tt.want)
		}
	}
	f.admin.send("PUT", "/api/v1/policy/rules/Not%20so", object{"tool": "mail:*", "expression": "true", "mode": "deny"}).wants(t, 400)
	f.admin.send("PUT", "/api/v1/policy/rules/any", object{"tool": "mail:*", "expression": "args.amount > 1", "mode": "deny", "enabled": false}).wants(t, 200)

	var list struct {
		Items []struct {
			ID                     string `json:"rule_id"`
			Tool, Expression, Mode string
			Enabled                bool
			UpdatedBy              string `json:"updated_by"`
			Version                int
		}
	}
	f.operator.send("GET", "/api/v1/policy/rules", nil).wants(t, 200).into(t, &list)
	if len(list.Items) != 1 || list.Items[0].ID != "any" || list.Items[0].Enabled || list.Items[0].UpdatedBy != f.admin.named("admin") || list.Items[0].Version == 0 {
		t.Errorf("rules = %+v", list.Items)
	}
	f.admin.send("DELETE", "/api/v1/policy/rules/any", nil).wants(t, 204)
	f.admin.send("DELETE", "/api/v1/policy/rules/any", nil).wants(t, 404)
}

func TestGrantsAreCheckedBeforeTheyAreStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("grants")
	for name, tt := range map[string]struct {
		body   object
		status int
	}{
		"no one tool":        {object{"tool": "mail:*"}, 400},
		"no such tool":       {object{"tool": "mail:none"}, 404},
		"another definition": {object{"tool": "mail:write", "digest": "AQID"}, 409},
		"too long":           {object{"tool": "mail:write", "expires_in": "7776001s"}, 400},
		"no pointer":         {object{"tool": "mail:write", "pins": object{"to": 1}}, 400},
	} {
		if a := f.admin.send("POST", "/api/v1/policy/grants", tt.body); a.status != tt.status {
			t.Errorf("%s: %d, want %d: %s", name, a.status, tt.status, a.body)
		}
	}
	f.operator.send("POST", "/api/v1/policy/grants", object{"tool": "mail:write"}).wants(t, 403)

	f.admin.send("POST", "/api/v1/policy/grants", object{"tool": "mail:write", "digest": f.digest("write"), "pins": object{"/to": marker}, "reason": "r"}).wants(t, 201)

	var events string
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT string_agg(items::text, ' ') FROM events WHERE kind = 'configured'").Scan(&events)
	})
	if strings.Contains(events, marker) || !strings.Contains(events, "/to") {
		t.Errorf("the event of a grant names places and no values: %s", events)
	}
}

func TestExplainHasTheReasons(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("explain")
	f.admin.send("PUT", "/api/v1/policy/rules/large", object{"tool": "mail:write", "expression": "args.n > 100", "mode": "deny"}).wants(t, 200)
	c, err := api.New(f.url, f.operator.token, api.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tool := "mail:write"

	high, err := c.Explain(t.Context(), wire.Question{Tool: tool, Args: json.RawMessage(`{"n":200}`)})
	if err != nil {
		t.Fatal(err)
	}
	anything, err := c.Explain(t.Context(), wire.Question{Tool: tool})
	if err != nil {
		t.Fatal(err)
	}

	if high.Mode != envelope.ModeDeny || high.Source != "inferred_default+arguments:large" || high.Tool != "mail:write" || len(high.Trace) != 15 {
		t.Errorf("Explain = %+v", high)
	}
	if anything.Mode != envelope.ModeRequireApproval || anything.Decision == high.Decision {
		t.Errorf("Explain without arguments = %+v", anything)
	}
	for _, step := range high.Trace {
		if step.Layer == policy.LayerArguments && (step.Rule != "large" || step.Version == "") {
			t.Errorf("step = %+v", step)
		}
	}
	for pointer, question := range map[string]object{"/args/n": {"tool": "mail:write", "args": object{"n": "much"}}, "/tool": {"tool": "mail:none"}} {
		p := f.operator.send("POST", "/api/v1/policy/explain", question).wants(t, 400).problem(t)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("explain %v names %v, want %s", question, p.Errors, pointer)
		}
	}
	var list struct{ Items []any }
	if f.operator.send("GET", "/api/v1/actions", nil).wants(t, 200).into(t, &list); len(list.Items) != 0 {
		t.Errorf("%d actions came of explaining", len(list.Items))
	}
}

func TestAgentsSeeTheirOwnPreferences(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("preferences")
	mine, other := uuid.NewString(), uuid.NewString()
	agent := f.holder(identity.Grant{Name: "bound", Role: identity.RoleAgent, Employee: envelope.EmployeeID(uuid.MustParse(mine))})
	for _, at := range []string{"a:*", "b:*?employee_id=" + mine, "c:*?employee_id=" + other} {
		f.operator.send("PUT", "/api/v1/preferences/"+at, nil).wants(t, 200)
	}
	keys := func(c *client, query string) string {
		var list struct{ Items []struct{ Tool string } }
		c.send("GET", "/api/v1/preferences"+query, nil).wants(t, 200).into(t, &list)
		return fmt.Sprint(list.Items)
	}

	got := []string{keys(agent, ""), keys(agent, "?employee_id="+mine), keys(f.agent, ""), keys(f.operator, "?employee_id="+other), keys(f.operator, "")}

	want := []string{"[{a:*} {b:*}]", "[{a:*} {b:*}]", "[{a:*}]", "[{a:*} {c:*}]", ""}
	want[4] = got[4]
	if diff := cmp.Diff(want, got); diff != "" || strings.Count(got[4], ":*") != 3 {
		t.Errorf("preferences (-want +got):\n%s", diff)
	}
	agent.send("GET", "/api/v1/preferences?employee_id="+other, nil).wants(t, 403)
	agent.send("PUT", "/api/v1/preferences/a:*", nil).wants(t, 403)
}
