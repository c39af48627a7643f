package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

func TestSubmitTwiceIsOneAction(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("twice")
	p := proposal("read", object{"q": 1})

	first := f.agent.send("POST", "/api/v1/actions", p).wants(t, 201)
	again := f.agent.send("POST", "/api/v1/actions", p).wants(t, 200)

	one, two := first.action(t), again.action(t)
	if one.Envelope.ActionID != two.Envelope.ActionID {
		t.Errorf("the second submission made %s, the first %s", two.Envelope.ActionID, one.Envelope.ActionID)
	}
	if got, want := first.header.Get("Location"), path(one.Envelope.ActionID); got != want {
		t.Errorf("Location = %q, want %q", got, want)
	}
	if one.Phase != "approved" || one.Envelope.SessionID != "s-one" {
		t.Errorf("phase %q in session %q, want approved in s-one", one.Phase, one.Envelope.SessionID)
	}
	p["args"] = object{"q": 2}
	f.agent.send("POST", "/api/v1/actions", p).wants(t, 409)
}

func TestIdempotencyKeyIsTheExternalID(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("keys")
	p := object{"type": "mcp.exec", "tool": object{"name": "read"}, "args": object{}}
	const at = "/api/v1/actions"

	nameless := f.agent.send("POST", at, p).wants(t, 400).problem(t)
	if len(nameless.Errors) != 1 || !strings.Contains(nameless.Errors[0].Message, "Idempotency-Key") {
		t.Errorf("the problem does not say how to mend it: %+v", nameless)
	}
	first := f.agent.send("POST", at, p, "Idempotency-Key", "key-1").wants(t, 201).action(t)
	if first.Envelope.ExternalID != "key-1" {
		t.Errorf("external_id = %q, want key-1", first.Envelope.ExternalID)
	}
	p["external_id"] = "key-1"
	f.agent.send("POST", at, p, "Idempotency-Key", "key-1").wants(t, 200)
	f.agent.send("POST", at, p, "Idempotency-Key", "key-2").wants(t, 400)
	f.agent.send("POST", at, p, "Idempotency-Key", strings.Repeat("k", 201)).wants(t, 400)
}

func TestPolicyDenialShowsTheAction(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("denial")
	p := proposal("danger", object{"text": "harmless"})

	for range 2 { // a second time it is known, and denied as before
		got := f.agent.send("POST", "/api/v1/actions", p).wants(t, 403).problem(t)
		if got.Action == nil || got.Action.Phase != "denied" || got.Action.Policy.Mode != "deny" {
			t.Errorf("problem = %+v, want one with the denied action", got)
		}
		if want := "policy denies this action: the default for the tool's risk: risk danger"; got.Detail != want {
			t.Errorf("detail = %q, want %q", got.Detail, want)
		}
	}
}

func TestAnotherSessionsNameIsAConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("names")
	p := proposal("read", object{})
	f.agent.send("POST", "/api/v1/actions", p).wants(t, 201)

	f.other.send("POST", "/api/v1/actions", p).wants(t, 409)
	var batch batchAnswer
	f.other.send("POST", "/api/v1/actions/batch", object{"items": []any{p}}).wants(t, 200).into(t, &batch)

	if it := batch.Items[0]; it.Result != "refused" || it.ActionID != "" || it.Problem.Status != 409 {
		t.Errorf("item = %+v, want a refused one with a conflict", it)
	}
}

type batchAnswer struct {
	Items []struct {
		Index    int
		Result   string
		ActionID string `json:"action_id"`
		Phase    string
		Problem  *shownProblem
	}
}

func TestBatchAnswersEachInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("batch")
	known := proposal("read", object{})
	f.agent.send("POST", "/api/v1/actions", known).wants(t, 201)
	nameless := proposal("read", object{})
	delete(nameless, "external_id")
	broken := proposal("read", object{})
	broken["risk"] = marker
	wrongArgs := proposal("write", object{"n": marker})

	var got batchAnswer
	f.agent.send("POST", "/api/v1/actions/batch", object{"items": []any{
		proposal("read", object{}), proposal("write", object{}), known, proposal("danger", object{}), nameless, broken, wrongArgs, proposal("gone", object{}),
	}}).wants(t, 200).into(t, &got)

	var brief []string
	for i, it := range got.Items {
		line := it.Result + " " + it.Phase
		if it.Problem != nil {
			line = fmt.Sprintf("%s%d", line, it.Problem.Status)
			for _, e := range it.Problem.Errors {
				line += " " + e.Pointer + " " + string(e.Rule)
			}
			if it.Problem.Instance == "" {
				t.Errorf("item %d: its problem has no instance", i)
			}
		}
		if it.Index != i {
			t.Errorf("item %d has the index %d", i, it.Index)
		}
		if it.Result == "denied" && !strings.Contains(it.Problem.Detail, "the default for the tool's risk") {
			t.Errorf("item %d: detail = %q, want what decided", i, it.Problem.Detail)
		}
		if refused := it.Result == "refused"; refused != (it.ActionID == "") {
			t.Errorf("item %d: result %s with action_id %q", i, it.Result, it.ActionID)
		}
		brief = append(brief, line)
	}
	want := []string{
		"accepted approved", "accepted pending", "known approved", "denied denied403", "refused 400 /items/4/external_id required",
		"refused 400 /items/5/risk enum", "refused 400 /items/6/args/n type", "refused 400 /items/7/tool/name unknown_tool",
	}
	if diff := cmp.Diff(want, brief); diff != "" {
		t.Errorf("batch (-want +got):\n%s", diff)
	}
}

func TestBatchLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("limits")
	many := make([]any, envelope.MaxItems+1)
	for i := range many {
		many[i] = proposal("read", object{})
	}

	f.agent.send("POST", "/api/v1/actions/batch", object{"items": many}).wants(t, 400)
	f.agent.send("POST", "/api/v1/actions/batch", object{"items": many[:envelope.MaxItems]}).wants(t, 200)
	f.agent.send("POST", "/api/v1/actions/batch", object{"items": []any{}}).wants(t, 200)
	f.agent.send("POST", "/api/v1/actions/batch", `{"items":`).wants(t, 400)
}

