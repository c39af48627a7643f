package rest_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

const deadLettersPath = "/api/v1/dead-letters"

// bulkDone is the result of a bulk request.
type bulkDone struct {
	DryRun    bool     `json:"dry_run"`
	ActionIDs []string `json:"action_ids"`
	Left      int
	LeftOut   int `json:"left_out"`
	Counts    []struct {
		Tool, Reason string
		Count        int
	}
	AsOf  time.Time `json:"as_of"`
	Ahead int       `json:"ahead_ms"`
}

func (f *tenantFixture) change(how string, body object) (done bulkDone) {
	f.t.Helper()
	f.operator.send("POST", deadLettersPath+how, body).wants(f.t, 200).into(f.t, &done)
	return done
}

func TestReplayByFilterInBulk(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("bulk")
	dead, unresolved := f.dead(), f.unresolved()
	all := object{}

	dry := f.change("/replay", object{"filter": all, "dry_run": true})
	upTo := object{"until": dry.AsOf}
	first := f.change("/replay", object{"filter": upTo, "limit": 2, "per_second": 0.01})
	// One of them fails again, and is a new dead letter.
	if f.settle(envelope.StatusFailed, outbox.Refused) != 1 {
		t.Fatal("the first that was replayed is not due, or more than it")
	}
	second := f.change("/replay", object{"filter": upTo, "limit": 2, "per_second": 0.01})

	if !dry.DryRun || len(dry.ActionIDs) != 3 || dry.Left != 3 || dry.LeftOut != 1 || len(dry.Counts) != 2 || dry.Counts[0].Count+dry.Counts[1].Count != 4 {
		t.Errorf("dry run = %+v, want three, and one of unknown outcome left out", dry)
	}
	if got := slices.Concat(first.ActionIDs, second.ActionIDs); !slices.Equal(got, dead) || first.Left != 1 || second.Left != 0 {
		t.Errorf("replayed %v with %d and %d left, want %v, the oldest first", got, first.Left, second.Left, dead)
	}
	if first.Ahead != 200_000 || second.Ahead <= 200_000 || second.Ahead > 300_000 {
		t.Errorf("the schedule reaches %d and %d ms ahead, want 200000 and up to 300000", first.Ahead, second.Ahead)
	}
	if got := f.change("/replay", object{"filter": all, "dry_run": true}); !slices.Equal(got.ActionIDs, dead[:1]) {
		t.Errorf("dead letters are %v, want the one that failed again", got.ActionIDs)
	}
	f.operator.send("GET", deadLettersPath+"/"+unresolved, nil).wants(t, 200)
}

func TestDiscardByFilter(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("discards")
	dead, unresolved := f.dead(), f.unresolved()
	by := object{"reason": "refused", "source": "mail", "tool": "mail:read", "code": "http_400", "since": "2026-01-02T03:04:05Z"}

	dry := f.change("/discard", object{"filter": by, "reason": "old", "dry_run": true})
	done := f.change("/discard", object{"filter": by, "reason": "old", "limit": 2})

	if !slices.Equal(dry.ActionIDs, dead) || !slices.Equal(done.ActionIDs, dead[:2]) || done.Left != 1 {
		t.Errorf("discarded %v of %v, and %d left", done.ActionIDs, dry.ActionIDs, done.Left)
	}
	if got := f.change("/discard", object{"filter": object{}, "action_ids": []string{unresolved, dead[0]}, "reason": "old"}); !slices.Equal(got.ActionIDs, []string{unresolved}) {
		t.Errorf("discarded %v, want the one that was still there", got.ActionIDs)
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		var kind, actor, note string
		err := tx.QueryRow(ctx, "SELECT kind, actor, items->0->>'note' FROM events ORDER BY event_id DESC LIMIT 1").Scan(&kind, &actor, &note)
		if kind != "discarded" || actor != f.operator.named("operator") || note != "old" {
			t.Errorf("the last event is %s by %s: %s", kind, actor, note)
		}
		return err
	})
}

