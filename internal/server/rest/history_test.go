package rest_test

import (
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// shownHistory is the part of a history that tests compare.
type shownHistory struct {
	Items []struct {
		Kind, Actor, Note string
		Detail            *struct {
			Origin *struct{ Via string }
		}
	}
	NextCursor *string `json:"next_cursor"`
}

// kinds returns the kinds of the entries, in order.
func (h shownHistory) kinds() []string {
	var kinds []string
	for _, it := range h.Items {
		kinds = append(kinds, it.Kind)
	}
	return kinds
}

func TestHistoryIsPagedAndNeedsSightOfTheAction(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("history")
	id := f.agent.propose("write")
	f.operator.send("POST", path(id, "/approve"), object{"note": "fine"}).wants(t, 200)
	f.settle(envelope.StatusFailed, outbox.Refused)
	f.operator.send("POST", deadLettersPath+"/replay", object{"action_ids": []string{id}, "note": "again"}).wants(t, 200)

	var whole shownHistory
	f.agent.send("GET", path(id, "/history"), nil).wants(t, 200).into(t, &whole)
	var paged []string
	for cursor := ""; ; {
		var page shownHistory
		f.admin.send("GET", path(id, "/history?limit=2"+cursor), nil).wants(t, 200).into(t, &page)
		paged = append(paged, page.kinds()...)
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}

	want := []string{"proposed", "asked", "approved", "attempt", "replayed", "waits"}
	if got := whole.kinds(); !slices.Equal(got, want) || !slices.Equal(paged, want) {
		t.Fatalf("history = %q, in pages %q, want %q", got, paged, want)
	}
	if p := whole.Items[0]; p.Actor != f.agent.named("agent") || p.Detail.Origin.Via != "api" {
		t.Errorf("proposed by %q over %+v", p.Actor, p.Detail)
	}
	if v := whole.Items[2]; v.Actor != f.operator.named("operator") || v.Note != "fine" {
		t.Errorf("approved by %q, %q", v.Actor, v.Note)
	}
	if r := whole.Items[4]; r.Actor != f.operator.named("operator") || r.Note != "again" {
		t.Errorf("replayed by %q, %q", r.Actor, r.Note)
	}
	f.other.send("GET", path(id, "/history"), nil).wants(t, 404)
	f.fixture.tenant("others").operator.send("GET", path(id, "/history"), nil).wants(t, 404)
}

// TestListPagesInBothOrders lists by filters in pages, in both orders.
func TestListPagesInBothOrders(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("orders")
	var ids []string
	for range 3 {
		ids = append(ids, f.agent.propose("write"))
		f.agent.propose("read")
	}
	list := func(query string) (found []string) {
		for cursor := ""; ; {
			var page struct {
				Items      []shown
				NextCursor *string `json:"next_cursor"`
			}
			f.operator.send("GET", "/api/v1/actions?limit=2&phase=pending,denied&risk=low,medium,high&"+query+cursor, nil).wants(t, 200).into(t, &page)
			for _, a := range page.Items {
				found = append(found, a.Envelope.ActionID)
			}
			if page.NextCursor == nil {
				return found
			}
			cursor = "&cursor=" + *page.NextCursor
		}
	}

	oldest, newest := list("order=oldest"), list("order=newest")

	slices.Reverse(newest)
	if !slices.Equal(oldest, ids) || !slices.Equal(newest, ids) {
		t.Errorf("the oldest first %v, the newest first turned around %v, want %v", oldest, newest, ids)
	}
	f.operator.send("GET", "/api/v1/actions?phase=pending,ended", nil).wants(t, 400)
	var first struct {
		NextCursor string `json:"next_cursor"`
	}
	f.operator.send("GET", "/api/v1/actions?limit=1", nil).wants(t, 200).into(t, &first)
	f.operator.send("GET", "/api/v1/actions?limit=1&order=oldest&cursor="+first.NextCursor, nil).wants(t, 400)
}
