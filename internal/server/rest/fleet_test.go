package rest_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

func TestActivityIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("activity")
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})

	for query, want := range map[string]int{
		"": 200, "?step=1h": 200, "?since=2026-01-01T00:00:00Z&until=2026-01-15T00:00:00Z&step=15m": 200,
		"?since=2026-01-01T00:00:00Z&until=2026-01-15T00:00:00Z": 400, "?since=1000-01-01T00:00:00Z&until=9999-01-01T00:00:00Z&step=1h": 400,
		"?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": 400, "?since=9999-01-01T00:00:00Z": 400, "?step=2m": 400, "?since=yesterday": 400,
	} {
		viewer.send("GET", "/api/v1/activity"+query, nil).wants(t, want)
	}
	viewer.send("GET", "/api/v1/workers", nil).wants(t, 403)
	f.agent.send("GET", "/api/v1/activity", nil).wants(t, 403)
}

func TestPausesAreForecast(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, other := h.tenant("forecast"), h.tenant("others")
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	other.agent.propose("read")
	for range 3 {
		f.agent.propose("read")
	}
	f.agent.propose("write")
	f.exec("UPDATE outbox SET lease_until = now() + interval '1 minute' WHERE action_id = (SELECT action_id FROM outbox WHERE tenant_id = $1 LIMIT 1)", f.id.String())
	forecast := func(query string) (got object) {
		viewer.send("GET", "/api/v1/pauses/forecast?"+query, nil).wants(t, 200).into(t, &got)
		return got
	}

	for query, want := range map[string]object{
		"scope=tenant":                            {"pending": 2.0, "undecided": 1.0, "in_flight": 1.0, "at_least": false},
		"scope=tool&subject=mail:read":            {"pending": 2.0, "undecided": 0.0, "in_flight": 1.0, "at_least": false},
		"scope=tool&subject=mail:write":           {"pending": 0.0, "undecided": 1.0, "in_flight": 0.0, "at_least": false},
		"scope=automation&subject=never-proposed": {"pending": 0.0, "undecided": 0.0, "in_flight": 0.0, "at_least": false},
	} {
		if diff := cmp.Diff(want, forecast(query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for _, query := range []string{"scope=everything", "scope=tool", "scope=tool&subject=mail:nope", "scope=source&subject=" + url.QueryEscape("почта"), "scope=tenant&subject=x"} {
		viewer.send("GET", "/api/v1/pauses/forecast?"+query, nil).wants(t, 400)
	}
}

// eventPage is a page of the log of events.
type eventPage struct {
	Items []struct {
		Position, Kind, Actor string
		Items                 []object
		Total                 int `json:"items_total"`
	}
	Next string `json:"next_cursor"`
}

func TestEventsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, other := h.tenant("logged"), h.tenant("unseen")
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	other.admin.send("PUT", "/api/v1/buckets/theirs", object{}).wants(t, 200)
	first := f.agent.propose("read")
	for _, name := range []string{"one", "two", "three"} {
		f.admin.send("PUT", "/api/v1/buckets/"+name, object{}).wants(t, 200)
	}
	h.checkpoint()
	read := func(query string) (page eventPage) {
		viewer.send("GET", "/api/v1/audit/log?"+query, nil).wants(t, 200).into(t, &page)
		return page
	}
	subjects := func(page eventPage) (all []string) {
		for _, e := range page.Items {
			for _, item := range e.Items {
				if s, ok := item["subject"].(string); ok {
					all = append(all, s)
				}
			}
		}
		return all
	}

	want := subjects(read("kind=configured&subject=BUCKET"))
	if len(want) != 3 || !strings.Contains(want[0], "three") || !strings.Contains(want[2], "one") {
		t.Fatalf("the changes of buckets: %q", want)
	}
	var paged []string
	for cursor := ""; ; {
		page := read("limit=1&subject=bucket" + cursor)
		paged = append(paged, subjects(page)...)
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	if diff := cmp.Diff(want, paged); diff != "" {
		t.Errorf("in pages (-want +got):\n%s", diff)
	}
	if got := read("action_id=" + first); len(got.Items) != 1 || got.Items[0].Kind != "proposed" || got.Items[0].Total != 1 {
		t.Errorf("of an action: %+v", got)
	}
	for _, query := range []string{"kind=pruned", "actor=nobody", "subject=theirs", "until=2026-01-02T03:04:05Z", "since=2999-01-02T03:04:05Z", "subject=" + url.QueryEscape("%_'\\\u202e")} {
		if got := read(query); len(got.Items) != 0 || got.Next != "" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	for _, query := range []string{"cursor=x", "cursor=99999999999999999999-1", "action_id=1", "since=2026-01-02T03:04:05Z&until=2026-01-02T03:04:05Z", "limit=0"} {
		viewer.send("GET", "/api/v1/audit/log?"+query, nil).wants(t, 400)
	}
	f.agent.send("GET", "/api/v1/audit/log", nil).wants(t, 403)
}
