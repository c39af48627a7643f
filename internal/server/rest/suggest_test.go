package rest_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestUnknownNamesAreAnsweredWithTheNearest also holds that they are of names
// that the caller may list.
func TestUnknownNamesAreAnsweredWithTheNearest(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("suggested")
	holder := func(role identity.Role, scopes []identity.Scope, tools ...string) *client {
		return f.holder(identity.Grant{Name: string(role) + strings.Join(tools, ""), Role: role, Scopes: scopes, Tools: tools})
	}
	narrow, blind := holder(identity.RoleAgent, nil, "mail:read"), holder(identity.RoleAgent, []identity.Scope{identity.ActionsPropose})
	writer := holder(identity.RoleAdmin, []identity.Scope{identity.CatalogWrite, identity.LimitsWrite, identity.PausesWrite})
	submit := func(c *client, tool string) answer {
		p := proposal("read", object{})
		p["external_id"], p["tool"] = tool, object{"name": tool}
		return c.send("POST", "/api/v1/actions", p)
	}
	dryRun := func(c *client, tool string) answer {
		return c.send("POST", "/api/v1/actions?dry_run=true", object{"type": "mcp.exec", "tool": object{"name": tool}, "args": object{}})
	}
	batch := func(c *client, tool string) answer {
		p := proposal("read", object{})
		p["external_id"], p["tool"] = "batch "+tool, object{"name": tool}
		got := c.send("POST", "/api/v1/actions/batch", object{"items": []any{proposal("read", object{}), p}})
		got.status = 400 // of the item
		return got
	}
	flow := func(dry bool) func(c *client, tool string) answer {
		return func(c *client, tool string) answer {
			return c.send("POST", "/api/v1/workflows", object{"external_id": "flow " + tool, "dry_run": dry, "steps": []any{object{"tool": "mail:read"}, object{"tool": tool}}})
		}
	}
	get := func(c *client, tool string) answer { return c.send("GET", "/api/v1/tools/"+url.PathEscape(tool), nil) }
	invoke := func(c *client, tool string) answer {
		return c.send("POST", "/api/v1/tools/"+url.PathEscape(tool), object{"external_id": "x", "wait": "0s"})
	}
	explain := func(c *client, tool string) answer {
		return c.send("POST", "/api/v1/policy/explain", object{"tool": tool})
	}
	override := func(c *client, tool string) answer {
		return c.send("PUT", "/api/v1/tools/"+url.PathEscape(tool)+"/overrides", object{"risk": "write"})
	}
	grant := func(c *client, tool string) answer {
		return c.send("POST", "/api/v1/policy/grants", object{"tool": tool, "reason": "x", "expires_in": "1h"})
	}
	remove := func(list string) func(c *client, name string) answer {
		return func(c *client, name string) answer { return c.send("DELETE", "/api/v1/"+list+"/"+name, nil) }
	}
	refresh := func(c *client, name string) answer { return c.send("POST", "/api/v1/sources/"+name+"/refresh", nil) }
	bucket := func(c *client, name string) answer { return c.send("GET", "/api/v1/buckets/"+name, nil) }
	stop := func(scope string) func(c *client, name string) answer {
		return func(c *client, name string) answer {
			return c.send("POST", "/api/v1/pauses", object{"scope": scope, "subject": name, "reason": "x"})
		}
	}
	for name, test := range map[string]struct {
		send        func(c *client, name string) answer
		by          *client
		given, want string // want is empty for no suggestion
	}{
		"show":                            {get, f.agent, "mail:raed", "mail:read"},
		"show, bare":                      {get, f.agent, "raed", "read"},
		"show to a person":                {get, f.operator, "mail:dangr", "mail:danger"},
		"show what agents may not use":    {get, f.agent, "mail:dangr", ""},
		"show another's":                  {get, narrow, "mail:writ", ""},
		"show without the scope":          {get, blind, "mail:raed", ""},
		"submit":                          {submit, f.agent, "mail:raed", "mail:read"},
		"submit another's":                {submit, narrow, "mail:writ", ""},
		"submit without the scope":        {submit, blind, "mail:raed", ""},
		"call":                            {invoke, f.agent, "mail:raed", "mail:read"},
		"call, bare":                      {invoke, f.agent, "raed", "read"},
		"call another's":                  {invoke, narrow, "mail:writ", ""},
		"call without the scope":          {invoke, blind, "mail:raed", ""},
		"dry run":                         {dryRun, f.agent, "mail:raed", "mail:read"},
		"dry run of another's":            {dryRun, narrow, "mail:writ", ""},
		"dry run without the scope":       {dryRun, blind, "mail:raed", ""},
		"batch":                           {batch, f.agent, "mail:raed", "mail:read"},
		"batch, bare":                     {batch, f.agent, "raed", "read"},
		"batch with another's":            {batch, narrow, "mail:writ", ""},
		"batch without the scope":         {batch, blind, "mail:raed", ""},
		"workflow":                        {flow(false), f.agent, "mail:raed", "mail:read"},
		"workflow, another source":        {flow(false), f.agent, "mial:read", "mail:read"},
		"workflow, dry run":               {flow(true), f.agent, "raed", "read"},
		"workflow with another's":         {flow(false), narrow, "mail:writ", ""},
		"workflow without the scope":      {flow(false), blind, "mail:raed", ""},
		"explain":                         {explain, f.operator, "mail:raed", "mail:read"},
		"override":                        {override, f.admin, "mail:raed", "mail:read"},
		"override without the scope":      {override, writer, "mail:raed", ""},
		"grant":                           {grant, f.admin, "mail:raed", "mail:read"},
		"delete a source":                 {remove("sources"), f.admin, "mial", "mail"},
		"delete a source, without scope":  {remove("sources"), writer, "mial", ""},
		"refresh a source":                {refresh, f.operator, "mial", "mail"},
		"refresh a source, without scope": {refresh, writer, "mial", ""},
		"show a bucket":                   {bucket, f.operator, "defualt", "default"},
		"retire a bucket":                 {remove("buckets"), f.admin, "defualt", "default"},
		"retire a bucket, without scope":  {remove("buckets"), writer, "defualt", ""},
		"pause a source":                  {stop("source"), f.operator, "mial", "mail"},
		"pause a bucket":                  {stop("bucket"), f.operator, "defualt", "default"},
		"pause a tool":                    {stop("tool"), f.operator, "mail:raed", "mail:read"},
		"pause without the scope":         {stop("source"), writer, "mial", ""},
	} {
		got := test.send(test.by, test.given)
		text := strings.ReplaceAll(string(got.body), `\"`, `"`)
		if got.status < 400 || test.want != "" && !strings.Contains(text, `did you mean "`+test.want+`"?`) || test.want == "" && strings.Contains(text, "did you mean") {
			t.Errorf("%s: %s is answered with %d %s, want a suggestion of %q", name, test.given, got.status, got.body, test.want)
		}
	}
	// The rule for the field is that of a proposal, also after a question by a token
	// narrowed to tools about its policy.
	reader := f.holder(identity.Grant{Name: "narrow reader", Role: identity.RoleViewer, Tools: []string{"mail:read"}})
	for range 2 {
		asked, proposed := explain(reader, "mail:none").problem(t).Errors, submit(narrow, "mail:none").problem(t).Errors
		if len(asked) != 1 || asked[0].Pointer != "/tool" || len(proposed) != 1 || proposed[0].Pointer != "/tool/name" {
			t.Errorf("unknown tools are at %+v and %+v", asked, proposed)
		}
	}
	// Another caller's tool gets the same answer as a missing one, with the
	// nearest names that the caller may list.
	f.admin.send("PUT", "/api/v1/sources/crm", object{"kind": "mcp", "config": object{"transport": "http", "url": "http://127.0.0.1:9"}}).wants(t, 200)
	f.list("crm", source.Tool{Name: "list_a", InputSchema: json.RawMessage(`{}`)}, source.Tool{Name: "list_b", InputSchema: json.RawMessage(`{}`)})
	one := f.holder(identity.Grant{Name: "one of two", Role: identity.RoleAgent, Tools: []string{"crm:list_a"}})
	for way, send := range map[string]func(c *client, tool string) answer{"show": get, "submit": submit, "call": invoke, "batch": batch, "workflow": flow(false)} {
		for _, prefix := range []string{"crm:", ""} {
			others, missing := prefix+"list_b", prefix+"list_c"
			got, want := send(one, others).alike(others), send(one, missing).alike(missing)
			if got != want || !strings.Contains(want, prefix+"list_a") {
				t.Errorf("%s: a tool of others is answered with %s, want %s", way, got, want)
			}
		}
	}
}
