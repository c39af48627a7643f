package api_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/api"
	"github.com/countersign-dev/countersign/internal/identity"
	"github.com/countersign-dev/countersign/internal/outbox"
	"github.com/countersign-dev/countersign/schemas"
)

func TestRoutesAndLawAreTheSame(t *testing.T) {
	t.Parallel()
	law, err := api.LoadLaw()
	if err != nil {
		t.Fatal(err)
	}
	inLaw, inTable := map[string]string{}, map[string]string{}
	for path, methods := range law.Paths {
		for method, op := range methods {
			inLaw[strings.ToUpper(method)+" "+path] = op.OperationID
			if _, ok := op.Responses["default"]; !ok {
				t.Errorf("%s describes no problem", op.OperationID)
			}
		}
	}

	for _, rt := range api.Routes() {
		inTable[rt.Pattern] = rt.Operation
		method, path, _ := strings.Cut(rt.Pattern, " ")
		op := law.Paths[path][strings.ToLower(method)]
		if diff := cmp.Diff(op.Roles, rt.Roles); diff != "" {
			t.Errorf("x-roles of %s (-law +table):\n%s", rt.Operation, diff)
		}
		if public := op.Security != nil; public != (rt.Roles == nil) {
			t.Errorf("security of %s does not fit its roles", rt.Operation)
		}
	}

	if diff := cmp.Diff(inLaw, inTable); diff != "" {
		t.Errorf("operations (-law +table):\n%s", diff)
	}
}

func TestExamplesKeepTheLaw(t *testing.T) {
	t.Parallel()
	law, err := api.LoadLaw()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := law.Examples()
	if err != nil {
		t.Fatal(err)
	}
	if len(examples) < 10 {
		t.Fatalf("found %d examples", len(examples))
	}
	for _, e := range examples {
		if err := e.Schema.Validate(e.Value); err != nil {
			t.Errorf("example at %s: %v", e.At, err)
		}
	}
}

// visit is a request that a permitted caller can make.
type visit struct {
	method, path string
	body         any
	// want is the status for those who may.
	want int
}

