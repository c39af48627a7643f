package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

func (c *client) inbox(query string) wire.Page[wire.InboxItem] {
	c.t.Helper()
	var page wire.Page[wire.InboxItem]
	c.send("GET", "/api/v1/inbox?"+query, nil).wants(c.t, 200).into(c.t, &page)
	return page
}

// The headline has what a person reads first, whatever else the arguments hold, and
// nothing that is redacted.
func TestTheInboxHasHeadlines(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("inbox-headlines")
	f.admin.send("PUT", "/api/v1/policy/modes/mail:danger", object{"mode": "require_approval"}).wants(t, 200)
	call := object{"to": "ana@example.org", "subject": "Two words", "password": "hunter2", "body": strings.Repeat("long ", 1000)}
	f.agent.send("POST", "/api/v1/actions", proposal("danger", call)).wants(t, 201)
	for _, query := range []string{"", "view=summary"} {
		line := f.operator.inbox(query).Items[0].Headline
		if !strings.HasPrefix(line, "to ana@example.org · ") || !strings.Contains(line, "subject “Two words”") {
			t.Errorf("headline with %q: %s", query, line)
		}
		viewer := f.holder(identity.Grant{Name: "viewer" + query, Role: identity.RoleViewer})
		if line := viewer.inbox(query).Items[0].Headline; strings.Contains(line, "hunter2") {
			t.Errorf("a viewer's headline with %q: %s", query, line)
		}
		id := f.operator.inbox(query).Items[0].ActionID.String()
		var page wire.Page[wire.Action]
		var one, redacted wire.Action
		f.operator.send("GET", "/api/v1/actions?"+query, nil).wants(t, 200).into(t, &page)
		f.operator.send("GET", path(id), nil).wants(t, 200).into(t, &one)
		if page.Items[0].Headline != line || one.Headline != line {
			t.Errorf("headlines of the list, the action and the inbox differ with %q: %q, %q, %q", query, page.Items[0].Headline, one.Headline, line)
		}
		viewer.send("GET", path(id), nil).wants(t, 200).into(t, &redacted)
		if strings.Contains(redacted.Headline, "hunter2") {
			t.Errorf("a viewer's headline of the action: %s", redacted.Headline)
		}
	}
}

// The inbox shows each role its rights, which match the result of an approval.
func TestTheInboxPerRole(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("inbox-roles")
	id := f.mail(object{"to": "ana@example.org"})
	own := f.operator.send("POST", "/api/v1/actions", proposal("write", object{"n": 1})).wants(t, 201).action(t).Envelope.ActionID
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleOperator, Tools: []string{"other:*"}})
	reader := f.holder(identity.Grant{Name: "reader", Role: identity.RoleAdmin, Scopes: []identity.Scope{identity.ActionsRead}})
	for name, test := range map[string]struct {
		by         *client
		other, own string
	}{
		"operator":     {f.operator, "", "own_proposal"},
		"admin":        {f.admin, "", ""},
		"owner":        {f.holder(identity.Grant{Name: "owner", Role: identity.RoleOwner}), "", ""},
		"viewer":       {f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer}), "role", "role"},
		"other tools":  {narrow, "tools", "tools"},
		"other scopes": {reader, "scope", "scope"},
	} {
		for _, it := range test.by.inbox("").Items {
			want := test.other
			if it.ActionID.String() == own {
				want = test.own
			}
			if string(it.WhyNot) != want || it.MayDecide != (want == "") {
				t.Errorf("%s is told %t, %q, want %q", name, it.MayDecide, it.WhyNot, want)
			}
			if want != "" {
				test.by.send("POST", path(it.ActionID.String(), "/approve"), nil).refused(t, 403, want)
			}
		}
	}
	f.operator.send("POST", path(own, "/approve"), nil).wants(t, 403)
	f.agent.send("GET", "/api/v1/inbox", nil).wants(t, 403)
	f.agent.send("GET", "/api/v1/inbox/counts", nil).wants(t, 403)

	other := f.fixture.tenant("inbox-neighbour")
	if page := other.admin.inbox(""); len(page.Items) != 0 {
		t.Errorf("another tenant sees %+v", page.Items)
	}
	var counts wire.InboxCounts
	other.admin.send("GET", "/api/v1/inbox/counts", nil).wants(t, 200).into(t, &counts)
	if counts.Total != 0 || len(counts.Tools) != 0 {
		t.Errorf("another tenant counts %+v", counts)
	}
	f.admin.send("GET", "/api/v1/inbox/counts?kind=approval", nil).wants(t, 200).into(t, &counts)
	if counts.Total != 2 || counts.ByKind.Approval != 2 || len(counts.Tools) != 1 || counts.Tools[0] != (wire.ToolCount{Tool: "mail:write", Count: 2}) {
		t.Errorf("counts = %+v", counts)
	}
	items := f.admin.inbox("").Items
	i := slices.IndexFunc(items, func(it wire.InboxItem) bool { return it.ActionID.String() == id })
	if it := items[i]; !slices.Equal(it.Recipients, []string{"ana@example.org"}) || string(it.ProposedBy) != f.agent.named("agent") || it.RateBucket == "" || it.Effect == "" || it.ArgsCut != nil {
		t.Errorf("an item = %+v", it)
	}
}

