package rest_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/policies"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// policyChanges returns the changes in a response of putPolicy as "section
// name change", without unchanged entries.
func policyChanges(t *testing.T, a answer) []string {
	t.Helper()
	var got struct {
		DryRun  bool `json:"dry_run"`
		Changes []struct{ Change, Section, Name string }
	}
	a.wants(t, 200).into(t, &got)
	changes := []string{}
	for _, c := range got.Changes {
		if c.Change != "unchanged" {
			changes = append(changes, c.Section+" "+c.Name+" "+c.Change)
		}
	}
	return changes
}

func TestTenantSetsTheModeOfDanger(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("danger")
	const all = "/api/v1/policy"
	denied := func() (tools int, names []string, message string) {
		t.Helper()
		var list struct {
			Items []struct {
				ID     string `json:"source_id"`
				Tools  int
				Denied *struct {
					Count   int
					Tools   []string
					Message string
				}
			}
		}
		f.operator.send("GET", "/api/v1/sources", nil).wants(t, 200).into(t, &list)
		for _, src := range list.Items {
			if src.ID == "mail" && src.Denied != nil {
				return src.Tools, src.Denied.Tools, src.Denied.Message
			} else if src.ID == "mail" {
				tools = src.Tools
			}
		}
		return tools, nil, ""
	}
	call := func(id string) int {
		return f.agent.send("POST", "/api/v1/actions", object{"type": "mcp.exec", "external_id": id, "tool": object{"source": "mail", "name": "danger"}, "args": object{}}).status
	}

	if tools, names, message := denied(); tools != 3 || len(names) != 1 || names[0] != "danger" || !strings.Contains(message, "1 of 3 tools") || !strings.Contains(message, "countersign policy danger require_approval") {
		t.Errorf("the source offers %d tools, denied %v: %q", tools, names, message)
	}
	if got := call("a"); got != 403 {
		t.Errorf("a dangerous tool = %d, want 403", got)
	}
	f.operator.replace(all, object{"danger": "require_approval"}).wants(t, 403)
	f.admin.replace(all, object{"danger": "allow"}).wants(t, 400)
	if diff := cmp.Diff([]string{"danger  changed"}, policyChanges(t, f.admin.replace(all, object{"danger": "require_approval"}))); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if got := call("b"); got != 201 {
		t.Errorf("the tool where danger requires approval = %d, want 201", got)
	}
	if tools, names, _ := denied(); tools != 3 || names != nil {
		t.Errorf("the source offers %d tools, denied %v, want none", tools, names)
	}
	if diff := cmp.Diff([]string{"mail:danger", "mail:read", "mail:write"}, f.agent.tools("").keys()); diff != "" {
		t.Errorf("an agent sees (-want +got):\n%s", diff)
	}

	// A mode that is set for the tool comes first, and back is back.
	f.admin.send("PUT", "/api/v1/policy/modes/mail:danger", object{"mode": "deny"}).wants(t, 200)
	if _, names, _ := denied(); names != nil || call("c") != 403 {
		t.Errorf("a mode of its own is named as danger's: %v", names)
	}
	f.admin.send("DELETE", "/api/v1/policy/modes/mail:danger", nil).wants(t, 204)
	policyChanges(t, f.admin.replace(all, object{"danger": "deny"}))
	if _, names, _ := denied(); len(names) != 1 || call("d") != 403 {
		t.Errorf("after deny, denied = %v", names)
	}
}

