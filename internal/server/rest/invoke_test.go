package rest_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// called is the part of the response to a call that tests compare.
type called struct {
	ID         string `json:"execution_id"`
	Status     string
	Phase      string
	Tool       string
	Known      bool
	Outputs    json.RawMessage
	Error      *struct{ Code, Message string }
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	DurationMS *int64     `json:"duration_ms"`
	Policy     struct{ Mode, Source string }
	Decision   *struct{ By, Note string }
	DryRun     *struct {
		Result    string
		GoesOutAt *time.Time `json:"goes_out_at"`
		Gates     []struct{ Gate, Result, Code, Message string }
		Bucket    struct {
			Name    string
			Permits *int64
		}
		Call struct {
			Tool, Effect string
			Args         json.RawMessage
			Repeatable   bool
		}
		KnownID *string `json:"known_action_id"`
		Plan    string
	} `json:"dry_run"`
}

func (a answer) call(t testing.TB) called {
	t.Helper()
	var c called
	a.into(t, &c)
	return c
}

type calledProblem struct {
	shownProblem
	Execution *called
}

func (a answer) callProblem(t testing.TB) calledProblem {
	t.Helper()
	var p calledProblem
	a.into(t, &p)
	return p
}

// invoke calls a tool.
func (c *client) invoke(tool string, body object, header ...string) answer {
	c.t.Helper()
	return c.send("POST", "/api/v1/tools/"+url.PathEscape(tool), body, header...)
}

// named is a body with a name of its own.
func named(more object) object {
	body := object{"external_id": uuid.NewString(), "wait": "0s"}
	maps.Copy(body, more)
	return body
}

func TestCallReturnsTheToolsAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	body := named(object{"inputs": object{"n": 1}})

	waits := f.agent.invoke("mail:read", body).wants(t, http.StatusAccepted)
	f.settle(envelope.StatusSent, "")
	done := f.agent.invoke("read", body).wants(t, http.StatusOK)

	first, got := waits.call(t), done.call(t)
	if first.Status != "pending" || first.Phase != "approved" || first.Known || waits.header.Get("Countersign-Pending") != "true" ||
		waits.header.Get("Location") != "/api/v1/actions/"+first.ID {
		t.Errorf("while it waits: %s %v", waits.body, waits.header)
	}
	if got.ID != first.ID || got.Status != "success" || got.Phase != "completed" || !got.Known || string(got.Outputs) != `{"ok":true}` || got.DurationMS == nil ||
		got.Tool != "mail:read" {
		t.Errorf("when it is done: %s", done.body)
	}
}

func TestACallWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	id := f.agent.invoke("mail:read", named(object{"external_id": "one"})).wants(t, http.StatusAccepted).call(t).ID
	answers := make(chan answer, 1)
	go func() { // the test receives its answer below
		a, err := f.agent.trySend(t.Context(), "POST", "/api/v1/tools/mail:read", object{"external_id": "one"})
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	if n := f.settle(envelope.StatusSent, ""); n != 1 {
		t.Fatalf("settled %d, want 1", n)
	}

	got := (<-answers).wants(t, http.StatusOK).call(t)

	if got.ID != id || got.Status != "success" {
		t.Errorf("answer = %+v", got)
	}
}

func TestCallsDoNotWaitForApprovalByDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	began := time.Now()

	got := f.agent.invoke("mail:write", object{"external_id": "one", "inputs": object{"to": "a"}}).wants(t, http.StatusAccepted).call(t)

	if got.Status != "pending" || got.Phase != "pending" || time.Since(began) > 20*time.Second {
		t.Errorf("answer after %s = %+v", time.Since(began), got)
	}
}

