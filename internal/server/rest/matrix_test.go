package rest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// matrixRows returns the rows of the matrix, read in pages of two.
func matrixRows(t *testing.T, c *client, query string) []wire.MatrixRow {
	t.Helper()
	var all []wire.MatrixRow
	for cursor := ""; ; {
		var page wire.Page[wire.MatrixRow]
		c.send("GET", "/api/v1/policy/matrix?limit=2"+query+cursor, nil).wants(t, 200).into(t, &page)
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

// TestTheMatrixHasTheDecisionsOfExplain compares the matrix of random policies
// with the explanation of each tool.
func TestTheMatrixHasTheDecisionsOfExplain(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("matrix")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	pattern := func() string {
		return pick("*", "mail:*", "*:write", "mail:read", "mail:write", "mail:danger", "other:*")
	}
	employees := []string{uuid.NewString(), uuid.NewString()}
	f.admin.send("PUT", "/api/v1/policy/sessions/s/"+pattern(), object{"mode": "deny", "expires_in": "1h"}).wants(t, 200)
	f.admin.send("POST", "/api/v1/policy/grants", object{"tool": "mail:write", "session_id": "s"}).wants(t, 201)

	for range 12 {
		doc := object{"danger": pick("deny", "require_approval"), "modes": []object{}, "rules": []object{}, "preferences": []object{}, "reviews": []object{}}
		seen := make(map[string]bool)
		add := func(section string, entry object) {
			if key := fmt.Sprint(section, entry["automation_id"], entry["employee_id"], entry["tool"]); !seen[key] {
				seen[key] = true
				doc[section] = append(doc[section].([]object), entry)
			}
		}
		for i := range random.IntN(5) {
			add("modes", object{"tool": pattern(), "mode": pick("allow", "require_approval", "deny")})
			add("modes", object{"tool": pattern(), "mode": pick("allow", "require_approval", "deny"), "automation_id": pick("a", "b")})
			add("rules", object{"rule_id": fmt.Sprint("r", i), "tool": pattern(), "expression": "true", "mode": "deny"})
			add("reviews", object{"tool": pattern(), "approvals": 2})
		}
		if random.IntN(2) == 0 {
			add("preferences", object{"tool": pattern()})
			add("preferences", object{"tool": pattern(), "employee_id": pick(employees...)})
		}
		f.admin.replace("/api/v1/policy", doc).wants(t, 200)
		asked := object{}
		query := ""
		for name, value := range map[string]string{"automation_id": pick("", "a", "b", "c"), "session_id": pick("", "s", "t"), "employee_id": pick("", employees[0])} {
			if value != "" {
				asked[name], query = value, query+"&"+name+"="+value
			}
		}

		rows := matrixRows(t, f.operator, query)

		if len(rows) < 3 || !slices.IsSortedFunc(rows, func(a, b wire.MatrixRow) int { return strings.Compare(a.Tool, b.Tool) }) {
			t.Fatalf("the matrix has the rows %v", rows)
		}
		for _, row := range rows {
			var want wire.Explanation
			asked["tool"] = row.Tool
			f.operator.send("POST", "/api/v1/policy/explain", asked).wants(t, 200).into(t, &want)
			want.Trace = slices.DeleteFunc(want.Trace, func(s wire.PolicyStep) bool { return s.Said == "" && s.Detail == "" })
			got := wire.Explanation{Tool: row.Tool, Mode: row.Mode, Source: row.Source, Trace: row.Trace, Decision: want.Decision, Version: want.Version}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d: %s for %q of %v (-explain +matrix):\n%s", seed, row.Tool, query, doc, diff)
			}
		}
	}
}

func TestTheMatrixCountsWhatCanApply(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("counted")
	mine, other := uuid.NewString(), uuid.NewString()
	f.admin.replace("/api/v1/policy", object{
		"rules": []object{
			{"rule_id": "all", "tool": "*", "expression": "true", "mode": "deny"}, {"rule_id": "off", "tool": "*", "expression": "true", "mode": "deny", "enabled": false},
			{"rule_id": "nightly", "tool": "mail:write", "expression": "true", "mode": "deny", "automation_id": "nightly"},
		},
		"reviews": []object{{"tool": "mail:*", "approvals": 2}, {"tool": "mail:write", "risk": "high", "approvals": 3}},
	}).wants(t, 200)
	for _, limit := range []object{{}, {"session_id": "s"}, {"automation_id": "nightly"}, {"employee_id": mine}} {
		limit["tool"] = "mail:write"
		f.admin.send("POST", "/api/v1/policy/grants", limit).wants(t, 201)
	}
	counts := func(query string) string {
		for _, row := range matrixRows(t, f.operator, query) {
			if row.Tool == "mail:write" {
				return fmt.Sprint(row.Rules, row.Reviews, row.Grants)
			}
		}
		return "no row"
	}

	for query, want := range map[string]string{
		"": "2 2 4", "&automation_id=nightly": "2 2 4", "&automation_id=daily": "1 2 3", "&session_id=t": "2 2 3", "&employee_id=" + other: "2 2 3",
		"&q=write": "2 2 4", "&q=nothinglikeit": "no row",
	} {
		if got := counts(query); got != want {
			t.Errorf("counts for %q = %s, want %s", query, got, want)
		}
	}
	f.list("mail", mailTools[0])
	if got := counts(""); got != "no row" {
		t.Errorf("counts of a tool that is no more = %s", got)
	}
}

func TestWhoSeesTheMatrix(t *testing.T) {
	t.Parallel()
	base := newFixture(t)
	f, stranger := base.tenant("seen"), base.tenant("unseen")
	stranger.list("mail", append(slices.Clone(mailTools), source.Tool{Name: "secret", InputSchema: mailTools[0].InputSchema})...)
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleOperator, Tools: []string{"mail:read"}})
	unscoped := f.holder(identity.Grant{Name: "unscoped", Role: identity.RoleOperator, Scopes: []identity.Scope{identity.ActionsPropose}})
	tools := func(c *client) (names []string) {
		for _, row := range matrixRows(t, c, "") {
			names = append(names, row.Tool)
		}
		return names
	}

	all := tools(viewer)

	if len(all) == 0 || slices.ContainsFunc(all, func(tool string) bool { return tool == "mail:secret" }) {
		t.Errorf("the matrix of one tenant has %v", all)
	}
	if got := tools(narrow); !slices.Equal(got, []string{"mail:read"}) {
		t.Errorf("the matrix of a token for one tool has %v", got)
	}
	for _, c := range []*client{f.agent, unscoped} {
		c.send("GET", "/api/v1/policy/matrix", nil).wants(t, 403)
	}
	for _, query := range []string{"employee_id=me", "q=", "automation_id=", "cursor=x", "limit=0", "unknown=1"} {
		f.operator.send("GET", "/api/v1/policy/matrix?"+query, nil).wants(t, 400)
	}
	if row := matrixRows(t, viewer, "")[0]; row.Mode == envelope.Mode("") || len(row.Trace) == 0 {
		t.Errorf("row = %+v", row)
	}
}