func TestChangesOfDeadLettersAreCheckedAgainstTheContract(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("validated")
	id := envelope.NewActionID().String()
	noon, later := "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"
	for name, test := range map[string]struct {
		how  string
		body object
		at   string
	}{
		"neither ids nor a filter":         {"/replay", object{"dry_run": true}, "/action_ids"},
		"no id":                            {"/replay", object{"action_ids": []string{}}, "/action_ids"},
		"an unknown reason":                {"/replay", object{"filter": object{"reason": "bored"}}, "/filter/reason"},
		"a field that is none":             {"/replay", object{"filter": object{"tools": "x"}}, "/filter/tools"},
		"a source that is none":            {"/discard", object{"reason": "x", "filter": object{"source": "Mail!"}}, "/filter/source"},
		"a code that is none":              {"/discard", object{"reason": "x", "filter": object{"code": "A B"}}, "/filter/code"},
		"a time that is none":              {"/replay", object{"filter": object{"since": "yesterday"}}, "/filter/since"},
		"a window that never opens":        {"/replay", object{"filter": object{"since": later, "until": noon}}, "/filter/until"},
		"a rate of zero":                   {"/replay", object{"filter": object{}, "per_second": 0}, "/per_second"},
		"a rate beyond measure":            {"/replay", object{"filter": object{}, "per_second": 10001}, "/per_second"},
		"a bulk request of none":           {"/replay", object{"filter": object{}, "limit": 0}, "/limit"},
		"a bulk request that is too large": {"/discard", object{"reason": "x", "filter": object{}, "limit": 1001}, "/limit"},
		"a discard without reason":         {"/discard", object{"filter": object{}}, "/reason"},
		"a finding without a note":         {"/" + id + "/resolve", object{"happened": true}, "/note"},
		"a note without a finding":         {"/" + id + "/resolve", object{"note": "x"}, "/happened"},
		"giving up what happened":          {"/" + id + "/resolve", object{"happened": true, "give_up": true, "note": "x"}, "/give_up"},
	} {
		p := f.operator.send("POST", deadLettersPath+test.how, test.body).wants(t, 400).problem(t)
		if !slices.ContainsFunc(p.Errors, func(e envelope.FieldError) bool { return e.Pointer == test.at }) {
			t.Errorf("%s is an error at %+v, want %s", name, p.Errors, test.at)
		}
	}
	for query, at := range map[string]string{
		"?since=noon": "/query/since", "?until=" + noon + "&since=" + later: "/query/until", "?reason=x": "/query/reason", "?source=A": "/query/source", "?code=A": "/query/code",
	} {
		for _, list := range []string{deadLettersPath, deadLettersPath + "/export"} {
			if p := f.operator.send("GET", list+query, nil).wants(t, 400).problem(t); len(p.Errors) != 1 || p.Errors[0].Pointer != at {
				t.Errorf("%s%s is an error at %+v, want %s", list, query, p.Errors, at)
			}
		}
	}
}

func TestResolveByOperator(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("resolves")
	happened, again, over := f.unresolved(), f.unresolved(), f.unresolved()
	refused := f.dead()[0]
	resolve := func(id string, body object, want int) answer {
		t.Helper()
		body["note"] = "asked the provider"
		return f.operator.send("POST", deadLettersPath+"/"+id+"/resolve", body).wants(t, want)
	}

	yes := resolve(happened, object{"happened": true}, 200).action(t)
	no := resolve(again, object{"happened": false}, 200).action(t)
	end := resolve(over, object{"happened": false, "give_up": true}, 200).action(t)

	if yes.Phase != "completed" || yes.Envelope.Result.Status != "sent" || no.Phase != "approved" || no.Envelope.Result.Status != "pending" || end.Phase != "failed" {
		t.Errorf("resolved they are %+v, %+v and %+v", yes, no, end)
	}
	resolve(happened, object{"happened": true}, 409)
	resolve(refused, object{"happened": true}, 409)
	resolve(envelope.NewActionID().String(), object{"happened": true}, 404)
	if f.settle(envelope.StatusSent, "") != 1 {
		t.Error("what did not happen is not due")
	}
}