// TestTheTableOfErrors covers every row of the table of a call's results.
func TestTheTableOfErrors(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.id, catalog.Source{ID: "copy", Kind: catalog.KindMCP, Config: json.RawMessage(`{"transport":"http","url":"http://127.0.0.1:9/mcp"}`), Enabled: true}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, f.id, "copy", []source.Tool{{Name: "write", InputSchema: json.RawMessage(`{"type":"object"}`)}})
	})
	body := func(more object) object { return named(more) }
	// ended proposes a call, ends it and repeats the request.
	ended := func(tool string, end func(id string)) func() answer {
		return func() answer {
			b := body(nil)
			first := f.agent.invoke(tool, b).wants(t, http.StatusAccepted)
			end(first.call(t).ID)
			return f.agent.invoke(tool, b)
		}
	}
	deny := func(id string) {
		f.operator.send("POST", path(id, "/deny"), object{"note": "not today"}).wants(t, http.StatusOK)
	}
	expire := func(id string) {
		f.exec("UPDATE actions SET approval_state = 'expired', decided_at = now(), decided_by = 'system' WHERE action_id = $1", id)
	}
	skip := func(code string) func(id string) {
		return func(id string) {
			f.exec("DELETE FROM outbox WHERE action_id = $1", id)
			f.exec("INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, finished_at) SELECT tenant_id, action_id, 0, 'skipped', '"+code+"', 'why', now() FROM actions WHERE action_id = $1", id)
		}
	}
	end := func(status envelope.Status, why outbox.Reason) func(string) {
		return func(string) { f.settle(status, why) }
	}
	for name, row := range map[string]struct {
		send   func() answer
		status int
		kind   string
		// recorded is the stored status in the problem.
		recorded string
		pointer  string
	}{
		"no token": {func() answer { return (&client{fixture: f.fixture}).invoke("mail:read", body(nil)) }, 401, "unauthorized", "", ""},
		"a viewer": {func() answer {
			return f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer}).invoke("mail:read", body(nil))
		}, 403, "denied", "", ""},

		"no such tool":            {func() answer { return f.agent.invoke("mail:nothing", body(nil)) }, 404, "not_found", "", ""},
		"no such source":          {func() answer { return f.agent.invoke("post:read", body(nil)) }, 404, "not_found", "", ""},
		"no tool of a bare name":  {func() answer { return f.agent.invoke("nothing", body(nil)) }, 404, "not_found", "", ""},
		"a name that several use": {func() answer { return f.agent.invoke("write", body(nil)) }, 400, "invalid", "", "/path/tool"},

		"inputs that do not fit":    {func() answer { return f.agent.invoke("mail:write", body(object{"inputs": object{"n": "x"}})) }, 400, "invalid", "", "/inputs/n"},
		"inputs of another field":   {func() answer { return f.agent.invoke("mail:write", body(object{"inputs": object{"m": 1}})) }, 400, "invalid", "", "/inputs/m"},
		"inputs that are no object": {func() answer { return f.agent.invoke("mail:write", body(object{"inputs": []int{}})) }, 400, "invalid", "", "/inputs"},
		"an input twice": {func() answer {
			return f.agent.send("POST", "/api/v1/tools/mail:read", `{"external_id":"twice","inputs":{"a":1,"a":2}}`)
		}, 400, "invalid", "", "/inputs/a"},
		"a body that is no JSON": {func() answer { return f.agent.send("POST", "/api/v1/tools/mail:read", `{`) }, 400, "invalid", "", ""},
		"an unknown field":       {func() answer { return f.agent.invoke("mail:read", body(object{"args": object{}})) }, 400, "invalid", "", "/args"},
		"no name":                {func() answer { return f.agent.invoke("mail:write", object{}) }, 400, "invalid", "", "/external_id"},
		"two names":              {func() answer { return f.agent.invoke("mail:write", body(nil), "Idempotency-Key", "other") }, 400, "invalid", "", "/external_id"},
		"too long a wait":        {func() answer { return f.agent.invoke("mail:read", body(object{"wait": "301s"})) }, 400, "invalid", "", "/wait"},
		"a plan that is none":    {func() answer { return f.agent.invoke("mail:read", body(object{"plan": "plan_AAAA"})) }, 400, "invalid", "", "/plan"},
		"an unknown bucket": {func() answer {
			return f.agent.invoke("mail:read", body(object{"constraints": object{"rate_bucket": "nothing"}}))
		}, 400, "invalid", "", "/constraints/rate_bucket"},
		"another's session": {func() answer { return f.agent.invoke("mail:read", body(object{"session_id": "s-two"})) }, 400, "invalid", "", "/session_id"},
		"a body that is no JSON's": {func() answer {
			return f.agent.send("POST", "/api/v1/tools/mail:read", csv("a,b"))
		}, 415, "unsupported_media_type", "", ""},
		"too large a body": {func() answer {
			return f.agent.send("POST", "/api/v1/tools/mail:read", `{"external_id":"large","inputs":{"a":"`+strings.Repeat("x", envelope.MaxBytes)+`"}}`)
		}, 413, "too_large", "", ""},
		"another method": {func() answer { return f.agent.send("DELETE", "/api/v1/tools/mail:read", nil) }, 405, "method_not_allowed", "", ""},

		"policy denies":        {func() answer { return f.agent.invoke("mail:danger", body(nil)) }, 403, "denied", "denied", ""},
		"a person denies":      {ended("mail:write", deny), 403, "denied", "denied", ""},
		"nobody decides":       {ended("mail:write", expire), 410, "gone", "expired", ""},
		"its deadline is over": {ended("mail:read", skip(preflight.CodeDeadline)), 410, "gone", "skipped", ""},
		"policy denies later":  {ended("mail:read", skip("policy_denied")), 403, "denied", "skipped", ""},
		"a listed recipient":   {ended("mail:read", skip(preflight.CodeDoNotContact)), 403, "denied", "skipped", ""},
		"it was taken back": {ended("mail:read", func(id string) {
			f.agent.send("POST", path(id, "/undo"), nil).wants(t, http.StatusOK)
		}), 409, "conflict", "skipped", ""},
		"its name is taken": {func() answer {
			f.agent.invoke("mail:read", object{"external_id": "taken", "wait": "0s"}).wants(t, http.StatusAccepted)
			return f.agent.invoke("mail:read", object{"external_id": "taken", "inputs": object{"other": 1}})
		}, 409, "conflict", "", ""},
		"its name is taken by another session": {func() answer {
			f.other.invoke("mail:read", object{"external_id": "theirs", "wait": "0s"}).wants(t, http.StatusAccepted)
			return f.agent.invoke("mail:read", object{"external_id": "theirs", "wait": "0s"})
		}, 409, "conflict", "", ""},
		"the tool fails":               {ended("mail:read", end(envelope.StatusFailed, outbox.Refused)), 502, "execution_failed", "error", ""},
		"nobody knows what it came to": {ended("mail:read", end(envelope.StatusUnknown, outbox.Unknown)), 502, "execution_failed", "unknown", ""},
		"the session has had enough":   {f.overLimit, 429, "limited", "", ""},
	} {
		a := row.send()
		p := a.callProblem(t)
		recorded := ""
		if p.Execution != nil {
			recorded = p.Execution.Status
		}
		if a.status != row.status || p.Type != "urn:countersign:problem:"+row.kind || recorded != row.recorded {
			t.Errorf("%s: %s, want %d %s with an execution %q", name, a.body, row.status, row.kind, row.recorded)
		}
		if attempted := row.recorded == "error" || row.recorded == "unknown"; attempted {
			if e := p.Execution; e.StartedAt == nil || e.FinishedAt == nil || e.DurationMS == nil || e.FinishedAt.Before(*e.StartedAt) {
				t.Errorf("%s: %s, want when the last call began and ended, and how long it took", name, a.body)
			}
		}
		if row.pointer != "" && (len(p.Errors) == 0 || p.Errors[0].Pointer != row.pointer) {
			t.Errorf("%s: errors = %+v, want %s", name, p.Errors, row.pointer)
		}
		if a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "" {
			t.Errorf("%s: Retry-After is missing", name)
		}
	}
}

