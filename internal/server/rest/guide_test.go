package rest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/notebook"
)

func TestTheGuideIsOfTheCallersTools(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("guide")
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAgent, Session: "s-three", Tools: []string{"mail:read"}})
	f.admin.send("PUT", "/api/v1/policy/modes/mail:danger", object{"mode": "deny"}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/settings", object{"timezone": "UTC", "session_pending_max": 7}).wants(t, 200)

	whole := f.agent.send("GET", "/api/v1/guide", nil).wants(t, 200)
	found := f.agent.send("GET", "/api/v1/guide?q=write", nil).wants(t, 200)
	little := narrow.send("GET", "/api/v1/guide", nil).wants(t, 200)
	persons := f.operator.send("GET", "/api/v1/guide", nil).wants(t, 200)

	text := string(whole.body)
	for _, want := range []string{"TOOL: `mail:read`", "TOOL: `mail:write`", "At most 7 of your actions", "at most 60 actions"} {
		if !strings.Contains(text, want) {
			t.Errorf("the guide does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "mail:danger") {
		t.Error("the guide tells of a tool that is denied")
	}
	if got := whole.header.Get("Content-Type"); got != "text/markdown; charset=utf-8" {
		t.Errorf("Content-Type = %q", got)
	}
	if got := string(found.body); !strings.Contains(got, "### Tool 1\n\n- TOOL: `mail:write`") {
		t.Errorf("what was searched for is not first:\n%s", got)
	}
	if got := string(little.body); strings.Contains(got, "mail:write") || !strings.Contains(got, "mail:read") {
		t.Errorf("a token for mail:read sees:\n%s", got)
	}
	if strings.Contains(string(persons.body), "may wait for a person at a time") {
		t.Error("somebody without a session is told of its limits")
	}
}

func TestNotesAreListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("notes")
	book := notebook.NewBook(f.db).Of(f.id, "countersign")
	for _, key := range []string{"a", "b", "c"} {
		if _, err := book.Keep(t.Context(), key, "text of "+key); err != nil {
			t.Fatal(err)
		}
	}
	type list struct {
		Items []struct{ Source, Key, Text string }
		Next  *string `json:"next_cursor"`
	}

	var first, second list
	f.operator.send("GET", "/api/v1/notes?limit=2", nil).wants(t, 200).into(t, &first)
	f.operator.send("GET", "/api/v1/notes?limit=2&cursor="+*first.Next, nil).wants(t, 200).into(t, &second)

	if len(first.Items) != 2 || first.Items[0].Text != "text of c" || len(second.Items) != 1 || second.Items[0].Key != "a" || second.Next != nil {
		t.Errorf("notes = %+v and %+v, want c b and a", first, second)
	}
	f.agent.send("GET", "/api/v1/notes", nil).wants(t, 403)
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		rows, err := notebook.List(ctx, tx, f.id, uuid.UUID{}, 10)
		if len(rows) != 3 {
			t.Errorf("List has %d notes, want 3", len(rows))
		}
		return err
	})
}