func TestPolicyIsOneDocument(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("document")
	doc := object{
		"danger": "deny",
		"modes":  []any{object{"tool": "mail:*", "mode": "allow"}, object{"tool": "*", "mode": "deny", "automation_id": "nightly"}},
		"rules": []any{
			object{"rule_id": "large", "tool": "mail:write", "expression": "args.n > 100", "mode": "require_approval", "reason": "Large: #1", "enabled": true},
			object{"rule_id": "off", "tool": "*", "expression": "true", "mode": "deny", "enabled": false},
		},
		"preferences": []any{object{"tool": "mail:danger"}},
		"reviews":     []any{object{"tool": "*", "risk": "high", "approvals": 2.0, "wait": "1d", "warn": "1h"}},
	}
	const all = "/api/v1/policy"
	f.admin.send("PUT", "/api/v1/policy/modes/old:*", object{"mode": "deny"}).wants(t, 200)

	want := []string{
		"modes old:* removed", "modes mail:* added", "modes * of automation nightly added", "rules large added", "rules off added",
		"preferences mail:danger added", "reviews * from risk high added",
	}
	if diff := cmp.Diff(want, policyChanges(t, f.admin.send("PUT", all+"?dry_run=true", doc))); diff != "" {
		t.Errorf("would change (-want +got):\n%s", diff)
	}
	var before, after object
	f.operator.send("GET", all, nil).wants(t, 200).into(t, &before)
	if diff := cmp.Diff([]any{object{"tool": "old:*", "mode": "deny"}}, before["modes"]); diff != "" {
		t.Errorf("after a dry run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, policyChanges(t, f.admin.replace(all, doc))); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	f.operator.send("GET", all, nil).wants(t, 200).into(t, &after)
	if diff := cmp.Diff(doc, after); diff != "" {
		t.Errorf("read back (-put +got):\n%s", diff)
	}
	version := f.version()
	if got := policyChanges(t, f.admin.replace(all, after)); len(got) != 0 || f.version() != version {
		t.Errorf("put back, it changes %v, and version %d to %d", got, version, f.version())
	}
	if got := policyChanges(t, f.admin.replace(all, object{"rules": []any{}})); !cmp.Equal(got, []string{"rules large removed", "rules off removed"}) {
		t.Errorf("an empty section changes %v", got)
	}
	if got := policyChanges(t, f.admin.replace(all, object{})); len(got) != 0 {
		t.Errorf("an empty document changes %v", got)
	}
	f.checkpoint()
	events := string(f.operator.send("GET", "/api/v1/audit/events", nil).wants(t, 200).body)
	for _, text := range []string{"policy rule large added", "policy mode old:* removed", "args.n"} {
		if !strings.Contains(events, text) {
			t.Errorf("no event says %q", text)
		}
	}
}

// version is that of the tenant's configuration.
func (f *tenantFixture) version() (v int64) {
	f.t.Helper()
	if err := f.db.QueryRow(f.t.Context(), "SELECT config_version FROM tenants WHERE tenant_id = $1", f.id.String()).Scan(&v); err != nil {
		f.t.Fatal(err)
	}
	return v
}

// TestPolicyIsAppliedAtomically rejects documents that are invalid in one
// place, with its pointer.
func TestPolicyIsAppliedAtomically(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("refused")
	version := f.version()
	rules := func(r object) object {
		return object{"modes": []object{{"tool": "mail:*", "mode": "allow"}}, "rules": []object{{"rule_id": "fine", "tool": "*", "expression": "true", "mode": "deny"}, r}}
	}
	for name, tt := range map[string]struct {
		doc           object
		pointer, text string
	}{
		"an expression":      {rules(object{"rule_id": "a", "tool": "*", "expression": "args.n >\n  > 1", "mode": "deny"}), "/rules/1/expression", "line 2, column 3"},
		"an argument":        {rules(object{"rule_id": "a", "tool": "mail:write", "expression": "args.amount > 1", "mode": "deny"}), "/rules/1/expression", "it has n, to"},
		"a rule that allows": {rules(object{"rule_id": "a", "tool": "*", "expression": "true", "mode": "allow"}), "/rules/1/mode", "set the mode allow for the tool"},
		"a key":              {rules(object{"rule_id": "a", "tool": "ma*:x", "expression": "true", "mode": "deny"}), "/rules/1/tool", "source:*"},
		"the same twice":     {rules(object{"rule_id": "fine", "tool": "*", "expression": "true", "mode": "deny"}), "/rules/1", "of the same rule as item 0"},
		"a mode":             {object{"modes": []object{{"tool": "*", "mode": "maybe"}}}, "/modes/0/mode", "must be"},
		"another section":    {object{"grants": []object{}}, "/grants", "is not a field"},
		"no id":              {rules(object{"rule_id": "Not So", "tool": "*", "expression": "true", "mode": "deny"}), "/rules/1/rule_id", "must look like"},
		"a review":           {object{"reviews": []object{{"tool": "*", "wait": "1h", "warn": "2h"}}}, "/reviews/0", "within the wait"},
		"too much work":      {rules(object{"rule_id": "a", "tool": "*", "expression": "args.a.all(x, args.b.all(y, args.c.all(z, x == y && y == z)))", "mode": "deny"}), "/rules/1/expression", ""},
	} {
		for _, path := range []string{"/api/v1/policy?dry_run=true", "/api/v1/policy/simulate"} {
			method, body, above := "PUT", any(tt.doc), ""
			if strings.HasSuffix(path, "simulate") {
				method, body, above = "POST", object{"since": "2026-01-02T03:04:05Z", "policy": tt.doc}, "/policy"
			}
			p := f.admin.send(method, path, body).wants(t, 400).problem(t)
			if len(p.Errors) == 0 || p.Errors[0].Pointer != above+tt.pointer || !strings.Contains(p.Errors[0].Message, tt.text) {
				t.Errorf("%s at %s: %+v, want %s%s to say %q", name, path, p.Errors, above, tt.pointer, tt.text)
			}
		}
	}
	if v := f.version(); v != version {
		t.Errorf("the version went from %d to %d", version, v)
	}
	// A key that JSON has twice is read once by the contract, and merged by others.
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, `%s{"rule_id":"r%d","tool":"*","expression":"true","mode":"deny"}`, strings.Repeat(",", min(i, 1)), i)
	}
	f.admin.send("POST", "/api/v1/policy/simulate", `{"since":"2026-01-02T03:04:05Z","policy":{"rules":[`+many.String()+`]},"policy":{"modes":[]}}`).wants(t, 400)
}

