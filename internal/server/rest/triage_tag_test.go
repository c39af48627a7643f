package rest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// tried stores a tag of a message that is skipped after a failed try, and returns the try.
func (f *tenantFixture) tried(message, action string) string {
	f.t.Helper()
	id := uuid.Must(uuid.NewV7()).String()
	f.write(`UPDATE triage_accounts SET proposals = '{"source":"mail","account":"ann"}' WHERE tenant_id = $1 AND account_id = (SELECT account_id FROM triage_messages WHERE message_id = $2::uuid)`, message)
	f.write(`INSERT INTO triage_tags (tenant_id, message_id, action, account_id, state, try, failures, in_mailbox, tagged_by)
		SELECT tenant_id, message_id, $3::text, account_id, 'skipped', 4, 3, true, 'mailbox' FROM triage_messages WHERE tenant_id = $1 AND message_id = $2::uuid`, message, action)
	f.write(`INSERT INTO triage_tag_log (tenant_id, log_id, account_id, message_id, action, try, external_id, source_id, tool_name, extracted, result, status, error)
		SELECT tenant_id, $3::uuid, account_id, message_id, $4::text, 3, 'triage:tag:none', 'dav', $4::text,
			jsonb_build_array(jsonb_build_object('pointer', '/summary', 'value', $5::text, 'origin', 'header', 'ref', 'Subject'),
				jsonb_build_object('pointer', '/phones/0', 'value', $5::text, 'origin', 'span', 'ref', $5::text)),
			json_build_object('text', $5::text), 'failed', 'rejected'
		FROM triage_messages WHERE tenant_id = $1 AND message_id = $2::uuid`, message, id, action, mailMarker)
	return id
}

// tags returns the tags of a list in short.
func (c *client) tags(query string) (all []string) {
	c.t.Helper()
	var list struct{ Items []wire.TriageTag }
	c.send("GET", "/api/v1/triage/tags?"+query, nil).wants(c.t, 200).into(c.t, &list)
	for _, t := range list.Items {
		all = append(all, strings.TrimSpace(t.Action+" "+t.State+" "+strings.Repeat("x", t.Failures)))
	}
	slices.Sort(all)
	return all
}

// TestPeopleSetRemoveAndRetryTags walks the changes that a person can make.
func TestPeopleSetRemoveAndRetryTags(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("tags")
	message := uuid.NewString()
	f.mailbox("ann", message)
	try := f.tried(message, "create-reminder")
	at := "/api/v1/triage/messages/" + message + "/tags/"
	wants := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, f.operator.tags("state=any&message_id="+message)); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
	}

	f.admin.send("PUT", at+"add-contact", nil).wants(t, 200)
	f.admin.send("PUT", at+"add-contact", nil).wants(t, 200)
	f.admin.send("PUT", at+"create-reminder", nil).wants(t, 200)
	wants("add-contact due", "create-reminder skipped xxx")

	var back wire.TriageTag
	f.admin.send("POST", "/api/actions/retry/"+try, nil).wants(t, 200).into(t, &back)
	f.admin.send("POST", "/api/v1/triage/tries/"+try+"/retry", nil).wants(t, 200)
	wants("add-contact due", "create-reminder due")
	if back.Try != 4 || !back.InMailbox || back.TaggedBy == "mailbox" {
		t.Errorf("the tag of a retry = %+v", back)
	}

	f.write("UPDATE triage_tags SET state = 'open', external_id = 'triage:tag:x' WHERE tenant_id = $1 AND action = 'create-reminder'")
	if a := f.admin.send("POST", "/api/actions/retry/"+try, nil).wants(t, 409); !strings.Contains(string(a.body), "is open") {
		t.Errorf("a retry while a try is open: %s", a.body)
	}
	f.admin.send("DELETE", at+"create-reminder", nil).wants(t, 204)
	f.admin.send("DELETE", at+"add-contact", nil).wants(t, 204)
	f.admin.send("DELETE", at+"add-contact", nil).wants(t, 204)
	wants("add-contact gone", "create-reminder leaving")
	f.admin.send("PUT", at+"create-reminder", nil).wants(t, 200)
	wants("add-contact gone", "create-reminder open")
	if got := f.operator.tags("account=ann"); len(got) != 1 {
		t.Errorf("tags that are not gone = %v", got)
	}

	// A try that succeeded is not repeated by the log of an earlier one.
	f.write("UPDATE triage_tags SET state = 'gone', external_id = NULL, try = 5 WHERE tenant_id = $1 AND action = 'create-reminder'")
	f.write(`INSERT INTO triage_tag_log (tenant_id, log_id, account_id, message_id, action, try, source_id, tool_name, status)
		SELECT tenant_id, gen_random_uuid(), account_id, message_id, action, 4, 'dav', 'x', 'success' FROM triage_tag_log WHERE tenant_id = $1`)
	if a := f.admin.send("POST", "/api/actions/retry/"+try, nil).wants(t, 409); !strings.Contains(string(a.body), "has succeeded") {
		t.Errorf("a retry after a success: %s", a.body)
	}
	wants("add-contact gone", "create-reminder gone")
}

