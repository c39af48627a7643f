package rest_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestViewersReadArgumentsRedacted wherever actions are shown.
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