func TestPolicyIsTriedOnThePast(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, other := h.tenant("tried"), h.tenant("stranger")
	f.admin.send("PUT", "/api/v1/policy/modes/mail:write", object{"mode": "allow"}).wants(t, 200)
	for n := range 5 {
		f.agent.send("POST", "/api/v1/actions", proposal("write", object{"n": n, "to": marker})).wants(t, 201)
	}
	for range 3 {
		other.agent.propose("write")
	}
	version := f.version()
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	ask := object{
		"since": "2026-01-02T03:04:05Z", "tool": "mail:*", "limit": 2,
		"policy": object{"rules": []object{{"rule_id": "some", "tool": "mail:write", "expression": "args.n > 1", "mode": "deny"}}},
	}
	type report struct {
		Examined, Compared int
		Counts             []struct {
			Tool, Then, Now, Changed string
			Count                    int
		}
		Differences []struct {
			ActionID      string `json:"action_id"`
			Then, Changed struct{ Mode, Source string }
			Causes        []struct{ Layer, Rule string }
		}
		NextCursor *string `json:"next_cursor"`
	}

	compared, changed, pages := 0, map[string]int{}, 0
	for pages = 1; pages < 9; pages++ {
		got := viewer.send("POST", "/api/v1/policy/simulate", ask).wants(t, 200)
		if strings.Contains(string(got.body), marker) {
			t.Errorf("the report holds arguments: %s", got.body)
		}
		var r report
		got.into(t, &r)
		compared += r.Compared
		for _, c := range r.Counts {
			changed[c.Changed] += c.Count
		}
		for _, d := range r.Differences {
			if d.Changed.Source != "org_default+arguments:some" || len(d.Causes) != 1 || d.Causes[0].Rule != "some" {
				t.Errorf("difference = %+v", d)
			}
		}
		if r.NextCursor == nil {
			break
		}
		ask["cursor"] = *r.NextCursor
	}

	if diff := cmp.Diff(map[string]int{"allow": 2, "deny": 3}, changed); diff != "" || compared != 5 || pages != 3 {
		t.Errorf("%d compared in %d pages (-want +got):\n%s", compared, pages, diff)
	}
	if v := f.version(); v != version {
		t.Errorf("the version went from %d to %d", version, v)
	}
	for pointer, change := range map[string]object{
		"/until": {"until": "2026-01-02T03:04:04Z"}, "/tool": {"tool": "ma*"}, "/cursor": {"cursor": "x"}, "/limit": {"limit": 2001}, "/since": {"since": "yesterday"},
	} {
		body := object{"since": ask["since"], "policy": object{}}
		maps.Copy(body, change)
		if p := viewer.send("POST", "/api/v1/policy/simulate", body).wants(t, 400).problem(t); len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("%v: %+v", change, p.Errors)
		}
	}
}

func TestCheckPolicyNeedsNoServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"modes":[{"tool":"mail:*","mode":"allow"}]}`:                                                  "",
		`{"rules":[{"rule_id":"a","tool":"mail:send","expression":"args.anything > 1","mode":"deny"}]}`: "",
		`{"rules":[{"rule_id":"a","tool":"*","expression":"1 + 1","mode":"deny"}]}`:                     "/rules/0/expression",
		`{"modes":[{"tool":"*","mode":"maybe"}]}`:                                                       "/modes/0/mode",
		`[]`: "",
	} {
		err := policies.CheckDocument([]byte(text))
		broken, ok := err.(*envelope.InvalidError) // never wrapped
		if text != "[]" && want == "" {
			if err != nil {
				t.Errorf("CheckPolicy(%s) = %v", text, err)
			}
			continue
		}
		if !ok || broken.Fields[0].Pointer != want {
			t.Errorf("CheckPolicy(%s) = %v, want %q named", text, err, want)
		}
	}
}