func TestOfRacingResolutionsOneWins(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("resolve-races")
	for range 5 {
		id := f.unresolved()
		var racers sync.WaitGroup
		var mu sync.Mutex
		var won []string
		for _, body := range []object{{"happened": true}, {"happened": false}, {"happened": false, "give_up": true}, {"happened": true}} {
			body["note"] = "sure"
			racers.Go(func() {
				a, err := f.operator.trySend(t.Context(), "POST", deadLettersPath+"/"+id+"/resolve", body)
				if err != nil || a.status != 200 && a.status != 409 {
					t.Errorf("resolve = %d, %v: %s", a.status, err, a.body)
				}
				if a.status == 200 {
					mu.Lock()
					defer mu.Unlock()
					won = append(won, a.action(t).Envelope.Result.Status)
				}
			})
		}
		racers.Wait()
		if len(won) != 1 {
			t.Fatalf("%d resolutions won: %v", len(won), won)
		}
		if got := f.agent.send("GET", path(id), nil).action(t).Envelope.Result.Status; got != won[0] {
			t.Errorf("%s won, and the action is %s", won[0], got)
		}
	}
}

func TestExportRedactsProposals(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("exports")
	ids := []string{}
	for range 3 {
		args := object{"to": "a@example.org", "password": marker}
		ids = append(ids, f.agent.send("POST", "/api/v1/actions", proposal("read", args)).wants(t, 201).action(t).Envelope.ActionID)
	}
	f.settle(envelope.StatusFailed, outbox.Refused)

	var got []string
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				ActionID string `json:"action_id"`
				Args     json.RawMessage
			}
			NextCursor *string `json:"next_cursor"`
		}
		a := f.operator.send("GET", deadLettersPath+"/export?limit=2"+cursor, nil).wants(t, 200)
		if contains(a.body, marker) {
			t.Errorf("the export shows a credential: %s", a.body)
		}
		a.into(t, &page)
		for _, it := range page.Items {
			got = append(got, it.ActionID)
			if !strings.Contains(string(it.Args), "a@example.org") {
				t.Errorf("args of %s are %s", it.ActionID, it.Args)
			}
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}

	slices.Reverse(got)
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("exported (-want +got):\n%s", diff)
	}
}

func TestVerifyRulesAreCheckedBeforeTheyAreKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("verify-rules")
	path := func(tool string) string { return "/api/v1/tools/mail:" + tool + "/reconcile-rule" }
	put := func(tool string, rule object, want int) answer {
		t.Helper()
		return f.admin.send("PUT", path(tool), rule).wants(t, want)
	}
	for name, test := range map[string]struct {
		rule object
		at   string
	}{
		"no tool":                {object{"happened": "/found"}, "/read"},
		"a tool there is not":    {object{"read": "mail:search", "happened": "/found"}, "/read"},
		"a tool that writes":     {object{"read": "mail:write", "happened": "/found"}, "/read"},
		"no pointer":             {object{"read": "mail:read", "happened": "found"}, "/happened"},
		"arguments of no object": {object{"read": "mail:read", "happened": "", "args": []string{"$key"}}, "/args"},
		"an unknown place":       {object{"read": "mail:read", "happened": "", "args": object{"a": []string{"$key", "$keys"}}}, "/args/a/1"},
	} {
		p := put("write", test.rule, 400).problem(t)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != test.at {
			t.Errorf("%s is an error at %+v, want %s", name, p.Errors, test.at)
		}
	}
	rule := object{"read": "mail:read", "args": object{"q": "$inputs/to"}, "happened": "/found", "resend": true}
	put("nothing", rule, 404)
	put("write", rule, 200)
	list := func() string {
		t.Helper()
		return string(f.operator.send("GET", "/api/v1/reconcile-rules", nil).wants(t, 200).body)
	}
	if got := list(); !strings.Contains(got, `"tool":"mail:write","read":"mail:read","args":{"q":"$inputs/to"},"happened":"/found","resend":true`) {
		t.Errorf("rules are %s", got)
	}
	f.operator.send("DELETE", path("write"), nil).wants(t, 204)
	f.operator.send("DELETE", path("write"), nil).wants(t, 404)
	if got := strings.TrimSpace(list()); got != `{"items":[],"next_cursor":null}` {
		t.Errorf("rules are %s, want none", got)
	}
	f.admin.send("PUT", "/api/v1/policy/modes/mail:read", object{"mode": "require_approval"}).wants(t, 200)
	put("write", rule, 400)
}
