package rest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

func TestDecisions(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("decisions")
	granted, denied, own := f.agent.propose("write"), f.agent.propose("write"), f.operator.propose("write")

	yes := f.operator.send("POST", path(granted, "/approve"), object{"note": "as agreed"}).wants(t, 200).action(t)
	no := f.operator.send("POST", path(denied, "/deny"), object{"note": "not today"}).wants(t, 200).action(t)

	if yes.Phase != "approved" || yes.Decision == nil || yes.Decision.By != f.operator.named("operator") || yes.Decision.Note != "as agreed" {
		t.Errorf("approved = %+v", yes)
	}
	if no.Phase != "denied" || no.Decision == nil || no.Decision.Note != "not today" {
		t.Errorf("denied = %+v", no)
	}
	f.operator.send("POST", path(own, "/approve"), nil).wants(t, 403)
	f.operator.send("POST", path(denied, "/approve"), nil).wants(t, 409)
	f.agent.send("POST", path(own, "/approve"), nil).wants(t, 403)
}

func TestLateDecisionIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("late")
	id := f.agent.propose("write")
	if _, err := f.db.Exec(t.Context(), "UPDATE actions SET approval_expires_at = now() - interval '1 second'"); err != nil {
		t.Fatal(err)
	}

	f.operator.send("POST", path(id, "/approve"), nil).wants(t, 410)
}

func TestUndo(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("undo")
	early, late := f.agent.propose("read"), ""

	if got := f.agent.send("POST", path(early, "/undo"), nil).wants(t, 200).action(t); got.Envelope.Result.Status != "skipped" {
		t.Errorf("undone action is %s, want skipped", got.Envelope.Result.Status)
	}
	late = f.agent.propose("read")
	f.settle(envelope.StatusSent, "")
	f.agent.send("POST", path(late, "/undo"), nil).wants(t, 409)
}

// Each state has a message of its own, the same for an undo and for a decision.
func TestRefusedDecisionsNameTheOutcome(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("outcomes")
	for name, row := range map[string]struct {
		end     func(id string)
		status  int
		outcome string
	}{
		"undone":  {func(id string) { f.agent.send("POST", path(id, "/undo"), nil).wants(t, 200) }, 409, "it was undone by agent"},
		"denied":  {func(id string) { f.admin.send("POST", path(id, "/deny"), object{"note": "not today"}).wants(t, 200) }, 409, "it was denied by admin"},
		"granted": {func(id string) { f.admin.send("POST", path(id, "/approve"), nil).wants(t, 200) }, 409, "it was approved by admin"},
		"expired": {func(id string) {
			f.exec("UPDATE actions SET approval_state = 'expired', decided_at = now(), decided_by = 'system' WHERE action_id = $1", id)
		}, 410, "nobody decided about it by "},
		"overdue": {func(id string) {
			f.exec("UPDATE actions SET approval_expires_at = now() - interval '1 s' WHERE action_id = $1", id)
		}, 410, "nobody decided about it by "},
	} {
		id := f.agent.propose("write")
		row.end(id)
		for _, what := range []string{"/approve", "/deny"} {
			if p := f.operator.send("POST", path(id, what), nil).wants(t, row.status).problem(t); !strings.Contains(p.Detail, id) || !strings.Contains(p.Detail, ": "+row.outcome) {
				t.Errorf("%s of %s = %q, want %q", what, name, p.Detail, row.outcome)
			}
		}
		if name == "granted" || name == "overdue" {
			continue // pending and scheduled actions are undone
		}
		if p := f.agent.send("POST", path(id, "/undo"), nil).wants(t, 409).problem(t); !strings.Contains(p.Detail, ": "+row.outcome) {
			t.Errorf("undo of %s = %q, want %q", name, p.Detail, row.outcome)
		}
	}
}

func TestOfRacingDecisionsOneWins(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("races")
	for range 5 {
		id := f.agent.propose("write")
		var (
			racers sync.WaitGroup
			mu     sync.Mutex
			won    []string
		)

		for _, r := range []struct {
			who  *client
			what string
		}{{f.operator, "/approve"}, {f.operator, "/deny"}, {f.admin, "/approve"}, {f.admin, "/deny"}} {
			racers.Go(func() {
				a, err := r.who.trySend(t.Context(), "POST", path(id, r.what), nil)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				switch a.status {
				case 200:
					won = append(won, r.what)
				case 409:
				default:
					t.Errorf("%s = %d: %s", r.what, a.status, a.body)
				}
			})
		}
		racers.Wait()

		if len(won) != 1 {
			t.Fatalf("%d decisions won: %v", len(won), won)
		}
		want := map[string]string{"/approve": "granted", "/deny": "denied"}[won[0]]
		if got := f.agent.send("GET", path(id), nil).action(t).Envelope.Approval; got != want {
			t.Errorf("%s won, and the action is %s", won[0], got)
		}
	}
}

func TestRacingUndoAndDenialLeaveOneEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("undo-races")
	for range 5 {
		id := f.agent.propose("write")
		var racers sync.WaitGroup
		status := make([]int, 2)

		for i, send := range []func() (answer, error){
			func() (answer, error) { return f.agent.trySend(t.Context(), "POST", path(id, "/undo"), nil) },
			func() (answer, error) { return f.operator.trySend(t.Context(), "POST", path(id, "/deny"), nil) },
		} {
			racers.Go(func() {
				a, err := send()
				if err != nil {
					t.Error(err)
				}
				status[i] = a.status
			})
		}
		racers.Wait()

		if !(status[0] == 200 && status[1] == 409 || status[0] == 409 && status[1] == 200) {
			t.Errorf("undo = %d, deny = %d, want one 200 and one 409", status[0], status[1])
		}
	}
}

func TestWaitReturnsWhenTheActionEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("waits")
	id := f.agent.propose("read")
	answers := make(chan answer, 3)
	var waiting sync.WaitGroup
	wait := func(method, at string, body any) {
		waiting.Go(func() {
			a, err := f.agent.trySend(t.Context(), method, at, body)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		})
	}
	begun := time.Now()

	wait("GET", path(id, "/wait?wait=1m"), nil)
	wait("GET", path(id, "/wait"), nil)
	wait("POST", "/api/v1/actions?wait=1m", proposal("read", object{}))
	for settled := 0; settled < 2; {
		settled += f.settle(envelope.StatusSent, "")
	}
	waiting.Wait()

	for range 3 {
		a := <-answers
		if got := a.action(t); a.status >= 300 || got.Envelope.Result.Status != "sent" || a.header.Get("Countersign-Pending") != "" {
			t.Errorf("wait = %d %s, pending %q", a.status, got.Envelope.Result.Status, a.header.Get("Countersign-Pending"))
		}
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("the wait took %s", took)
	}
	f.agent.send("GET", path(id, "/wait?wait=5m"), nil).wants(t, 200)
}

func TestWaitEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("deadlines")
	id := f.agent.propose("write")

	a := f.agent.send("GET", path(id, "/wait?wait=150ms"), nil).wants(t, 200)

	if a.action(t).Phase != "pending" || a.header.Get("Countersign-Pending") != "true" {
		t.Errorf("phase %s with Countersign-Pending %q", a.action(t).Phase, a.header.Get("Countersign-Pending"))
	}
	b := f.operator.send("POST", path(id, "/approve?wait=50ms"), nil).wants(t, 200)
	if b.action(t).Phase != "approved" || b.header.Get("Countersign-Pending") != "true" {
		t.Errorf("phase %s with Countersign-Pending %q", b.action(t).Phase, b.header.Get("Countersign-Pending"))
	}
}

func TestWaitDoesNotHangOnAnotherTransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("held")
	id := f.agent.propose("read")
	// While this transaction is open no event is read.
	held, err := f.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := held.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	f.settle(envelope.StatusSent, "")
	other := f.agent.propose("read")
	done := make(chan answer, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		a, err := f.agent.trySend(t.Context(), "GET", path(other, "/wait?wait=1m"), nil)
		if err != nil {
			t.Error(err)
		}
		done <- a
	})
	f.settle(envelope.StatusSent, "")
	waiting.Wait()

	if a := <-done; a.action(t).Phase != "completed" || a.header.Get("Countersign-Pending") != "" {
		t.Errorf("wait = %s", a.body)
	}
	f.agent.send("GET", path(id), nil).wants(t, 200)
}

