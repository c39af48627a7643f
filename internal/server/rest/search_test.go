package rest_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/internal/action/search"
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

// indexWords indexes what was committed. Transactions of other tests in the same server hold
// events back, so that these get the position of earlier ones.
func (f *tenantFixture) indexWords() {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), "UPDATE countersign_data.events SET txid = '1' WHERE tenant_id = $1", f.id.String()); err != nil {
		f.t.Fatal(err)
	}
	for more := true; more; {
		var err error
		if more, err = search.Step(f.t.Context(), f.db); err != nil {
			f.t.Fatal(err)
		}
	}
}

// TestWordsFindWhatTheCallerSees searches lists and everything by words of arguments.
func TestWordsFindWhatTheCallerSees(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("words")
	propose := func(to string) string {
		return f.agent.send("POST", "/api/v1/actions", proposal("write", object{"to": to})).wants(t, 201).action(t).Envelope.ActionID
	}
	sent := propose("ana@example.org password=hunter2")
	propose("bo@example.net")
	f.indexWords()
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	others := f.fixture.tenant("others").admin
	ids := func(by *client, path, text string) (found []string) {
		var answer struct {
			Items []struct {
				ID       string
				ActionID string `json:"action_id"`
				Envelope struct {
					ActionID string `json:"action_id"`
				}
				Label string
			}
		}
		by.send("GET", "/api/v1/"+path+"?q="+url.QueryEscape(text), nil).wants(t, 200).into(t, &answer)
		for _, it := range answer.Items {
			found = append(found, it.ID+it.ActionID+it.Envelope.ActionID)
		}
		return found
	}

	for _, path := range []string{"actions", "inbox", "search"} {
		for _, by := range []*client{f.admin, viewer} {
			if got := ids(by, path, "Ana example.org"); !slices.Equal(got, []string{sent}) {
				t.Errorf("%s finds %q by an address, want %q", path, got, sent)
			}
			if got := ids(by, path, "hunter2"); len(got) > 0 {
				t.Errorf("%s finds %q by a password", path, got)
			}
		}
		if got := ids(others, path, "ana example.org"); len(got) > 0 {
			t.Errorf("%s finds another tenant's %q", path, got)
		}
		f.agent.send("GET", "/api/v1/"+path+"?q=ana", nil).wants(t, 403)
	}
	f.admin.send("GET", "/api/v1/actions?q=%25_", nil).wants(t, 400)
	f.admin.send("GET", "/api/v1/inbox/counts?q=%25_", nil).wants(t, 400)
	var counts struct{ Total int }
	f.admin.send("GET", "/api/v1/inbox/counts?q=example", nil).wants(t, 200).into(t, &counts)
	if counts.Total != 2 {
		t.Errorf("%d are counted by a word, want 2", counts.Total)
	}
}