// overLimit makes a session propose more than it may.
func (f *tenantFixture) overLimit() answer {
	f.t.Helper()
	f.exec("UPDATE tenants SET session_minute_max = 1 WHERE tenant_id = $1", f.id.String())
	defer f.exec("UPDATE tenants SET session_minute_max = 60 WHERE tenant_id = $1", f.id.String())
	third := f.holder(identity.Grant{Name: "third", Role: identity.RoleAgent, Session: "s-three"})
	third.invoke("mail:read", named(nil)).wants(f.t, http.StatusAccepted)
	return third.invoke("mail:read", named(nil))
}

func TestADeniedCallIsOnRecordWithItsReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	body := named(nil)
	id := f.agent.invoke("mail:write", body).wants(t, http.StatusAccepted).call(t).ID
	f.operator.send("POST", path(id, "/deny"), object{"note": "not before Monday"}).wants(t, http.StatusOK)

	got := f.agent.invoke("mail:write", body).wants(t, http.StatusForbidden).callProblem(t)

	if got.Execution.ID != id || got.Execution.Decision == nil || got.Execution.Decision.Note != "not before Monday" || !strings.Contains(got.Detail, "not before Monday") {
		t.Errorf("problem = %+v, want the person's note", got)
	}
}

func TestDryRunPredictsAndChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	past := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutBucket(ctx, tx, f.id, limits.Bucket{Name: "slow", Rate: &limits.Rate{Limit: 3, Per: envelope.Duration(time.Hour), Burst: 2}}, "ada")
	})
	for name, test := range map[string]struct {
		tool           string
		body           object
		result, spoken string
	}{
		"a read":        {"mail:read", object{"inputs": object{"q": 1}}, "run", ""},
		"a write":       {"mail:write", object{"inputs": object{"to": "a"}}, "ask", ""},
		"a danger":      {"mail:danger", object{}, "deny", ""},
		"a later time":  {"mail:read", object{"constraints": object{"not_before": later}}, "wait", "not_before"},
		"a deadline":    {"mail:read", object{"constraints": object{"must_run_before": past}}, "skip", "deadline"},
		"a slow bucket": {"mail:read", object{"constraints": object{"rate_bucket": "slow"}}, "run", ""},
	} {
		test.body["dry_run"] = true

		got := f.agent.invoke(test.tool, test.body).wants(t, http.StatusOK).call(t)

		spoken := ""
		for _, g := range got.DryRun.Gates {
			if g.Result != "pass" {
				spoken = g.Gate
			}
		}
		if got.Status != "dry_run" || got.DryRun.Result != test.result || spoken != test.spoken || !strings.HasPrefix(got.DryRun.Plan, "plan_") || got.DryRun.KnownID != nil {
			t.Errorf("%s: %+v %+v, want %s, held back by %q", name, got, got.DryRun, test.result, test.spoken)
		}
		if at := got.DryRun.GoesOutAt; name == "a later time" && (at == nil || !at.Equal(later)) {
			t.Errorf("%s: it goes out at %v, want %v", name, at, later)
		}
		if got.DryRun.Call.Tool != test.tool || got.DryRun.Call.Repeatable != (test.tool == "mail:read") {
			t.Errorf("%s: it would send %+v", name, got.DryRun.Call)
		}
		if b := got.DryRun.Bucket; name == "a slow bucket" && (b.Name != "slow" || b.Permits == nil || *b.Permits != 2) {
			t.Errorf("%s: bucket = %+v, want two permits", name, b)
		}
	}
	if n := f.count("SELECT count(1) FROM actions WHERE tenant_id = $1", f.id.String()) + f.count("SELECT count(1) FROM events WHERE kind = 'proposed' AND tenant_id = $1", f.id.String()); n != 0 {
		t.Errorf("dry runs left %d actions and events", n)
	}
}

