package rest_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/server/rest/route"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// instance is the id of a request in a problem.
var instance = regexp.MustCompile(`"instance":"[^"]*"`)

// alike returns a response without the parts that always differ: its id, and a
// text of the request.
func (a answer) alike(text string) string {
	body := instance.ReplaceAllString(string(a.body), "")
	if text != "" {
		body = strings.ReplaceAll(strings.ReplaceAll(body, text, "NAME"), url.PathEscape(text), "NAME")
	}
	return strings.Join([]string{string(rune('0' + a.status/100)), body}, " ")
}

// TestConflictsWithOthersAreAlike lets one agent take a name. For another agent
// the conflict is the same for anything behind the name, and there is none if its
// request is refused anyway.
func TestConflictsWithOthersAreAlike(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("alike")
	named := func(name, tool string, args object) object {
		p := proposal(tool, args)
		p["external_id"] = name
		return p
	}
	id := f.agent.send("POST", "/api/v1/actions", named("taken", "write", object{"to": "ana"})).wants(t, 201).action(t).Envelope.ActionID
	flow := func(name, tool string, args object) object {
		return object{"external_id": name, "steps": []any{object{"tool": "mail:" + tool, "inputs": args}}}
	}
	f.agent.send("POST", "/api/v1/workflows", flow("taken", "write", object{"to": "ana"})).wants(t, 201)
	proposeOnly := f.holder(identity.Grant{Name: "blind", Role: identity.RoleOperator, Scopes: []identity.Scope{identity.ActionsPropose}})
	ways := map[string]func(c *client, name, tool string, args object) answer{
		"submit": func(c *client, name, tool string, args object) answer {
			return c.send("POST", "/api/v1/actions", named(name, tool, args))
		},
		"dry run": func(c *client, name, tool string, args object) answer {
			return c.send("POST", "/api/v1/actions?dry_run=true", named(name, tool, args))
		},
		"batch": func(c *client, name, tool string, args object) answer {
			return c.send("POST", "/api/v1/actions/batch", object{"items": []any{named(name, tool, args)}})
		},
		"invoke": func(c *client, name, tool string, args object) answer {
			return c.send("POST", "/api/v1/tools/mail:"+tool, object{"external_id": name, "inputs": args, "wait": "0s"})
		},
		"invoke, dry run": func(c *client, name, tool string, args object) answer {
			return c.send("POST", "/api/v1/tools/mail:"+tool, object{"external_id": name, "inputs": args, "dry_run": true})
		},
		"workflow": func(c *client, name, tool string, args object) answer {
			return c.send("POST", "/api/v1/workflows", flow(name, tool, args))
		},
	}
	for way, send := range ways {
		for who, by := range map[string]*client{"another agent": f.other, "an operator who does not read": proposeOnly} {
			equal, other, tool := send(by, "taken", "write", object{"to": "ana"}), send(by, "taken", "write", object{"to": "bo"}), send(by, "taken", "read", object{})
			if !strings.Contains(string(equal.body), `"external_id_taken"`) || strings.Contains(string(equal.body), id) {
				t.Errorf("%s by %s: %d %s, want a conflict without the id", way, who, equal.status, equal.body)
			}
			if equal.alike("") != other.alike("") || equal.alike("") != tool.alike("") {
				t.Errorf("%s by %s: equal content is %s, other content %s, another tool %s, want one answer", way, who, equal.body, other.body, tool.body)
			}
			wrong, free := send(by, "taken", "write", object{"to": 7}), send(by, "free", "write", object{"to": 7})
			if way != "workflow" && wrong.alike("") != free.alike("") {
				t.Errorf("%s by %s of what is invalid: %s under a name that is taken, %s under a free one", way, who, wrong.body, free.body)
			}
		}
		if again := send(f.agent, "taken", "write", object{"to": "ana"}); again.status >= 300 {
			t.Errorf("%s again by the same agent = %d: %s", way, again.status, again.body)
		}
		if again := send(f.operator, "taken", "write", object{"to": "ana"}); again.status >= 300 {
			t.Errorf("%s by a person who sees it = %d: %s", way, again.status, again.body)
		}
	}
	own := named(uuid.NewString(), "read", object{})
	proposeOnly.send("POST", "/api/v1/actions", own).wants(t, 201)
	proposeOnly.send("POST", "/api/v1/actions", own).wants(t, 200)
	reserved := named("revert:"+id+":001", "read", object{})
	before := f.other.send("POST", "/api/v1/actions", reserved).wants(t, 400)
	f.exec("UPDATE actions SET external_id = $2 WHERE action_id = $1", id, reserved["external_id"])
	if after := f.other.send("POST", "/api/v1/actions", reserved); after.alike("") != before.alike("") {
		t.Errorf("a name of Countersign's own is answered with %s before it is taken and %s after", before.body, after.body)
	}
}