func TestDeadLettersAreReplayedAndDiscarded(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("dead-letters")
	ids := f.dead()
	var page struct {
		Items []struct {
			ActionID string `json:"action_id"`
			Reason   string
		}
		NextCursor *string `json:"next_cursor"`
	}

	f.operator.send("GET", "/api/v1/dead-letters?limit=2", nil).wants(t, 200).into(t, &page)
	if len(page.Items) != 2 || page.NextCursor == nil {
		t.Fatalf("page = %+v, want two and a cursor", page)
	}
	f.operator.send("GET", "/api/v1/dead-letters?cursor="+*page.NextCursor, nil).wants(t, 200).into(t, &page)
	if len(page.Items) != 1 || page.NextCursor != nil || page.Items[0].ActionID != ids[0] {
		t.Fatalf("last page = %+v, want only %s", page, ids[0])
	}
	var done struct {
		ActionIDs []string `json:"action_ids"`
	}
	f.operator.send("POST", "/api/v1/dead-letters/replay", object{"action_ids": ids[:1]}).wants(t, 200).into(t, &done)
	if len(done.ActionIDs) != 1 || f.settle(envelope.StatusSent, "") != 1 {
		t.Errorf("replayed %v", done.ActionIDs)
	}
	f.operator.send("POST", "/api/v1/dead-letters/discard", object{"action_ids": ids, "reason": "old"}).wants(t, 200).into(t, &done)
	if len(done.ActionIDs) != 2 {
		t.Errorf("discarded %v, want the two that were left", done.ActionIDs)
	}
	f.operator.send("GET", "/api/v1/dead-letters/"+ids[1], nil).wants(t, 404)
}

func TestUnknownOutcomeIsReplayedOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("doubling")
	id := f.agent.propose("read")
	f.settle(envelope.StatusUnknown, outbox.Unknown)
	body := object{"action_ids": []string{id}}

	f.operator.send("POST", "/api/v1/dead-letters/replay", body).wants(t, 409)
	body["allow_duplicates"] = true
	f.operator.send("POST", "/api/v1/dead-letters/replay", body).wants(t, 200)
}

func TestChangesOfConfigurationLeaveAnEvent(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("changes")
	count := func() (n int) {
		f.inTx(func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, "SELECT count(1) FROM events WHERE kind = 'configured' AND actor LIKE 'admin (token %'").Scan(&n)
		})
		return n
	}
	visits := f.visits()

	for _, operation := range []string{"acceptTool", "configureTool", "putReconcileRule", "putSource", "putMode", "deleteMode", "issueToken", "revokeToken", "deleteSource"} {
		v, before := visits[operation], count()
		f.admin.send(v.method, v.path, v.body).wants(t, v.want)
		if got := count() - before; got != 1 {
			t.Errorf("%s left %d events, want 1", operation, got)
		}
		if v.method == "DELETE" {
			before = count()
			f.admin.send(v.method, v.path, v.body).wants(t, 404)
			if count() != before {
				t.Errorf("%s of what is not there left an event", operation)
			}
		}
	}
}

func TestSourcesKeepTheirCredentialsToThemselves(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("credentials")
	const at = "/api/v1/sources/crm"
	put := func(url string, credentials any, want int) {
		t.Helper()
		body := object{"kind": "mcp", "config": object{"transport": "http", "url": url}}
		if credentials != nil {
			body["credentials"] = credentials
		}
		f.admin.send("PUT", at, body).wants(t, want)
	}
	has := func() (has bool) {
		t.Helper()
		var list struct {
			Items []struct {
				ID             string `json:"source_id"`
				HasCredentials bool   `json:"has_credentials"`
			}
		}
		a := f.operator.send("GET", "/api/v1/sources", nil).wants(t, 200)
		a.into(t, &list)
		if contains(a.body, marker) {
			t.Error("GET /sources shows credentials")
		}
		for _, it := range list.Items {
			has = has || it.ID == "crm" && it.HasCredentials
		}
		return has
	}

	put("http://a", object{"header": object{"Authorization": marker}}, 200)
	var stored []byte
	if err := f.db.QueryRow(t.Context(), "SELECT secret FROM sources WHERE source_id = 'crm'").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if !has() || contains(stored, marker) {
		t.Error("the credentials are not there, or not encrypted")
	}
	put("http://a", nil, 200)
	if !has() {
		t.Error("credentials that were left out are gone")
	}
	put("http://b", nil, 400)
	put("http://b", object{}, 200)
	if has() {
		t.Error("credentials that were given up are there")
	}
}

func TestSourcesOfEveryKindAreStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("kinds")
	values := func(name string) object { return object{"values": object{name: marker}} }
	for kind, body := range map[string]object{
		"tool_gateway": {"config": object{"url": "http://gateway.example", "honours_key": true}},
		"composio":     {"config": object{"user_id": "u1", "toolkits": []string{"github"}}, "credentials": values("api_key")},
		"slack":        {"config": object{"mark_messages": true}, "credentials": values("token")},
		"linear":       {"config": object{}, "credentials": values("api_key")},
		"sentry":       {"config": object{"organization": "acme"}, "credentials": values("token")},
		"dav":          {"config": object{"calendars": object{"work": "https://dav.example/ann/"}, "user": "ann"}, "credentials": values("password")},
		"mail": {
			"config":      object{"accounts": object{"work": object{"kind": "imap", "host": "imap.example", "user": "ada"}}},
			"credentials": object{"accounts": object{"work": marker}},
		},
		"builtin": {
			"config":      object{"http": object{"allow": []object{{"prefix": "https://api.example/v1", "methods": []string{"GET"}, "credentials": true}}}},
			"credentials": object{"header": object{"X-Key": marker}},
		},
	} {
		body["kind"] = kind
		f.admin.send("PUT", "/api/v1/sources/"+kind, body).wants(t, 200)
	}

	var list struct {
		Items []struct {
			ID, Kind       string
			HasCredentials bool `json:"has_credentials"`
		}
	}
	a := f.operator.send("GET", "/api/v1/sources", nil).wants(t, 200)
	a.into(t, &list)
	for _, it := range list.Items {
		if it.Kind == it.ID && it.HasCredentials != (it.Kind != "tool_gateway") {
			t.Errorf("the source of kind %s has credentials: %t", it.Kind, it.HasCredentials)
		}
	}
	if len(list.Items) < 5 || contains(a.body, marker) {
		t.Errorf("%d sources are listed, and credentials shown: %t", len(list.Items), contains(a.body, marker))
	}
	// Another kind would send the stored credentials elsewhere.
	f.admin.send("PUT", "/api/v1/sources/linear", object{"kind": "slack", "config": object{}}).wants(t, 400)
	for field, body := range map[string]object{
		"/config/organization": {"kind": "sentry", "config": object{}},
		"/config/user_id":      {"kind": "composio", "config": object{"toolkits": []string{"github"}}},
		"/config/url":          {"kind": "tool_gateway", "config": object{"url": "ftp://x"}},
		"/kind":                {"kind": "fax", "config": object{}},
		"/config/accounts/a":   {"kind": "mail", "config": object{"accounts": object{"a": object{"kind": "maildir", "path": "mail"}}}},
		"/config/transport":    {"kind": "mcp", "config": object{}},
		"/config/http/allow/0": {"kind": "builtin", "config": object{"http": object{"allow": []object{{"prefix": "https://a/../b"}}}}},
		"/config/http/allow":   {"kind": "builtin", "config": object{"http": object{"allow": []object{}}}},
	} {
		if a := f.admin.send("PUT", "/api/v1/sources/bad", body).wants(t, 400); !contains(a.body, field) {
			t.Errorf("%v is refused with %s, want %s named", body, a.body, field)
		}
	}
}

func TestToolsShowTheirMode(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("tools")
	modes := func(query string) map[string]string {
		var list struct{ Items []struct{ Tool, Mode string } }
		f.operator.send("GET", "/api/v1/tools"+query, nil).wants(t, 200).into(t, &list)
		got := make(map[string]string)
		for _, it := range list.Items {
			got[it.Tool] = it.Mode
		}
		return got
	}

	if got := modes(""); got["mail:read"] != "allow" || got["mail:write"] != "require_approval" || got["mail:danger"] != "deny" {
		t.Errorf("modes = %v", got)
	}
	f.admin.send("PUT", "/api/v1/policy/modes/mail:write?automation_id=nightly", object{"mode": "allow"}).wants(t, 200)
	if got := modes("?automation_id=nightly"); got["mail:write"] != "allow" {
		t.Errorf("modes under the automation = %v", got)
	}
	f.operator.send("PUT", "/api/v1/tools/mail:write/overrides", object{"risk": "danger"}).wants(t, 200)
	if got := modes(""); got["mail:write"] != "deny" {
		t.Errorf("modes after the override = %v", got)
	}
	f.operator.send("PUT", "/api/v1/tools/mail:none/overrides", object{}).wants(t, 404)
}