func TestADryRunOfASubmission(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	p := proposal("write", object{"to": "a"})
	nameless := proposal("write", object{"to": "a"})
	delete(nameless, "external_id")

	dry := f.agent.send("POST", "/api/v1/actions?dry_run=true", nameless).wants(t, http.StatusOK).call(t)
	made := f.agent.send("POST", "/api/v1/actions?plan="+dry.DryRun.Plan, p).wants(t, http.StatusCreated).action(t)
	again := f.agent.send("POST", "/api/v1/actions?dry_run=true", p).wants(t, http.StatusOK).call(t)
	f.agent.send("POST", "/api/v1/actions?plan="+dry.DryRun.Plan, proposal("write", object{"to": "b"})).wants(t, http.StatusConflict)

	if dry.DryRun.Result != "ask" || string(dry.DryRun.Call.Args) != `{"to":"a"}` {
		t.Errorf("dry run = %+v", dry.DryRun)
	}
	if again.DryRun.KnownID == nil || *again.DryRun.KnownID != made.Envelope.ActionID || !again.Known {
		t.Errorf("dry run of what was proposed = %+v, want %s", again.DryRun, made.Envelope.ActionID)
	}
}

func TestAPlanHoldsUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	inputs := object{"inputs": object{"to": "a"}}
	plan := func() string {
		return f.agent.invoke("mail:write", object{"inputs": inputs["inputs"], "dry_run": true}).wants(t, http.StatusOK).call(t).DryRun.Plan
	}
	call := func(plan string, more object) answer {
		b := named(inputs)
		b["plan"] = plan
		maps.Copy(b, more)
		return f.agent.invoke("mail:write", b)
	}
	conflict := func(a answer, word string) {
		t.Helper()
		if d := a.wants(t, http.StatusConflict).problem(t).Detail; !strings.Contains(d, word) {
			t.Errorf("detail = %q, want it to name %s", d, word)
		}
	}

	first := plan()
	call(first, object{"external_id": "planned"}).wants(t, http.StatusAccepted)
	conflict(call(first, object{"inputs": object{"to": "b"}}), "arguments")
	conflict(call(first, object{"approval": "required"}), "policy")
	f.admin.send("PUT", "/api/v1/policy/modes/mail:write", object{"mode": "allow"}).wants(t, http.StatusOK)
	conflict(call(first, nil), "policy")
	second := plan()
	changed := mailTools[1]
	changed.Description = "Sends it at once."
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListing(ctx, tx, f.id, "mail", []source.Tool{mailTools[0], changed, mailTools[2]})
	})
	conflict(call(second, nil), "definition")

	// A call accepted under the plan is known, in spite of later changes.
	call(first, object{"external_id": "planned"}).wants(t, http.StatusAccepted)
}