func TestInvalidRequestsHaveThePointerWithoutTheValue(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("invalid")
	id := f.agent.propose("write")
	with := func(name string, value any) object {
		p := proposal("write", object{})
		p[name] = value
		return p
	}
	long := strings.Repeat("x", envelope.MaxBytes)

	for name, c := range map[string]struct {
		visit
		pointer string
	}{
		"unknown field":        {visit{"POST", "/api/v1/actions", with("colour", marker), 400}, "/colour"},
		"wrong enum":           {visit{"POST", "/api/v1/actions", with("risk", marker), 400}, "/risk"},
		"unknown tool":         {visit{"POST", "/api/v1/actions", with("tool", object{"name": marker}), 400}, "/tool/name"},
		"argument's type":      {visit{"POST", "/api/v1/actions", with("args", object{"n": marker}), 400}, "/args/n"},
		"unknown argument":     {visit{"POST", "/api/v1/actions", with("args", object{"zz": marker}), 400}, "/args/zz"},
		"no JSON":              {visit{"POST", "/api/v1/actions", "{" + marker, 400}, ""},
		"too large":            {visit{"POST", "/api/v1/actions", with("args", object{"to": marker + long}), 413}, ""},
		"note's type":          {visit{"POST", path(id, "/approve"), object{"note": 5}, 400}, "/note"},
		"note too long":        {visit{"POST", path(id, "/approve"), object{"note": marker + long[:500]}, 400}, "/note"},
		"note with NUL":        {visit{"POST", path(id, "/deny"), object{"note": marker + "\x00"}, 400}, "/note"},
		"approval's field":     {visit{"POST", path(id, "/deny"), object{"not": marker}, 400}, "/not"},
		"unknown query":        {visit{"GET", "/api/v1/actions?colour=" + marker, nil, 400}, "/query/colour"},
		"query twice":          {visit{"GET", "/api/v1/actions?tool=a&tool=" + marker, nil, 400}, "/query/tool"},
		"query with NUL":       {visit{"GET", "/api/v1/actions?tool=%00" + marker, nil, 400}, "/query/tool"},
		"query of no encoding": {visit{"GET", "/api/v1/actions?tool=%FF" + marker, nil, 400}, "/query/tool"},
		"query of no form":     {visit{"GET", "/api/v1/actions?tool=%zz" + marker, nil, 400}, "/query"},
		"status":               {visit{"GET", "/api/v1/actions?status=" + marker, nil, 400}, "/query/status"},
		"limit 0":              {visit{"GET", "/api/v1/actions?limit=0", nil, 400}, "/query/limit"},
		"limit 201":            {visit{"GET", "/api/v1/actions?limit=201", nil, 400}, "/query/limit"},
		"limit of no number":   {visit{"GET", "/api/v1/actions?limit=" + marker, nil, 400}, "/query/limit"},
		"cursor":               {visit{"GET", "/api/v1/actions?cursor=" + marker, nil, 400}, "/query/cursor"},
		"id":                   {visit{"GET", path(marker), nil, 400}, "/path/id"},
		"nil id":               {visit{"GET", path(uuid.Nil.String()), nil, 400}, "/path/id"},
		"wait too long":        {visit{"GET", path(id, "/wait?wait=6m"), nil, 400}, "/query/wait"},
		"wait of no form":      {visit{"GET", path(id, "/wait?wait="+marker), nil, 400}, "/query/wait"},
		"query of no number":   {visit{"GET", "/api/v1/actions?limit=no", nil, 400}, "/query/limit"},
		"rule key":             {visit{"PUT", "/api/v1/policy/modes/" + marker, object{"mode": "deny"}, 400}, ""},
		"ids twice":            {visit{"POST", "/api/v1/dead-letters/replay", object{"action_ids": []string{id, id}}, 400}, "/action_ids"},
		"no ids":               {visit{"POST", "/api/v1/dead-letters/replay", object{"action_ids": []string{}}, 400}, "/action_ids"},
		"no reason":            {visit{"POST", "/api/v1/dead-letters/discard", object{"action_ids": []string{id}}, 400}, "/reason"},
		"source id":            {visit{"PUT", "/api/v1/sources/UP" + marker, object{"kind": "mcp", "config": object{"transport": "http", "url": "http://a"}}, 400}, "/path/id"},
		"source without url":   {visit{"PUT", "/api/v1/sources/s", object{"kind": "mcp", "config": object{"transport": "http"}}, 400}, "/config/url"},
		"password in url":      {visit{"PUT", "/api/v1/sources/s", object{"kind": "mcp", "config": object{"transport": "http", "url": "http://u:" + marker + "@a/"}}, 400}, "/config/url"},
		"header with a break":  {visit{"PUT", "/api/v1/sources/s", object{"kind": "mcp", "config": object{"transport": "http", "url": "http://a"}, "credentials": object{"header": object{"A": marker + "\r\nB: c"}}}, 400}, "/credentials/header/A"},
		"token's role":         {visit{"POST", "/api/v1/tokens", object{"name": "n", "role": marker}, 400}, "/role"},
		"max_attempts":         {visit{"PUT", "/api/v1/tools/mail:read/overrides", object{"max_attempts": 101}, 400}, "/max_attempts"},
		"last event id":        {visit{"GET", "/api/v1/events?last_event_id=" + marker, nil, 400}, "/query/last_event_id"},
	} {
		p := f.admin.send(c.method, c.path, c.body).wants(t, c.want).problem(t)
		if c.pointer != "" && (len(p.Errors) == 0 || p.Errors[0].Pointer != c.pointer) {
			t.Errorf("%s: errors = %+v, want one at %s", name, p.Errors, c.pointer)
		}
	}
	if strings.Contains(f.logs.String(), marker) {
		t.Error("the log holds a payload")
	}
}

func TestRefusedHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("headers")
	p := proposal("read", object{})

	f.agent.send("POST", "/api/v1/actions", p, "Content-Type", "text/plain").wants(t, 415)
	f.agent.send("POST", "/api/v1/actions", p, "Content-Type", "application/json; charset=latin1").wants(t, 415)
	f.agent.send("POST", "/api/v1/actions", p, "Content-Type", "application/json; charset=utf-8").wants(t, 201)
	f.agent.send("POST", "/api/v1/actions", "").wants(t, 400)
	f.agent.send("GET", "/api/v1/events", nil, "Last-Event-ID", "12").wants(t, 400)
	for _, authorization := range []string{"", "Basic YTpi", "Bearer", "Bearer cs_agent_x", "Bearer " + f.agent.token + "x"} {
		a := f.agent.send("GET", "/api/v1/actions", nil, "Authorization", authorization).wants(t, 401)
		if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("401 to %q without WWW-Authenticate", authorization)
		}
	}
	f.agent.send("GET", "/api/v1/actions", nil, "Authorization", "bearer "+f.agent.token).wants(t, 200)
}

func TestUnmatchedIsAProblem(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("unmatched")

	for _, c := range []struct {
		method, path string
		want         int
		allow        string
	}{
		{"GET", "/", 404, ""},
		{"GET", "/api/v1/nothing", 404, ""},
		{"GET", "/api/v1//actions", 404, ""},
		{"GET", "/api/v1/actions/", 404, ""},
		{"GET", "/api/v1/../v1/actions", 404, ""},
		{"PATCH", "/api/v1/actions", 405, "GET, POST"},
		{"DELETE", "/api/v1/actions/batch", 405, "GET, POST"},
		{"PUT", "/healthz", 405, "GET"},
		{"OPTIONS", "/api/v1/sources/x", 405, "PUT, DELETE"},
	} {
		a := f.agent.send(c.method, c.path, nil).wants(t, c.want)
		if got := a.header.Get("Allow"); got != c.allow {
			t.Errorf("Allow of %s %s = %q, want %q", c.method, c.path, got, c.allow)
		}
	}
}

func TestRequestIDIsTakenOverIfSane(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("ids")

	for given, want := range map[string]bool{"req-1.a_B": true, "with blank": false, strings.Repeat("x", 65): false, "": false} {
		a := f.agent.send("GET", "/api/v1/nothing", nil, "X-Request-Id", given)
		got := a.header.Get("X-Request-Id")
		if (got == given) != want || got == "" {
			t.Errorf("X-Request-Id %q was answered with %q", given, got)
		}
		if p := a.problem(t); p.Instance != got {
			t.Errorf("instance = %q, want %q", p.Instance, got)
		}
	}
}

func TestPanicIsABare500(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, dbtest.DB(t), rest.Config{Wake: func() { panic(marker) }}).tenant("panic")

	p := f.admin.send("PUT", "/api/v1/policy/modes/mail:read", object{"mode": "deny"}).wants(t, 500).problem(t)

	if p.Detail != "" || !strings.Contains(f.logs.String(), marker) {
		t.Errorf("detail = %q; the cause belongs into the log", p.Detail)
	}
}

func TestOutageIsABare500(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("outage")
	if _, err := f.db.Exec(t.Context(), "ALTER TABLE actions RENAME TO gone"); err != nil {
		t.Fatal(err)
	}

	p := f.agent.send("POST", "/api/v1/actions", proposal("read", object{"text": marker})).wants(t, 500).problem(t)

	if p.Detail != "" || !strings.Contains(f.logs.String(), p.Instance) {
		t.Errorf("detail = %q; the cause belongs into the log, with the request's id", p.Detail)
	}
}

func TestRevokedTokenIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("revoked")
	var made struct {
		Token   string
		TokenID string `json:"token_id"`
	}
	f.admin.send("POST", "/api/v1/tokens", object{"name": "n", "role": "operator"}).wants(t, 201).into(t, &made)
	fresh := &client{fixture: f.fixture, token: made.Token}
	f.admin.send("DELETE", "/api/v1/tokens/"+made.TokenID, nil).wants(t, 204)

	fresh.send("GET", "/api/v1/actions", nil).wants(t, 401)
	f.admin.send("DELETE", "/api/v1/tokens/"+made.TokenID, nil).wants(t, 404)
}

func TestEmployeeOfTheTokenBinds(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("employee")
	bound := f.holder(identity.Grant{Name: "b", Role: identity.RoleAgent, Employee: envelope.EmployeeID(uuid.New())})
	p := proposal("read", object{})
	p["employee_id"] = uuid.NewString()

	bound.send("POST", "/api/v1/actions", p).wants(t, 400)
}