// TestWhoChangesTags has others than the operator of the account change tags, and
// changes of tags that cannot be.
func TestWhoChangesTags(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("tagowners")
	message, bare := uuid.NewString(), uuid.NewString()
	f.mailbox("ann", message)
	f.message("ann", bare, time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	try := f.tried(message, "create-reminder")
	person := f.somebody("Ann", identity.RoleOperator)
	ann := f.holder(identity.Grant{Name: "ann", Role: identity.RoleOperator, Operator: person})
	f.write("UPDATE triage_accounts SET operator_id = $2::uuid WHERE tenant_id = $1", person.String())
	at := func(id, action string) string { return "/api/v1/triage/messages/" + id + "/tags/" + action }
	scopes := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.ApprovalsDecide })

	for name, test := range map[string]struct {
		by           *client
		method, path string
		status       int
		want         string
	}{
		"the operator":            {ann, "PUT", at(message, "add-contact"), 200, "add-contact"},
		"another person":          {f.operator, "PUT", at(message, "add-contact"), 403, "another person"},
		"an owner":                {f.admin, "POST", "/api/actions/retry/" + try, 403, "another person"},
		"another removes":         {f.admin, "DELETE", at(message, "create-reminder"), 403, "another person"},
		"an agent":                {f.agent, "PUT", at(message, "add-contact"), 403, "role agent"},
		"an agent retries":        {f.agent, "POST", "/api/v1/triage/tries/" + try + "/retry", 403, "role agent"},
		"who may not decide":      {f.holder(identity.Grant{Name: "asker", Role: identity.RoleOperator, Operator: person, Scopes: scopes}), "PUT", at(message, "add-contact"), 403, "approvals:decide"},
		"who has some tools":      {f.holder(identity.Grant{Name: "some", Role: identity.RoleOperator, Operator: person, Tools: []string{"dav:*"}}), "PUT", at(message, "add-contact"), 403, "some tools"},
		"an unknown action":       {ann, "PUT", at(message, "unheard-of"), 404, "known actions: add-contact, create-reminder"},
		"a tag that is not there": {ann, "DELETE", at(message, "unheard-of"), 404, "no tag"},
		"an unknown message":      {ann, "PUT", at(uuid.NewString(), "add-contact"), 404, "no message"},
		"no decision":             {ann, "PUT", at(bare, "add-contact"), 409, "no decision"},
		"an unknown try":          {ann, "POST", "/api/actions/retry/" + uuid.NewString(), 404, "no try"},
		"no id":                   {ann, "POST", "/api/actions/retry/x", 400, ""},
		"another alphabet":        {ann, "PUT", at(message, "%D0%BA"), 400, ""},
		"a slash":                 {ann, "PUT", at(message, "..%2Fx"), 404, ""},
	} {
		if a := test.by.send(test.method, test.path, nil).wants(t, test.status); !strings.Contains(string(a.body), test.want) {
			t.Errorf("%s: %s, want %q", name, a.body, test.want)
		}
	}
	two := f.fixture.tenant("tagothers")
	for _, stranger := range []*client{two.operator, two.admin} {
		stranger.send("POST", "/api/actions/retry/"+try, nil).wants(t, 404)
		stranger.send("PUT", at(message, "add-contact"), nil).wants(t, 404)
	}

	// Without an operator, only a person who may name one changes tags.
	f.write("UPDATE triage_accounts SET operator_id = NULL WHERE tenant_id = $1")
	scopes = slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	for name, by := range map[string]*client{
		"who was the operator": ann, "an operator": f.operator, "an administrator without policy:write": f.holder(identity.Grant{Name: "without", Role: identity.RoleAdmin, Scopes: scopes}),
	} {
		for method, path := range map[string]string{"PUT": at(message, "add-contact"), "DELETE": at(message, "create-reminder"), "POST": "/api/actions/retry/" + try} {
			if a := by.send(method, path, nil).wants(t, 403); !strings.Contains(string(a.body), "names no operator") {
				t.Errorf("%s, %s: %s", name, method, a.body)
			}
		}
	}
	f.admin.send("PUT", at(message, "add-contact"), nil).wants(t, 200)
	f.admin.send("POST", "/api/actions/retry/"+try, nil).wants(t, 200)
	two.admin.send("PUT", at(message, "add-contact"), nil).wants(t, 404)
}