func TestSubmissionsNoteWhereTheyComeFrom(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")

	f.agent.invoke("mail:read", named(nil), "User-Agent", strings.Repeat("ä", 150), "X-Request-Id", "r-1").wants(t, http.StatusAccepted)
	f.agent.send("POST", "/api/v1/actions/batch", object{"items": []object{proposal("read", object{})}}, "Sec-Fetch-Site", "same-origin").wants(t, http.StatusOK)

	if n := f.count(`SELECT count(1) FROM actions WHERE tenant_id = $1 AND origin ->> 'via' = 'api' AND origin ->> 'ip' = '127.0.0.1'
		AND origin ->> 'request_id' = 'r-1' AND octet_length(origin ->> 'user_agent') = 200`, f.id.String()); n != 1 {
		t.Errorf("%d actions noted the call, want 1", n)
	}
	if n := f.count("SELECT count(1) FROM actions WHERE tenant_id = $1 AND origin ->> 'via' = 'ui'", f.id.String()); n != 1 {
		t.Errorf("%d actions noted the page, want 1", n)
	}
}

// count returns the result of a query, without row-level security.
func (f *tenantFixture) count(sql string, args ...any) (n int) {
	f.t.Helper()
	if err := f.db.QueryRow(f.t.Context(), sql, args...).Scan(&n); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func TestADenialNamesTheRuleAndItsReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	f.admin.send("PUT", "/api/v1/policy/rules/large", object{"tool": "mail:write", "expression": "args.n > 100", "mode": "deny", "reason": "More than 100"}).wants(t, http.StatusOK)
	const want = ": a rule about arguments (large) for mail:write: More than 100"

	called := f.agent.invoke("mail:write", object{"external_id": "large", "inputs": object{"n": 101}}).wants(t, http.StatusForbidden).callProblem(t)
	proposed := f.agent.send("POST", "/api/v1/actions", proposal("write", object{"n": 101})).wants(t, http.StatusForbidden).problem(t)

	for _, detail := range []string{called.Detail, proposed.Detail} {
		if !strings.HasPrefix(detail, "policy denies this ") || !strings.HasSuffix(detail, want) {
			t.Errorf("detail = %q, want it to end in %q", detail, want)
		}
	}
}