// visits returns one fresh request for every operation. Each call makes what
// the requests need.
func (f *family) visits() map[string]visit {
	dead := f.dead()
	riddle := f.riddle()
	waiting, free, undoable := f.agent.propose("write"), f.agent.propose("write"), f.agent.propose("write")
	doomed := f.holder(identity.Grant{Name: "doomed", Role: identity.RoleAgent}).id.String()
	src := "s" + uuid.NewString()[:8]
	f.admin.send("PUT", "/api/v1/sources/"+src, object{"kind": "mcp", "config": object{"transport": "http", "url": "http://127.0.0.1:9"}}).wants(f.t, 204)
	f.admin.send("PUT", "/api/v1/policy/modes", object{"key": src + ":*", "mode": "deny"}).wants(f.t, 204)
	employee := uuid.NewString()
	f.limited(src+".old", employee)
	return map[string]visit{
		"submitAction":       {"POST", "/api/v1/actions", proposal("read", object{}), 201},
		"submitActions":      {"POST", "/api/v1/actions/batch", object{"items": []any{proposal("read", object{})}}, 200},
		"listActions":        {"GET", "/api/v1/actions?limit=5&status=pending&approval=auto&tool=read&source=mail&external_id=x", nil, 200},
		"getAction":          {"GET", path(waiting), nil, 200},
		"listAttempts":       {"GET", path(dead[0], "/attempts"), nil, 200},
		"waitForAction":      {"GET", path(waiting, "/wait?timeout=1ms"), nil, 200},
		"approveAction":      {"POST", path(waiting, "/approve"), object{"note": "fine"}, 200},
		"denyAction":         {"POST", path(free, "/deny"), nil, 200},
		"undoAction":         {"POST", path(undoable, "/undo"), nil, 200},
		"listDeadLetters":    {"GET", "/api/v1/dead-letters?reason=refused&tool=read&limit=3", nil, 200},
		"getDeadLetter":      {"GET", "/api/v1/dead-letters/" + dead[0], nil, 200},
		"replayDeadLetters":  {"POST", "/api/v1/dead-letters/replay", object{"action_ids": []string{dead[1]}}, 200},
		"discardDeadLetters": {"POST", "/api/v1/dead-letters/discard", object{"action_ids": []string{dead[2]}, "reason": "old"}, 200},
		"exportDeadLetters":  {"GET", "/api/v1/dead-letters/export?source=mail&code=http_400&since=2026-01-02T03:04:05Z&until=2100-01-01T00:00:00Z", nil, 200},
		"resolveDeadLetter":  {"POST", "/api/v1/dead-letters/" + riddle + "/resolve", object{"happened": true, "note": "seen"}, 200},
		"listVerifyRules":    {"GET", "/api/v1/tools/verify", nil, 200},
		"putVerifyRule":      {"PUT", "/api/v1/tools/verify", object{"source": "mail", "name": "write", "verify": object{"tool": "read", "happened": "/found"}}, 204},
		"streamEvents":       {"GET", "/api/v1/events", nil, 200},
		"listTools":          {"GET", "/api/v1/tools", nil, 200},
		"acceptTool":         {"POST", "/api/v1/tools/accept", object{"source": "mail", "name": "read", "digest": f.digest("read")}, 204},
		"configureTool":      {"PUT", "/api/v1/tools/overrides", object{"source": "mail", "name": "danger", "max_attempts": 3}, 204},
		"listSources":        {"GET", "/api/v1/sources", nil, 200},
		"putSource":          {"PUT", "/api/v1/sources/" + src, object{"kind": "mcp", "config": object{"transport": "stdio", "command": []string{"true"}}}, 204},
		"deleteSource":       {"DELETE", "/api/v1/sources/" + src, nil, 204},
		"listModes":          {"GET", "/api/v1/policy/modes", nil, 200},
		"putMode":            {"PUT", "/api/v1/policy/modes", object{"automation": "a", "key": "mail:danger", "mode": "deny"}, 204},
		"deleteMode":         {"DELETE", "/api/v1/policy/modes?key=" + src + ":*", nil, 204},
		"issueToken":         {"POST", "/api/v1/tokens", object{"name": "n", "role": "agent", "ttl_seconds": 60}, 201},
		"revokeToken":        {"DELETE", "/api/v1/tokens/" + doomed, nil, 204},
		"verifyAudit":        {"GET", "/api/v1/audit/verify", nil, 200},
		"exportAudit":        {"GET", "/api/v1/audit/events?from=2026-01-01T00:00:00Z", nil, 200},
		"listRetention":      {"GET", "/api/v1/retention", nil, 200},
		"putRetention":       {"PUT", "/api/v1/retention", object{"kind": "events", "days": 400, "action": "notice"}, 204},
		"putToolRule":        {"PUT", "/api/v1/tools/rules", object{"source": "mail", "name": "write", "recipients": []string{"/to"}, "retry": object{"base": "2s"}}, 204},
		"listBucketNames":    {"GET", "/api/v1/bucket-names", nil, 200},
		"listBuckets":        {"GET", "/api/v1/buckets", nil, 200},
		"getBucket":          {"GET", "/api/v1/buckets/default", nil, 200},
		"putBucket":          {"PUT", "/api/v1/buckets/" + src, object{"rate": object{"limit": 10, "per": "1m"}}, 204},
		"retireBucket":       {"DELETE", "/api/v1/buckets/" + src + ".old", nil, 204},
		"reopenBucket":       {"POST", "/api/v1/buckets/default/reopen", nil, 204},
		"listQuietHours":     {"GET", "/api/v1/quiet-hours", nil, 200},
		"putQuietHours":      {"PUT", "/api/v1/quiet-hours", night("tenant", ""), 204},
		"deleteQuietHours":   {"DELETE", "/api/v1/quiet-hours?scope=bucket&subject=" + src + ".old", nil, 204},
		"listDoNotContact":   {"GET", "/api/v1/do-not-contact?kind=email&prefix=A&expired=true&limit=2", nil, 200},
		"addDoNotContact":    {"POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "a@example.org"}}}, 200},
		"removeDoNotContact": {"POST", "/api/v1/do-not-contact/remove", object{"entries": []object{{"value": "b@example.org"}}}, 200},
		"importDoNotContact": {"POST", "/api/v1/do-not-contact/import?dry_run=true", csv("value\nc@example.org\n"), 200},
		"exportDoNotContact": {"GET", "/api/v1/do-not-contact/export", nil, 200},
		"listEmployees":      {"GET", "/api/v1/employees", nil, 200},
		"putEmployee":        {"PUT", "/api/v1/employees/default", object{"trust": "high"}, 204},
		"deleteEmployee":     {"DELETE", "/api/v1/employees/" + employee, nil, 204},
		"listPauses":         {"GET", "/api/v1/pauses?standing=true&limit=2", nil, 200},
		"pause":              {"POST", "/api/v1/pauses", object{"scope": "source", "subject": "mail", "reason": "a test"}, 200},
		"resume":             {"DELETE", "/api/v1/pauses?scope=bucket&subject=" + src + ".old&reason=done", nil, 204},
		"listBreakers":       {"GET", "/api/v1/breakers", nil, 200},
		"resetBreaker":       {"POST", "/api/v1/breakers/mail/reset", nil, 204},
		"getSettings":        {"GET", "/api/v1/settings", nil, 200},
		"putSettings":        {"PUT", "/api/v1/settings", object{"timezone": "Europe/Berlin"}, 204},
		"getLimits":          {"GET", "/api/v1/limits", nil, 200},
		"putLimits":          {"PUT", "/api/v1/limits?dry_run=true", object{"buckets": []object{{"name": "x"}}}, 200},
		"getOverview":        {"GET", "/api/v1/overview", nil, 200},
		"getOpenAPI":         {"GET", "/api/v1/openapi.yaml", nil, 200},
		"getHealth":          {"GET", "/healthz", nil, 200},
		"getReadiness":       {"GET", "/readyz", nil, 200},
		"getMetrics":         {"GET", "/metrics", nil, 200},
	}
}

// dead makes three dead letters of the agent.
func (f *family) dead() []string {
	ids := []string{f.agent.propose("read"), f.agent.propose("read"), f.agent.propose("read")}
	f.settle(envelope.StatusFailed, outbox.Refused)
	return ids
}

// riddle makes a dead letter of unknown outcome.
func (f *family) riddle() string {
	id := f.agent.propose("read")
	f.settle(envelope.StatusUnknown, outbox.Unknown)
	return id
}

// digest is that of a tool as it is listed.
func (f *family) digest(name string) string {
	var list struct {
		Items []struct{ Name, Digest string }
	}
	f.agent.send("GET", "/api/v1/tools", nil).wants(f.t, 200).into(f.t, &list)
	for _, it := range list.Items {
		if it.Name == name {
			return it.Digest
		}
	}
	f.t.Fatalf("no tool %s", name)
	return ""
}

func TestRolesMayWhatTheTableSays(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte("up 1\n"))
	})
	f := newScraped(t, metrics).tenant("roles")
	anyone := &client{house: f.house}
	who := map[identity.Role]*client{identity.RoleAgent: f.agent, identity.RoleOperator: f.operator, identity.RoleAdmin: f.admin}

	for role, caller := range who {
		visits := f.visits()
		for _, rt := range api.Routes() {
			v, ok := visits[rt.Operation]
			if !ok {
				t.Errorf("no test makes a request of %s", rt.Operation)
				continue
			}
			want := v.want
			if rt.Roles != nil && !slices.Contains(rt.Roles, role) {
				want = http.StatusForbidden
			}
			if got := caller.peek(v); got != want {
				t.Errorf("%s as %s = %d, want %d", rt.Operation, role, got, want)
			}
			if rt.Roles == nil {
				continue
			}
			if got := anyone.peek(v); got != http.StatusUnauthorized {
				t.Errorf("%s without a token = %d, want 401", rt.Operation, got)
			}
		}
	}
}

