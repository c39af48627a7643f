package rest_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// shownSource is the part of a source that tests compare.
type shownSource struct {
	ID               string `json:"source_id"`
	Config           object
	HasCredentials   bool `json:"has_credentials"`
	AddressAccepted  bool `json:"address_accepted"`
	QuarantinedTools int  `json:"quarantined_tools"`
	Quarantined      bool
	ETag             string
}

// sources returns the sources of a tenant by id.
func (f *tenantFixture) sources() map[string]shownSource {
	f.t.Helper()
	var list struct{ Items []shownSource }
	f.admin.send("GET", "/api/v1/sources", nil).wants(f.t, 200).into(f.t, &list)
	byID := make(map[string]shownSource, len(list.Items))
	for _, src := range list.Items {
		byID[src.ID] = src
	}
	return byID
}

// mcpSource is a source of MCP at a port of this machine.
func mcpSource(port string, more ...object) object {
	body := object{"kind": "mcp", "config": object{"transport": "http", "url": "http://127.0.0.1:" + port + "/mcp"}}
	for _, fields := range more {
		maps.Copy(body, fields)
	}
	return body
}

// accept accepts the current state of a source for a client.
func (c *client) accept(f *tenantFixture, source string) answer {
	f.t.Helper()
	return c.send("POST", "/api/v1/sources/"+source+"/accept", nil, ifMatch(f.sources()[source].ETag)...)
}

// runs reports whether a call of the tool read of a source is accepted.
func (c *client) runs(source string) bool {
	c.t.Helper()
	p := proposal("read", object{})
	p["tool"] = object{"source": source, "name": "read"}
	a := c.send("POST", "/api/v1/actions", p)
	if a.status != 201 && a.status != 403 {
		c.t.Fatalf("a call of %s:read = %d: %s", source, a.status, a.body)
	}
	return a.status == 201
}

// A second source at the address of the first has none of its rules.
func TestSourcesMadeWithoutPolicyWriteAreInQuarantine(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("alias")
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	below := f.holder(identity.Grant{Name: "no policy:write", Role: identity.RoleAdmin, Scopes: rest})
	some := f.holder(identity.Grant{Name: "for some tools", Role: identity.RoleOwner, Tools: []string{"alias:*"}})
	f.admin.send("PUT", "/api/v1/policy/modes/mail:read", object{"mode": "deny"}).wants(t, 200)

	for _, by := range []*client{below, some} {
		by.send("PUT", "/api/v1/sources/alias", mcpSource("9")).wants(t, 200)
		if a := by.accept(f, "alias"); a.status != 403 {
			t.Errorf("accepting a source before its tools are listed = %d, want 403: %s", a.status, a.body)
		}
		f.list("alias", mailTools...)
		if src := f.sources()["alias"]; !src.Quarantined || src.AddressAccepted || src.QuarantinedTools != len(mailTools) {
			t.Errorf("the source is shown as %+v, want it in quarantine with all tools", src)
		}
		if f.agent.runs("alias") {
			t.Error("a tool runs of a source that nobody accepted who may")
		}
		if a := by.accept(f, "alias"); a.status != 403 {
			t.Errorf("accepting a source = %d, want 403: %s", a.status, a.body)
		}
		if a := by.send("PUT", "/api/v1/sources/alias", mcpSource("9")); a.status != 200 || f.agent.runs("alias") {
			t.Errorf("the source was stored again = %d, and its tool runs", a.status)
		}
		f.admin.accept(f, "alias").wants(t, 200)
		if src := f.sources()["alias"]; src.Quarantined || !src.AddressAccepted || src.QuarantinedTools != 0 || !f.agent.runs("alias") {
			t.Errorf("the accepted source is shown as %+v, and its tools are to run", src)
		}
		f.admin.send("DELETE", "/api/v1/sources/alias", nil).wants(t, 204)
	}
}

func TestASourceIsInQuarantineAfterItsPlaceChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("elsewhere")
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	below := f.holder(identity.Grant{Name: "no policy:write", Role: identity.RoleAdmin, Scopes: rest})
	for name, tt := range map[string]struct {
		listed, quarantined bool
		body                object
	}{
		"another-address":                {true, true, mcpSource("10")},
		"another-address-before-listing": {false, true, mcpSource("10")},
		"other-credentials":              {true, true, mcpSource("9", object{"credentials": object{"header": object{"X-Account": "other"}}})},
		"another-kind":                   {true, true, object{"kind": "slack", "config": object{}, "credentials": object{"values": object{"token": "xoxb-1"}}}},
		"the-same":                       {true, false, mcpSource("9")},
		"the-same-before-listing":        {false, false, mcpSource("9")},
		"another-time-limit":             {true, false, mcpSource("9", object{"config": object{"transport": "http", "url": "http://127.0.0.1:9/mcp", "timeout": "1m"}})},
		"more-danger":                    {true, false, mcpSource("9", object{"default_risk": "danger"})},
	} {
		f.admin.send("PUT", "/api/v1/sources/"+name, mcpSource("9")).wants(t, 200)
		if tt.listed {
			f.list(name, mailTools...)
		}

		below.send("PUT", "/api/v1/sources/"+name, tt.body).wants(t, 200)

		f.list(name, mailTools...)
		if src, runs := f.sources()[name], f.agent.runs(name); src.Quarantined != tt.quarantined || runs == tt.quarantined {
			t.Errorf("%s: in quarantine = %t, want %t; its tool runs: %t", name, src.Quarantined, tt.quarantined, runs)
		}
	}
}

// Accepting a tool that is new does not wait for the source to be accepted.
func TestQuarantinedToolIsAcceptedWithPolicyWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("both")
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	below := f.holder(identity.Grant{Name: "no policy:write", Role: identity.RoleAdmin, Scopes: rest})
	f.admin.send("PUT", "/api/v1/sources/crm", mcpSource("9")).wants(t, 200)
	f.list("crm", mailTools[1:]...)
	f.list("crm", mailTools...)
	below.send("PUT", "/api/v1/sources/crm", mcpSource("10")).wants(t, 200)

	for _, by := range []*client{below, f.operator} {
		if a := by.send("POST", "/api/v1/tools/crm:read/accept", object{"digest": f.digestOf("crm:read")}); a.status != 403 {
			t.Errorf("accepting a new tool = %d, want 403: %s", a.status, a.body)
		}
	}
	f.admin.accept(f, "crm").wants(t, 200)
	if f.agent.runs("crm") {
		t.Error("a new tool runs that nobody accepted")
	}
}
