package rest_test

import (
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// shownForecast is the part of a forecast that tests compare.
type shownForecast struct {
	GoesOutAt *time.Time `json:"goes_out_at"`
	Allowed   bool
	Gates     []struct{ For string }
	Problem   *struct {
		Status int
		Detail string
	}
}

func TestForecastMakesTheSameChecks(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("forecast")
	id, over := f.agent.propose("write"), f.agent.propose("write")
	forecast := func(id string) (o shownForecast) {
		f.operator.send("GET", path(id, "/forecast"), nil).wants(t, 200).into(t, &o)
		return o
	}
	events := f.count("SELECT count(1) FROM events WHERE tenant_id = $1", f.id.String())

	if o := forecast(id); !o.Allowed || o.GoesOutAt == nil || len(o.Gates) != 0 || o.Problem != nil {
		t.Errorf("at first %+v, want that it goes out", o)
	}
	f.exec("UPDATE actions SET approval_expires_at = now() - interval '1 second' WHERE action_id = $1", over)
	if o := forecast(over); o.Allowed || o.GoesOutAt != nil || o.Problem == nil || o.Problem.Status != 410 {
		t.Errorf("too late %+v, want 410", o)
	}
	if got := f.count("SELECT count(1) FROM events WHERE tenant_id = $1", f.id.String()); got != events {
		t.Errorf("%d events were recorded, want none", got-events)
	}

	var paused struct {
		ID string `json:"pause_id"`
	}
	f.operator.send("POST", "/api/v1/pauses", object{"scope": "source", "subject": "mail", "reason": "a test"}).wants(t, 201).into(t, &paused)
	if o := forecast(id); !o.Allowed || o.GoesOutAt != nil || len(o.Gates) != 1 || o.Gates[0].For != "paused" {
		t.Errorf("under a pause %+v, want one gate without an end", o)
	}
	f.operator.send("DELETE", "/api/v1/pauses/"+paused.ID, object{}).wants(t, 204)
	f.admin.send("PUT", "/api/v1/policy/modes/mail:write", object{"mode": "deny"}).wants(t, 200)
	denied := forecast(id)
	refused := f.operator.send("POST", path(id, "/approve"), nil).wants(t, 409).problem(t)
	if denied.Allowed || denied.Problem == nil || denied.Problem.Detail != refused.Detail {
		t.Errorf("denied by policy %+v, want what an approval is refused with: %+v", denied, refused)
	}
	f.admin.send("DELETE", "/api/v1/policy/modes/mail:write", nil).wants(t, 204)
	f.operator.send("POST", path(id, "/deny"), nil).wants(t, 200)
	if o := forecast(id); o.Allowed || o.Problem == nil || o.Problem.Status != 409 {
		t.Errorf("denied %+v, want 409", o)
	}
	f.agent.send("GET", path(id, "/forecast"), nil).wants(t, 403)
}

func TestDeadLettersAreSummarized(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("summary")
	f.dead()
	f.unresolved()
	f.agent.propose("read")
	f.settle(envelope.StatusFailed, outbox.Exhausted)
	type group struct {
		Source, Tool, Reason, Code string
		Count                      int
		Capped                     bool
		Oldest, Newest             time.Time
	}
	summary := func(query string) (groups []group) {
		var answer struct{ Items []group }
		f.operator.send("GET", deadLettersPath+"/summary"+query, nil).wants(t, 200).into(t, &answer)
		return answer.Items
	}

	all := summary("")

	if len(all) != 3 || all[0].Tool != "mail:read" || all[0].Source != "mail" || all[0].Reason != "refused" || all[0].Code != "http_400" ||
		all[0].Count != 3 || all[0].Capped || all[0].Newest.Before(all[0].Oldest) {
		t.Errorf("summary = %+v, want three refused first, and two of one", all)
	}
	if got := summary("?reason=unknown"); len(got) != 1 || got[0].Count != 1 || got[0].Reason != "unknown" {
		t.Errorf("summary of unknown ones = %+v", got)
	}
	if got := summary("?tool=mail:none"); len(got) != 0 {
		t.Errorf("summary of a tool without any = %+v", got)
	}
	f.agent.send("GET", deadLettersPath+"/summary", nil).wants(t, 403)
}