// peek makes a request and returns its status. Of a stream it reads no more.
func (c *client) peek(v visit) int {
	c.t.Helper()
	if v.path != "/api/v1/events" {
		return c.send(v.method, v.path, v.body).status
	}
	r, err := c.request(c.t.Context(), v.method, v.path, v.body)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode
}

func TestAnotherTenantReachesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one, two := h.tenant("one"), h.tenant("two")
	visits := one.visits()
	mine := one.operator.send("GET", visits["getAction"].path, nil).wants(t, 200).body

	for _, operation := range []string{"getAction", "listAttempts", "waitForAction", "approveAction", "denyAction", "undoAction", "getDeadLetter", "resolveDeadLetter", "revokeToken", "deleteSource", "deleteMode"} {
		v := visits[operation]
		if a := two.admin.send(v.method, v.path, v.body); a.status != http.StatusNotFound {
			t.Errorf("%s of another tenant = %d, want 404: %s", operation, a.status, a.body)
		}
	}
	for _, operation := range []string{"replayDeadLetters", "discardDeadLetters"} {
		v := visits[operation]
		var done struct {
			ActionIDs []string `json:"action_ids"`
		}
		if two.admin.send(v.method, v.path, v.body).wants(t, 200).into(t, &done); len(done.ActionIDs) > 0 {
			t.Errorf("%s reached another tenant's %v", operation, done.ActionIDs)
		}
	}
	for _, list := range []string{"/api/v1/actions", "/api/v1/dead-letters", "/api/v1/dead-letters/export", "/api/v1/tools/verify"} {
		var page struct{ Items []any }
		if two.admin.send("GET", list, nil).wants(t, 200).into(t, &page); len(page.Items) > 0 {
			t.Errorf("%s shows another tenant's rows", list)
		}
	}
	taken := proposal("read", object{})
	taken["tenant_id"] = one.id.String()
	two.admin.send("POST", "/api/v1/actions", taken).wants(t, 400)

	if now := one.operator.send("GET", visits["getAction"].path, nil).wants(t, 200).body; !bytes.Equal(mine, now) {
		t.Errorf("another tenant changed it:\n%s", cmp.Diff(string(mine), string(now)))
	}
}

