package rest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/server/rest/route"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestViewersReadArgumentsRedacted covers every place that shows actions.
func TestViewersReadArgumentsRedacted(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("viewers")
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	id := f.mail(object{"to": secret})
	f.operator.send("POST", path(id, "/edit"), object{"args": object{"to": secret, "n": 1}}).wants(t, 200)

	for _, at := range []string{path(id), "/api/v1/actions", "/api/v1/inbox"} {
		if body := string(viewer.send("GET", at, nil).wants(t, 200).body); strings.Contains(body, secret) || !strings.Contains(body, id) {
			t.Errorf("a viewer reads at %s: %s", at, body)
		}
		if body := string(f.operator.send("GET", at, nil).wants(t, 200).body); !strings.Contains(body, secret) {
			t.Errorf("an operator does not see what will be sent at %s", at)
		}
	}
	steps := object{"external_id": "w", "steps": []any{object{"tool": "mail:write", "inputs": object{"to": secret}}}}
	at := f.operator.send("POST", "/api/v1/workflows", steps).wants(t, 201).header.Get("Location")
	for _, at := range []string{at, "/api/v1/workflows"} {
		if body := string(viewer.send("GET", at, nil).wants(t, 200).body); strings.Contains(body, secret) {
			t.Errorf("a viewer reads at %s: %s", at, body)
		}
	}
	if got, want := viewer.pendingAction(id).Decision.ETag, f.operator.pendingAction(id).Decision.ETag; got != want {
		t.Errorf("the action's etag is %s for a viewer and %s for an operator", got, want)
	}
}

// No route that a viewer may read shows redacted values of an action that was
// called, edited or undone, of a dry run or of a workflow. The responses to
// calls and dry runs, which show their own inputs, need the right to propose.
func TestViewersReadNoSecretAnywhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("viewer-walk")
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	call := func(key, value any) object {
		return object{"external_id": key, "inputs": object{"to": secret, "n": value}, "wait": "0s"}
	}
	var ids []string
	for _, body := range []object{call("called", 1), call("undone", 2), {"dry_run": true, "inputs": object{"to": secret}}} {
		got := f.agent.send("POST", "/api/v1/tools/mail:write", body)
		if !contains(got.body, secret) && body["dry_run"] == true {
			t.Errorf("the agent does not see what would be sent: %s", got.body)
		}
		ids = append(ids, got.call(t).ID)
		if at := viewer.send("POST", "/api/v1/tools/mail:write", body); at.status != 403 || contains(at.body, secret) {
			t.Errorf("a viewer's call = %d %s, want 403", at.status, at.body)
		}
	}
	f.operator.send("POST", path(ids[0], "/edit"), object{"args": object{"to": secret, "n": 3}}).wants(t, 200)
	f.agent.send("POST", path(ids[1], "/undo"), nil).wants(t, 200)
	steps := object{"external_id": "w", "steps": []any{object{"tool": "mail:write", "inputs": object{"to": secret}}}}
	ids = append(ids, strings.TrimPrefix(f.operator.send("POST", "/api/v1/workflows", steps).wants(t, 201).header.Get("Location"), "/api/v1/workflows/"))

	read := 0
	for _, rt := range route.Access() {
		at, get := strings.CutPrefix(rt.Pattern, "GET ")
		if !get || !slices.Contains(rt.Roles, identity.RoleViewer) || rt.Operation == "streamEvents" {
			continue
		}
		for _, id := range ids {
			if at := strings.Replace(at, "{id}", id, 1); !strings.Contains(at, "{") {
				got := viewer.send("GET", strings.Replace(at, "/wait", "/wait?timeout=0s", 1), nil)
				if contains(got.body, secret) {
					t.Errorf("a viewer reads at %s: %s", at, got.body)
				}
				if got.status == 200 {
					read++
				}
			}
		}
	}
	if read < 100 {
		t.Errorf("a viewer read %d answers, want those of all routes", read)
	}
}
