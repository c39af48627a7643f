package rest_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestSearchFindsOnlyListableItems walks roles and scopes.
func TestSearchFindsOnlyListableItems(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("search")
	dead := f.dead()[0]
	f.person("mailer")
	f.limited("mail.bucket", "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b")
	f.admin.send("PUT", "/api/v1/policy/sessions/mail-session/mail:*", object{"mode": "deny", "expires_in": "1h"}).wants(t, 200)
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAdmin, Scopes: []identity.Scope{identity.ActionsRead}})
	kinds := func(by *client, text string) (found []string) {
		var answer struct {
			Items []struct{ Kind, ID, Label string }
		}
		by.send("GET", "/api/v1/search?q="+url.QueryEscape(text), nil).wants(t, 200).into(t, &answer)
		for _, it := range answer.Items {
			found = append(found, it.Kind)
		}
		slices.Sort(found)
		return slices.Compact(found)
	}

	for name, test := range map[string]struct {
		by   *client
		text string
		want []string
	}{
		"an administrator":     {f.admin, "mail", []string{"bucket", "person", "session", "source", "tool"}},
		"a viewer sees nobody": {viewer, "mail", []string{"bucket", "session", "source", "tool"}},
		"a token for actions":  {narrow, "mail", []string{"session"}},
		"an id":                {viewer, dead, []string{"action", "dead_letter"}},
		"an id, for actions":   {narrow, dead, []string{"action"}},
		"an employee":          {viewer, "019a0b1c-2d3e", []string{"employee"}},
		"another tenant's":     {f.fixture.tenant("others").admin, dead, nil},
		"what is not there":    {f.admin, "mail%", nil},
	} {
		if got := kinds(test.by, test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s finds %q, want %q", name, got, test.want)
		}
	}
	f.agent.send("GET", "/api/v1/search?q=mail", nil).wants(t, 403)
}