func TestAgentsSeeTheirOwnSessionOnly(t *testing.T) {
	t.Parallel()
	f := newHouse(t).tenant("sessions")
	id := f.agent.propose("write")

	for _, v := range []visit{
		{"GET", path(id), nil, 404}, {"GET", path(id, "/attempts"), nil, 404},
		{"GET", path(id, "/wait?timeout=1ms"), nil, 404}, {"POST", path(id, "/undo"), nil, 404},
	} {
		f.other.send(v.method, v.path, v.body).wants(t, v.want)
		if v.method == "GET" {
			f.agent.send(v.method, v.path, v.body).wants(t, 200)
		}
	}
	for query, want := range map[string]int{"": 0, "?session=s-one": 0, "?session=s-two": 0} {
		var page struct{ Items []shown }
		if f.other.send("GET", "/api/v1/actions"+query, nil).wants(t, 200).into(t, &page); len(page.Items) != want {
			t.Errorf("list%s shows %d actions of another session", query, len(page.Items))
		}
	}
	f.other.send("POST", "/api/v1/actions", object{"type": "mcp.exec", "external_id": "x", "session_id": "s-one", "tool": object{"name": "read"}, "args": object{}}).wants(t, 400)
}

func TestServesItsOwnLaw(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	anyone := &client{house: h}

	if got := anyone.send("GET", "/api/v1/openapi.yaml", nil).wants(t, 200).body; !bytes.Equal(got, schemas.OpenAPI()) {
		t.Error("openapi.yaml is another one than the embedded")
	}
	anyone.send("GET", "/metrics", nil).wants(t, 404)
	anyone.send("GET", "/readyz", nil).wants(t, 200)
}

func TestReadinessNeedsTheSchema(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if _, err := h.db.Exec(t.Context(), "UPDATE goose_db_version SET is_applied = false"); err != nil {
		t.Fatal(err)
	}

	a := (&client{house: h}).send("GET", "/readyz", nil).wants(t, 503)

	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
}

func TestDigestIsShownAsItIsAccepted(t *testing.T) {
	t.Parallel()
	f := newHouse(t).tenant("digest")
	other := base64.StdEncoding.EncodeToString([]byte("another definition"))

	f.operator.send("POST", "/api/v1/tools/accept", object{"source": "mail", "name": "read", "digest": f.digest("read")}).wants(t, 204)
	f.operator.send("POST", "/api/v1/tools/accept", object{"source": "mail", "name": "read", "digest": other}).wants(t, 409)
	f.operator.send("POST", "/api/v1/tools/accept", object{"source": "mail", "name": "read", "digest": "==="}).wants(t, 400)
}
