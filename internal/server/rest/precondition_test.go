package rest_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestWritesNeedTheCurrentVersion creates each resource twice at the same time:
// one creation succeeds. It changes each twice on the basis of the same ETag:
// the second change is refused.
func TestWritesNeedTheCurrentVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("versions")
	owner := f.holder(identity.Grant{Name: "owner", Role: identity.RoleOwner})
	employee, person := "/api/v1/employees/"+uuid.NewString(), "/api/v1/operators/"+f.person("Ana")
	source := func(path string) object {
		return object{"kind": "mcp", "config": object{"transport": "http", "url": "http://127.0.0.1:9/" + path}}
	}
	provider := func(audience string) object {
		return object{"issuer": "https://versions.example.org", "audience": audience + f.id.String()}
	}

	for name, tt := range map[string]struct {
		path          string
		first, second any
		undeletable   bool
	}{
		"bucket":         {"/api/v1/buckets/b", object{"concurrency": 1}, object{"concurrency": 2}, false},
		"settings":       {"/api/v1/settings", object{"timezone": "UTC"}, object{"timezone": "Europe/Berlin"}, true},
		"rule":           {"/api/v1/policy/rules/r", object{"tool": "*", "expression": "true", "mode": "deny"}, object{"tool": "*", "expression": "false", "mode": "deny"}, false},
		"mode":           {"/api/v1/policy/modes/mail:*?automation_id=a", object{"mode": "allow"}, object{"mode": "deny"}, false},
		"session mode":   {"/api/v1/policy/sessions/s/mail:*", object{"mode": "deny", "expires_in": "1h"}, object{"mode": "require_approval", "expires_in": "1h"}, false},
		"preference":     {"/api/v1/preferences/mail:*", nil, nil, false},
		"review":         {"/api/v1/reviews/*?risk=high", object{"approvals": 1}, object{"approvals": 2}, false},
		"source":         {"/api/v1/sources/versioned", source("one"), source("other"), false},
		"quiet hours":    {nightPath("recipient", "email:Ana@example.org"), night(), object{"timezone": "Europe/Berlin", "windows": []object{{"from": "03:00", "until": "03:01"}}}, false},
		"employee":       {employee, object{"trust": "low"}, object{"trust": "high"}, false},
		"person":         {person, object{"name": "Ana"}, object{"name": "Ana Lima"}, true},
		"provider":       {"/api/v1/identity-providers/p", provider("one"), provider("two"), false},
		"retention":      {"/api/v1/retention/events", object{"period": "30d", "action": "report"}, object{"period": "31d", "action": "report"}, true},
		"overrides":      {"/api/v1/tools/mail:write/overrides", object{"max_attempts": 2}, object{"max_attempts": 3}, true},
		"tool rule":      {"/api/v1/tools/mail:read/rule", object{"scopes": []string{"a"}}, object{"scopes": []string{"b"}}, true},
		"description":    {"/api/v1/tools/mail:danger/description", object{"entity": "one"}, object{"entity": "two"}, true},
		"snapshot rule":  {"/api/v1/tools/mail:write/snapshot-rule", object{"read": "mail:read"}, object{"read": "mail:read", "required": true}, false},
		"reconcile rule": {"/api/v1/tools/mail:write/reconcile-rule", object{"read": "mail:read", "happened": "/a"}, object{"read": "mail:read", "happened": "/b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tag, created := owner.createTwice(t, tt.path, tt.first)
			if !created {
				tag = owner.send("PUT", tt.path, tt.first).wants(t, http.StatusOK).header.Get("ETag")
			}
			if exists := map[string]bool{
				"settings": true, "person": true, "retention": true, "overrides": true, "tool rule": true, "description": true,
			}[name]; exists == created {
				t.Errorf("created = %t, want %t", created, !exists)
			}
			changed := owner.send("PUT", tt.path, tt.second, "If-Match", tag).wants(t, http.StatusOK).header.Get("ETag")

			if name != "preference" {
				owner.send("PUT", tt.path, tt.second, "If-Match", tag).wants(t, http.StatusPreconditionFailed)
			}
			owner.send("PUT", tt.path, tt.second, "If-Match", "*").wants(t, http.StatusBadRequest)
			owner.send("PUT", tt.path, tt.first, "If-None-Match", "*").wants(t, http.StatusPreconditionFailed)
			if !tt.undeletable {
				owner.send("DELETE", tt.path, nil, ifMatch("AAAAAAAAAAAAAAAAAAAAAAAA")...).wants(t, http.StatusPreconditionFailed)
				owner.send("DELETE", tt.path, nil, "If-Match", changed).wants(t, http.StatusNoContent)
			}
		})
	}
	for _, document := range []string{"/api/v1/limits", "/api/v1/policy"} {
		tag := f.operator.send("GET", document, nil).wants(t, http.StatusOK).header.Get("ETag")
		section := map[bool]string{true: "employees", false: "modes"}[document == "/api/v1/limits"]
		body := object{section: []object{{"employee_id": "default", "trust": "low"}}}
		if section == "modes" {
			body = object{section: []object{{"tool": "mail:read", "mode": "deny"}}}
		}
		f.admin.send("PUT", document, body, "If-Match", tag).wants(t, http.StatusOK)
		f.admin.send("PUT", document, body, "If-Match", tag).wants(t, http.StatusPreconditionFailed)
	}
	for _, document := range []string{"/api/v1/limits", "/api/v1/policy"} {
		f.admin.send("PUT", document, object{}).wants(t, http.StatusPreconditionRequired)
	}
}

// createTwice sends two creations at the same time. It returns the ETag of the
// one that succeeded; all others are refused.
func (c *client) createTwice(t *testing.T, path string, body any) (tag string, created bool) {
	t.Helper()
	var answers [2]answer
	var errs [2]error
	var sending sync.WaitGroup
	for i := range answers {
		sending.Go(func() {
			answers[i], errs[i] = c.trySend(t.Context(), "PUT", path, body, "If-None-Match", "*")
		})
	}
	sending.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if a.status == http.StatusOK && !created {
			tag, created = a.header.Get("ETag"), true
			continue
		}
		a.wants(t, http.StatusPreconditionFailed)
	}
	return tag, created
}

func TestAnActionHasAnETag(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("etag")
	waits, done := f.agent.propose("write"), f.agent.propose("read")

	var pending struct{ Decision struct{ ETag string } }
	a := f.operator.send("GET", path(waits), nil).wants(t, 200)
	a.into(t, &pending)

	if got, want := a.header.Get("ETag"), `"`+pending.Decision.ETag+`"`; got != want || len(want) != 26 {
		t.Errorf("ETag = %s, want %s", got, want)
	}
	if got := f.operator.send("GET", path(done), nil).header.Get("ETag"); len(got) != 26 {
		t.Errorf("ETag of an action that waits for nobody = %s", got)
	}
}