// TestLogOfTries reads the log in both representations, with and without the scope for
// mail, in pages.
func TestLogOfTries(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("taglog")
	message := uuid.NewString()
	f.mailbox("ann", message)
	f.write("INSERT INTO sources (tenant_id, source_id, kind) VALUES ($1, 'dav', 'dav')")
	f.write("INSERT INTO tools (tenant_id, source_id, name, input_schema, digest) VALUES ($1, 'dav', 'add-contact', '{}', 'x')")
	var want []string
	for _, action := range []string{"create-reminder", "add-contact", "third"} {
		want = append(want, f.tried(message, action))
	}
	slices.Reverse(want)

	var entries []wire.ActionLogEntry
	for cursor := ""; ; {
		var p wire.Page[wire.ActionLogEntry]
		f.operator.send("GET", "/api/actions/log?limit=2"+cursor, nil).wants(t, 200).into(t, &p)
		entries = append(entries, p.Items...)
		if p.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *p.NextCursor
	}

	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID.String())
		if e.MessageSubject == nil || *e.MessageSubject != mailMarker || string(e.ExtractedData) != `{"phones":["`+mailMarker+`"],"summary":"`+mailMarker+`"}` ||
			!strings.Contains(string(e.ToolResult), mailMarker) || e.Status != "failed" || e.Error != "rejected" {
			t.Errorf("entry = %+v", e)
		}
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	for _, path := range []string{"/api/actions/log", "/api/v1/triage/tries", "/api/v1/triage/tags?state=any"} {
		if a := viewer.send("GET", path, nil).wants(t, 200); strings.Contains(string(a.body), mailMarker) || !strings.Contains(string(a.body), "create-reminder") {
			t.Errorf("%s shows a viewer %s", path, a.body)
		}
	}

	var available struct{ Items []wire.ActionDefinition }
	viewer.send("GET", "/api/actions/available", nil).wants(t, 200).into(t, &available)
	got, _ := json.Marshal(available.Items)
	if w := `[{"name":"add-contact","description":"Add the sender to an address book.","server":"dav","tool":"add-contact","available":true,"account":"ann"},` +
		`{"name":"create-reminder","description":"Create a reminder of what the message asks for.","server":"dav","tool":"create-reminder","available":false,"account":"ann"}]`; string(got) != w {
		t.Errorf("available = %s, want %s", got, w)
	}
	f.operator.send("GET", "/api/actions/available?account=none", nil).wants(t, 404)
	f.agent.send("GET", "/api/actions/log", nil).wants(t, 403)
}