// A filter that the contract does not have, or a value that it does not take, is
// refused, and so is a cursor of another order.
func TestInboxRejectsUnknownParameters(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("inbox-refuses")
	for range 3 {
		f.mail(object{})
	}
	for _, query := range []string{
		"sort=risk", "kind=other", "kind=approval,", "risk=danger", "order=alphabet", "escalated=maybe", "expires_before=soon", "person=ana", "tool=write", "view=short",
		"kind=approval&kind=unknown", "session=", "source=mail&tool=crm:*",
	} {
		f.operator.send("GET", "/api/v1/inbox?"+query, nil).wants(t, 400)
		if name, _, _ := strings.Cut(query, "="); name != "order" && name != "view" {
			f.operator.send("GET", "/api/v1/inbox/counts?"+query, nil).wants(t, 400)
		}
	}
	cursors := map[string]string{}
	for _, order := range []string{"oldest", "newest", "expiry", "risk", "session", "tool"} {
		cursors[order] = *f.operator.inbox("limit=1&order=" + order).NextCursor
	}
	for of, cursor := range cursors {
		for order := range cursors {
			want := http.StatusBadRequest
			if of == order {
				want = http.StatusOK
			}
			f.operator.send("GET", "/api/v1/inbox?order="+order+"&cursor="+url.QueryEscape(cursor), nil).wants(t, want)
		}
	}
	for _, group := range []string{"\x00", "\xff", "no tool"} {
		cursor := base64.RawURLEncoding.EncodeToString([]byte("1:inbox-session:019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b low  " + group))
		want := http.StatusBadRequest
		if group == "no tool" {
			want = http.StatusOK
		}
		f.operator.send("GET", "/api/v1/inbox?order=session&cursor="+cursor, nil).wants(t, want)
	}
}

// A summary has the beginning of long arguments, for viewers without secrets, and
// no trace of policy.
func TestSummaries(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("summaries")
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	long, short := f.mail(object{"to": secret + " " + strings.Repeat("ä", 3000)}), f.mail(object{"to": "ana"})
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})

	for _, it := range f.operator.inbox("view=summary").Items {
		if it.Args != nil || it.ArgsPreview == nil || *it.ArgsCut != (it.ActionID.String() == long) || len(*it.ArgsPreview) > 2048 {
			t.Errorf("an item = %+v", it)
		}
	}
	for _, at := range []string{"/api/v1/inbox", "/api/v1/actions", "/api/v1/executions"} {
		body := viewer.send("GET", at+"?view=summary", nil).wants(t, 200).body
		if contains(body, secret) || contains(body, secret[:20]) || len(body) > 8000 || contains(body, `"layer"`) {
			t.Errorf("a viewer reads at %s %d bytes: %s", at, len(body), body)
		}
	}
	var actions wire.Page[wire.Action]
	f.agent.send("GET", "/api/v1/actions?view=summary", nil).wants(t, 200).into(t, &actions)
	for _, a := range actions.Items {
		cut := a.Envelope.ActionID.String() == long
		if *a.ArgsCut != cut || cut != (string(a.Envelope.Args) == "{}") || cut != strings.HasPrefix(a.ArgsPreview, `{"to"`) || len(a.Policy.Trace) > 0 {
			t.Errorf("an action = %+v", a)
		}
	}
	f.agent.send("GET", "/api/v1/executions?view=summary", nil).wants(t, 200)
	f.other.send("GET", "/api/v1/actions?view=summary", nil).wants(t, 200).into(t, &actions)
	if len(actions.Items) != 0 {
		t.Errorf("another agent sees %+v", actions.Items)
	}
	var whole struct{ Items []json.RawMessage }
	f.agent.send("GET", "/api/v1/actions", nil).wants(t, 200).into(t, &whole)
	if len(whole.Items) != 2 || !contains(whole.Items[1], secret) || contains(whole.Items[0], "args_cut") || !contains(whole.Items[0], short) {
		t.Errorf("without the view: %s", whole.Items)
	}
}