// toolNames finds the names of tools in a request, in the ways in which requests
// write them.
var toolNames = []struct {
	find      *regexp.Regexp
	replacing func(source, tool string) string
}{
	{regexp.MustCompile(`mail(:|%3A)[a-z*]+`), func(source, tool string) string { return source + ":" + tool }},
	{regexp.MustCompile(`\*:read`), func(source, tool string) string { return source + ":" + tool }},
	{regexp.MustCompile(`"name":"(read|write|danger)"`), func(_, tool string) string { return `"name":"` + tool + `"` }},
	{regexp.MustCompile(`"source":"mail"`), func(source, _ string) string { return `"source":"` + source + `"` }},
	{regexp.MustCompile(`source=mail`), func(source, _ string) string { return "source=" + source }},
}

// naming returns a request of a route that names another tool, and reports whether
// it names any.
func (v visit) naming(t *testing.T, pattern, source, tool string) (visit, bool) {
	t.Helper()
	text, names := "", false
	segments := strings.Split(v.path, "/")
	for i, segment := range strings.Split(pattern, "/") {
		if segment == "{tool}" {
			_, query, _ := strings.Cut(segments[i], "?")
			segments[i], names = strings.TrimSuffix(source+":"+tool+"?"+query, "?"), true
		}
	}
	v.path = strings.Join(segments, "/")
	if v.body != nil {
		raw, err := json.Marshal(v.body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(raw)
	}
	for _, n := range toolNames {
		names = names || n.find.MatchString(v.path) || n.find.MatchString(text)
		v.path, text = n.find.ReplaceAllString(v.path, n.replacing(source, tool)), n.find.ReplaceAllString(text, n.replacing(source, tool))
	}
	if v.body != nil {
		v.body = text
	}
	return v, names
}

// TestToolsOfOthersDoNotExist sends every request that names a tool with the name of
// a tool that the token does not cover, and with names that no tool and no source
// has: the responses are equal. The history that people read includes all tools.
func TestToolsOfOthersDoNotExist(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("exist")
	past := []string{
		"listActions", "listExecutions", "listDeadLetters", "summarizeDeadLetters", "exportDeadLetters", "getInbox", "getInboxCounts", "listInterrupts", "replayDeadLetters",
		"discardDeadLetters", "simulatePolicy", "forecastPause",
	}
	visits := f.visits()
	visits["guide, searched"] = visit{"GET", "/api/v1/guide?q=mail:write", nil, 200}
	visits["tools of a source"] = visit{"GET", "/api/v1/tools?source=mail", nil, 200}
	visits["dry run"] = visit{"POST", "/api/v1/actions?dry_run=true", proposal("write", object{"wrong": 1}), 200}
	visits["invalid arguments"] = visit{"POST", "/api/v1/actions", proposal("write", object{"wrong": 1}), 200}
	visits["tool without a source"] = visit{"POST", "/api/v1/tools/write", object{"external_id": uuid.NewString()}, 200}
	visits["call without a name"] = visit{"POST", "/api/v1/tools/mail:write", object{}, 200}
	visits["dry call"] = visit{"POST", "/api/v1/tools/mail:write", object{"dry_run": true}, 200}
	visits["dry workflow"] = visit{"POST", "/api/v1/workflows", object{"dry_run": true, "atomic": true, "steps": []any{object{"tool": "mail:write", "inputs": object{"wrong": 1}}}}, 200}
	patterns, tested := make(map[string]string), 0
	for _, rt := range route.Access() {
		patterns[rt.Operation] = rt.Pattern
	}
	for role, by := range map[identity.Role]*client{
		identity.RoleAgent: f.holder(identity.Grant{Name: "agent for others", Role: identity.RoleAgent, Tools: []string{"bank:*"}}),
		identity.RoleOwner: f.holder(identity.Grant{Name: "owner for others", Role: identity.RoleOwner, Tools: []string{"bank:*"}}),
	} {
		for operation, v := range visits {
			theirs, names := v.naming(t, patterns[operation], "mail", "write")
			if !names || role != identity.RoleAgent && slices.Contains(past, operation) {
				continue
			}
			tested++
			var header []string
			if strings.HasPrefix(v.path, "/api/v1/policy") || strings.HasPrefix(v.path, "/api/v1/limits") {
				header = f.matching(v)
			}
			got := by.send(theirs.method, theirs.path, theirs.body, header...)
			for _, other := range []string{"mail:nothing", "gone:nothing"} {
				source, tool, _ := strings.Cut(other, ":")
				missing, _ := v.naming(t, patterns[operation], source, tool)
				want := by.send(missing.method, missing.path, missing.body, header...)
				if a, b := got.alike("mail:write"), want.alike(other); a != b {
					t.Errorf("%s %s: %s of a tool of others is answered with %s, and of %s with %s", role, operation, theirs.path, a, other, b)
				}
			}
		}
	}
	if tested < 30 {
		t.Errorf("%d requests name tools, want more", tested)
	}
}

// TestUnchangedPreferenceKeepsItsAuthor: a token for other tools leaves no trace
// at a setting, also where it changes nothing.
func TestUnchangedPreferenceKeepsItsAuthor(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("unchanged")
	narrow := f.holder(identity.Grant{Name: "for other tools", Role: identity.RoleOperator, Tools: []string{"bank:*"}})
	first := f.operator.send("PUT", "/api/v1/preferences/mail:write", nil).wants(t, 200)

	for name, a := range map[string]answer{
		"set again":     narrow.send("PUT", "/api/v1/preferences/mail:write", nil),
		"taken back":    narrow.send("DELETE", "/api/v1/preferences/mail:write", nil),
		"all tools":     narrow.send("PUT", "/api/v1/preferences/*", nil),
		"nothing there": narrow.send("DELETE", "/api/v1/preferences/mail:nothing", nil),
	} {
		if a.status != 403 {
			t.Errorf("%s by a token for other tools = %d, want 403: %s", name, a.status, a.body)
		}
	}

	if again := f.operator.send("GET", "/api/v1/preferences", nil).wants(t, 200); !strings.Contains(string(again.body), strings.TrimSpace(string(first.body))) {
		t.Errorf("the preference is %s, want it unchanged: %s", again.body, first.body)
	}
}

// TestATokenWithAPrefixKeepsToIt covers every way to propose, and issues no token
// with another prefix.
func TestATokenWithAPrefixKeepsToIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("prefix")
	made := f.admin.send("POST", "/api/v1/tokens", object{"name": "mail", "role": "agent", "external_id_prefix": "mail/"}).wants(t, 201)
	var token struct{ Token, ExternalIDPrefix string }
	made.into(t, &token)
	by := &client{fixture: f.fixture, token: token.Token}
	named := func(name string) object {
		p := proposal("read", object{})
		p["external_id"] = name
		return p
	}
	unnamed := proposal("read", object{})
	delete(unnamed, "external_id")
	ways := map[string]func(name string) answer{
		"submit":  func(name string) answer { return by.send("POST", "/api/v1/actions", named(name)) },
		"header":  func(name string) answer { return by.send("POST", "/api/v1/actions", unnamed, "Idempotency-Key", name) },
		"dry run": func(name string) answer { return by.send("POST", "/api/v1/actions?dry_run=true", named(name)) },
		"invoke": func(name string) answer {
			return by.send("POST", "/api/v1/tools/mail:read", object{"external_id": name, "wait": "0s"})
		},
		"workflow": func(name string) answer {
			return by.send("POST", "/api/v1/workflows", object{"external_id": name, "steps": []any{object{"tool": "mail:read"}}})
		},
	}
	for way, send := range ways {
		if a := send("mail/" + way); a.status >= 300 {
			t.Errorf("%s with the prefix = %d: %s", way, a.status, a.body)
		}
		for _, name := range []string{way, "crm/" + way, "Mail/" + way, "mail"} {
			if a := send(name); a.status != 403 || a.problem(t).Errors[0].Pointer != "/external_id" {
				t.Errorf("%s of %s = %d, want 403 at /external_id: %s", way, name, a.status, a.body)
			}
		}
	}
	var many struct{ Items []struct{ Result string } }
	by.send("POST", "/api/v1/actions/batch", object{"items": []any{named("mail/b"), named("crm/b")}}).wants(t, 200).into(t, &many)
	if many.Items[0].Result != "accepted" || many.Items[1].Result != "refused" {
		t.Errorf("a batch = %+v, want the second refused", many.Items)
	}
	if me := by.send("GET", "/api/v1/me", nil).wants(t, 200); !strings.Contains(string(me.body), `"external_id_prefix":"mail/"`) {
		t.Errorf("me = %s, want the prefix", me.body)
	}
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleOwner, Names: identity.Names{ExternalIDPrefix: "mail/"}})
	for prefix, want := range map[string]int{"": 403, "crm/": 403, "mail/in/": 201} {
		body := object{"name": "x", "role": "agent"}
		if prefix != "" {
			body["external_id_prefix"] = prefix
		}
		if a := narrow.send("POST", "/api/v1/tokens", body); a.status != want {
			t.Errorf("a token with the prefix %q by one with mail/ = %d, want %d: %s", prefix, a.status, want, a.body)
		}
	}
}
