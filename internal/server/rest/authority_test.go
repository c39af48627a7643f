package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/server/rest/route"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/openapi/openapitest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// mode returns policy's mode for a tool and the caller.
func (c *client) mode(tool string) string {
	c.t.Helper()
	var shown struct{ Mode string }
	c.send("GET", "/api/v1/tools/"+tool, nil).wants(c.t, 200).into(c.t, &shown)
	return shown.Mode
}

func TestAnOperatorAloneDoesNotOverrulePolicy(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("overrule")

	f.operator.send("PUT", "/api/v1/tools/mail:danger/overrides", object{"risk": "read"}).wants(t, 403)
	f.operator.send("PUT", "/api/v1/tools/mail:write/overrides", object{"risk": "read", "effect": "read"}).wants(t, 403)

	if got := f.operator.mode("mail:danger"); got != "deny" {
		t.Errorf("mode of mail:danger = %s, want deny", got)
	}
	f.operator.send("POST", "/api/v1/actions", proposal("danger", object{})).wants(t, 403)
	f.operator.send("PUT", "/api/v1/tools/mail:write/overrides", object{"risk": "danger"}).wants(t, 200)
	if got := f.operator.mode("mail:write"); got != "deny" {
		t.Errorf("mode of mail:write after its risk was raised = %s, want deny", got)
	}
	f.operator.send("PUT", "/api/v1/tools/mail:write/overrides", object{}).wants(t, 403)
	f.admin.send("PUT", "/api/v1/tools/mail:write/overrides", object{}).wants(t, 200)
}

// TestSettingsAreOnlyMadeStricter sets up settings as an administrator, and has
// others change them who may not loosen.
func TestSettingsAreOnlyMadeStricter(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("stricter")
	employee := uuid.NewString()
	for _, v := range []visit{
		{"PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{"/to"}, "scopes": []string{"mail:send"}}, 200},
		{"PUT", "/api/v1/tools/mail:write/snapshot-rule", object{"read": "mail:read", "required": true}, 200},
		{"PUT", "/api/v1/preferences/mail:danger", nil, 200},
		{"PUT", "/api/v1/employees/" + employee, object{"trust": "low", "scopes": []string{"mail:send"}}, 200},
		{"PUT", "/api/v1/buckets/slow", object{"rate": object{"limit": 10, "per": "1m"}, "concurrency": 2}, 200},
		{"PUT", "/api/v1/buckets/default", object{"concurrency": 3}, 200},
		{"PUT", nightPath("tenant", ""), night(), 200},
		{"POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "a@example.org"}}}, 200},
		{"PUT", "/api/v1/sources/off", object{"kind": "mcp", "config": object{"transport": "http", "url": "http://127.0.0.1:9"}, "enabled": false, "quarantine": true}, 200},
	} {
		f.admin.send(v.method, v.path, v.body).wants(t, v.want)
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error { // the source changes the definition of write, and then adds a tool
		if err := catalog.PutSource(ctx, tx, f.id, catalog.Source{ID: "mail", Kind: catalog.KindMCP, Config: mailConfig, Enabled: true, Quarantine: true}); err != nil {
			return err
		}
		changed := slices.Clone(mailTools)
		changed[2].Description = "Says what it does."
		return catalog.PutListing(ctx, tx, f.id, "mail", append(changed, source.Tool{Name: "new", InputSchema: mailTools[0].InputSchema}))
	})
	narrow := f.holder(identity.Grant{Name: "no policy:write", Role: identity.RoleOwner, Scopes: slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })})
	digest := map[string]string{"danger": f.digestOf("mail:danger"), "new": f.digestOf("mail:new")}
	soon := time.Now().Add(time.Hour).Format(time.RFC3339)
	connection := object{"transport": "http", "url": "http://127.0.0.1:9"}
	source := func(more ...any) object {
		o := object{"kind": "mcp", "config": connection, "enabled": false, "quarantine": true}
		for i := 0; i < len(more); i += 2 {
			o[more[i].(string)] = more[i+1]
		}
		return o
	}

	for _, tt := range []struct {
		name string
		by   *client
		v    visit
	}{
		{"fewer recipients", f.operator, visit{"PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{}, "scopes": []string{"mail:send"}}, 403}},
		{"guessed recipients", f.operator, visit{"PUT", "/api/v1/tools/mail:danger/rule", object{"recipients": []string{"/a"}}, 200}},
		{"fewer scopes", f.operator, visit{"PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{"/to"}}, 403}},
		{"more scopes", f.operator, visit{"PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{"/to"}, "scopes": []string{"mail:send", "more"}}, 200}},
		{"other retries", f.operator, visit{"PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{"/to"}, "scopes": []string{"mail:send", "more"}, "retry": object{"max_attempts": 2}}, 200}},
		{"more recipients", f.operator, visit{"PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{"/to", "/cc"}, "scopes": []string{"mail:send", "more"}}, 200}},
		{"a class that repeats", f.operator, visit{"PUT", "/api/v1/tools/mail:write/overrides", object{"effect": "idempotent"}, 403}},
		{"a reversal", f.operator, visit{"PUT", "/api/v1/tools/mail:write/description", object{"reversal": object{"tool": "mail:danger"}}, 403}},
		{"another name", f.operator, visit{"PUT", "/api/v1/tools/mail:write/description", object{"entity": "letter"}, 200}},
		{"a headline", f.operator, visit{"PUT", "/api/v1/tools/mail:write/description", object{"headline": "Write to {/to}"}, 403}},
		{"a changed definition", narrow, visit{"POST", "/api/v1/tools/mail:danger/accept", object{"digest": digest["danger"]}, 403}},
		{"a new tool", narrow, visit{"POST", "/api/v1/tools/mail:new/accept", object{"digest": digest["new"]}, 403}},
		{"a read that is required", f.operator, visit{"DELETE", "/api/v1/tools/mail:write/snapshot-rule", nil, 403}},
		{"a read that is not required any more", f.operator, visit{"PUT", "/api/v1/tools/mail:write/snapshot-rule", object{"read": "mail:read"}, 403}},
		{"sending again", f.operator, visit{"PUT", "/api/v1/tools/mail:write/reconcile-rule", object{"read": "mail:read", "happened": "/found", "resend": true}, 403}},
		{"a preference off", f.operator, visit{"DELETE", "/api/v1/preferences/mail:danger", nil, 403}},
		{"a preference on", f.operator, visit{"PUT", "/api/v1/preferences/mail:write", nil, 200}},
		{"an entry that ends", f.operator, visit{"POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "A@example.org", "expires_at": soon}}}, 403}},
		{"an entry more", f.operator, visit{"POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "b@example.org", "expires_at": soon}}}, 200}},
		{"an entry for ever", f.operator, visit{"POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "b@example.org"}}}, 200}},
		{"an entry off", narrow, visit{"POST", "/api/v1/do-not-contact/remove", object{"entries": []object{{"value": "a@example.org"}}}, 403}},
		{"an entry that is none off", narrow, visit{"POST", "/api/v1/do-not-contact/remove", object{"entries": []object{{"value": "c@example.org"}}}, 200}},
		{"an import that ends entries", narrow, visit{"POST", "/api/v1/do-not-contact/import", csv("value,expires_at\na@example.org," + soon + "\n"), 403}},
		{"more trust", narrow, visit{"PUT", "/api/v1/employees/" + employee, object{"trust": "high", "scopes": []string{"mail:send"}}, 403}},
		{"wider scopes", narrow, visit{"PUT", "/api/v1/employees/" + employee, object{"trust": "low", "scopes": []string{"mail:*"}}, 403}},
		{"no entry", narrow, visit{"DELETE", "/api/v1/employees/" + employee, nil, 403}},
		{"less trust", narrow, visit{"PUT", "/api/v1/employees/" + employee, object{"trust": "none", "scopes": []string{"mail:send"}}, 200}},
		{"an entry for all", narrow, visit{"PUT", "/api/v1/employees/default", object{"trust": "medium", "scopes": []string{}}, 200}},
		{"a faster bucket", narrow, visit{"PUT", "/api/v1/buckets/slow", object{"rate": object{"limit": 11, "per": "1m"}, "concurrency": 2}, 403}},
		{"a bucket without a ceiling", narrow, visit{"PUT", "/api/v1/buckets/slow", object{"rate": object{"limit": 10, "per": "1m"}}, 403}},
		{"a slower bucket", narrow, visit{"PUT", "/api/v1/buckets/slow", object{"rate": object{"limit": 1, "per": "1m"}, "concurrency": 2}, 200}},
		{"a bucket that is new and free", narrow, visit{"PUT", "/api/v1/buckets/free", object{}, 403}},
		{"a bucket that is new", narrow, visit{"PUT", "/api/v1/buckets/tight", object{"concurrency": 1}, 200}},
		{"no quiet hours", narrow, visit{"DELETE", nightPath("tenant", ""), nil, 403}},
		{"more quiet hours", narrow, visit{"PUT", nightPath("bucket", "slow"), night(), 200}},
		{"another time zone", narrow, visit{"PUT", "/api/v1/settings", object{"timezone": "Asia/Tokyo"}, 403}},
		{"a document with free buckets", narrow, visit{"PUT", "/api/v1/limits?dry_run=true", object{"buckets": []object{}}, 200}},
		{"a source on", narrow, visit{"PUT", "/api/v1/sources/off", source("enabled", true), 403}},
		{"a source that only reads", narrow, visit{"PUT", "/api/v1/sources/off", source("default_risk", "read"), 403}},
		{"a source without quarantine", narrow, visit{"PUT", "/api/v1/sources/off", source("quarantine", false), 403}},
		{"a source with half a guard", narrow, visit{"PUT", "/api/v1/sources/off", source("drift_guard", "interface"), 403}},
		{"a source of danger", narrow, visit{"PUT", "/api/v1/sources/off", source("default_risk", "danger"), 200}},
		{"a new source that only reads", narrow, visit{"PUT", "/api/v1/sources/new", source("default_risk", "read"), 403}},
		{"a new source that trusts what it lists later", narrow, visit{"PUT", "/api/v1/sources/new", object{"kind": "mcp", "config": connection, "quarantine": false}, 403}},
		{"a new source", narrow, visit{"PUT", "/api/v1/sources/new", object{"kind": "mcp", "config": connection}, 200}},
		{"a source gone", narrow, visit{"DELETE", "/api/v1/sources/off", nil, 403}},
	} {
		if a := tt.by.send(tt.v.method, tt.v.path, tt.v.body); a.status != tt.v.want {
			t.Errorf("%s = %d, want %d: %s", tt.name, a.status, tt.v.want, a.body)
		} else if tt.v.want == http.StatusForbidden && !strings.Contains(string(a.body), "policy:write") {
			t.Errorf("%s is refused without a word about policy:write: %s", tt.name, a.body)
		}
	}
}

// TestOperatorsLiftWhatOperatorsPaused pauses, pauses again and kills, and has an
// operator resume.
func TestOperatorsLiftWhatOperatorsPaused(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("lifts")
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	narrow := f.holder(identity.Grant{Name: "no policy:write", Role: identity.RoleOwner, Scopes: rest})
	stop := func(by *client, kill bool) (p struct {
		ID     string `json:"pause_id"`
		By     string
		Reason string
		Needs  bool `json:"needs_policy_write"`
	}) {
		t.Helper()
		a := by.send("POST", "/api/v1/pauses", object{"scope": "source", "subject": "mail", "reason": "of " + by.id.String(), "kill": kill})
		if a.status != http.StatusOK && a.status != http.StatusCreated {
			t.Fatalf("pause = %d: %s", a.status, a.body)
		}
		a.into(t, &p)
		return p
	}
	for name, tt := range map[string]struct {
		by    []*client
		kill  bool
		wants int
	}{
		"an operator's pause":                     {[]*client{f.operator}, false, 204},
		"an operator's kill":                      {[]*client{f.operator}, true, 204},
		"one without policy:write":                {[]*client{narrow}, false, 204},
		"an administrator's pause":                {[]*client{f.admin}, false, 403},
		"an administrator's kill":                 {[]*client{f.admin}, true, 403},
		"an administrator after an operator":      {[]*client{f.operator, f.admin}, false, 403},
		"an operator after an administrator":      {[]*client{f.admin, f.operator}, false, 403},
		"an operator's kill of what another held": {[]*client{f.admin, f.operator}, true, 403},
	} {
		var id string
		for _, by := range tt.by {
			p := stop(by, tt.kill)
			if id = p.ID; p.Needs != (tt.wants == 403) && by == tt.by[len(tt.by)-1] {
				t.Errorf("%s: needs policy:write = %t", name, p.Needs)
			}
			if name == "an administrator after an operator" && by == f.admin && p.Reason != "of "+by.id.String() {
				t.Errorf("%s: the reason is %q, want that of the administrator", name, p.Reason)
			}
		}

		a := f.operator.send("DELETE", "/api/v1/pauses/"+id, nil)

		if a.status != tt.wants || tt.wants == 403 && !strings.Contains(string(a.body), "policy:write") {
			t.Errorf("%s: an operator resumes = %d, want %d: %s", name, a.status, tt.wants, a.body)
		}
		if tt.wants == 403 {
			narrow.send("DELETE", "/api/v1/pauses/"+id, nil).wants(t, 403)
			f.admin.send("DELETE", "/api/v1/pauses/"+id, nil).wants(t, 204)
		}
	}
}

// digestOf returns the digest of a tool in the list.
func (f *tenantFixture) digestOf(tool string) string {
	f.t.Helper()
	var shown struct{ Digest string }
	f.admin.send("GET", "/api/v1/tools/"+tool, nil).wants(f.t, 200).into(f.t, &shown)
	return shown.Digest
}

// A rule about arguments may have less effect for a higher risk.
func TestHigherRiskLoosensUnderARuleAboutRisk(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("looks")
	f.admin.send("PUT", "/api/v1/policy/modes/mail:write", object{"mode": "allow"}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/policy/rules/writes", object{"tool": "mail:*", "expression": "tool.risk == 'write'", "mode": "deny"}).wants(t, 200)

	f.operator.send("PUT", "/api/v1/tools/mail:write/overrides", object{"risk": "danger"}).wants(t, 403)

	f.operator.send("POST", "/api/v1/actions", proposal("write", object{})).wants(t, 403)
}

// An agent cannot escape a rule by raising the risk of its proposal.
func TestAnAgentDoesNotRaiseItsRiskPastARule(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("raised")
	f.admin.send("PUT", "/api/v1/policy/modes/mail:write", object{"mode": "allow"}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/policy/rules/medium", object{"tool": "mail:*", "expression": "envelope.risk == 'medium'", "mode": "deny"}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/policy/rules/high", object{"tool": "mail:*", "expression": "envelope.risk == 'high'", "mode": "require_approval"}).wants(t, 200)

	for _, risk := range []string{"low", "medium", "high"} {
		p := proposal("write", object{})
		p["risk"] = risk
		if a := f.agent.send("POST", "/api/v1/actions", p); a.status != http.StatusForbidden {
			t.Errorf("a proposal of risk %s = %d, want 403: %s", risk, a.status, a.body)
		}
	}
}

// toolRoutes lists the operations that change something and name tools, sources
// or patterns of tools, in the path or the body, with the use of the names.
func toolRoutes() map[string]string {
	const configures, proposes, reads, people = "configures", "proposes", "reads", "people"
	return map[string]string{
		"putReview": configures, "deleteReview": configures, "putSnapshotRule": configures, "deleteSnapshotRule": configures,
		"acceptTool": configures, "configureTool": configures, "putToolRule": configures, "putReconcileRule": configures,
		"deleteReconcileRule": configures, "describeTool": configures, "putSource": configures, "acceptSource": configures, "deleteSource": configures, "beginSourceLogin": configures, "finishSourceLogin": configures, "removeSourceLogin": configures,
		"putPolicy": configures, "putMode": configures, "deleteMode": configures, "putRule": configures, "makeGrant": configures,
		"putSessionMode": configures, "deleteSessionMode": configures, "putPreference": configures, "deletePreference": configures,
		"putSubscription": configures, "putTriageAccount": configures, "putLimits": configures, "pause": configures,
		// The source of an entry is its field source.
		"addDoNotContact": reads,
		// Policy and approvals restrict proposals and decisions to the token's tools.
		"submitAction": proposes, "submitActions": proposes, "invokeTool": proposes, "submitWorkflow": proposes, "revertActions": proposes,
		"refreshSource": reads,
		"explainPolicy": reads, "checkRule": reads, "simulatePolicy": reads, "replayDeadLetters": reads, "discardDeadLetters": reads,
		// A token issues no tokens with more tools than its own; narrowing adds none,
		// as revoking does.
		"issueToken": people, "consentToProgram": people, "narrowToken": people,
	}
}

func TestConfigurationIsHeldToTheToolsOfTheToken(t *testing.T) {
	t.Parallel()
	contract := openapitest.Load(t)
	f := newFixture(t).tenant("held")
	narrow := f.holder(identity.Grant{Name: "for other tools", Role: identity.RoleOwner, Tools: []string{"bank:*"}})
	visits, known := f.visits(), toolRoutes()
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		changed := slices.Clone(mailTools)
		changed[2].Description = "Says what it does."
		moved := catalog.Source{ID: "moved", Kind: catalog.KindMCP, Config: mailConfig, Enabled: true}
		if err := errors.Join(
			catalog.PutListing(ctx, tx, f.id, "mail", changed),
			catalog.PutSource(ctx, tx, f.id, moved), catalog.PutListing(ctx, tx, f.id, "moved", mailTools),
		); err != nil {
			return err
		}
		moved.Config = json.RawMessage(`{"transport":"http","url":"http://127.0.0.1:10/mcp"}`)
		return catalog.PutSource(ctx, tx, f.id, moved)
	})
	for operation, path := range map[string]string{"putPolicy": "/api/v1/policy", "putLimits": "/api/v1/limits"} { // visits only try them
		v := visits[operation]
		v.path = path
		visits[operation] = v
	}
	visits["acceptSource"] = visit{"POST", "/api/v1/sources/moved/accept", nil, 200}
	visits["acceptTool"] = visit{"POST", "/api/v1/tools/mail:danger/accept", object{"digest": f.digestOf("mail:danger")}, 200}

	for _, rt := range route.Access() {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		what, listed := known[rt.Operation]
		delete(known, rt.Operation)
		if names := method != "GET" && contract.NamesTools(path, strings.ToLower(method)); names != listed && rt.Roles != nil {
			t.Errorf("%s names tools: %t, and is listed: %t; say what for, and hold it to the token's tools", rt.Operation, names, listed)
		}
		if what != "configures" {
			continue
		}
		v := visits[rt.Operation]
		a := narrow.send(v.method, v.path, v.body, f.matching(v)...)
		hidden := a.status == http.StatusNotFound || a.status == http.StatusPreconditionFailed // no such tool or source, for this token
		if !hidden && (a.status != http.StatusForbidden || !strings.Contains(string(a.body), "token does not cover") && !strings.Contains(string(a.body), "token covers only")) {
			t.Errorf("%s by a token for other tools = %d, want 403 or 404: %s", rt.Operation, a.status, a.body)
		}
	}
	for operation := range known {
		t.Errorf("%s is no operation", operation)
	}
}

// sourceTag returns the entity tag of a source.
func (f *tenantFixture) sourceTag(id string) string {
	f.t.Helper()
	var sources struct {
		Items []struct {
			ID   string `json:"source_id"`
			ETag string
		}
	}
	f.admin.send("GET", "/api/v1/sources", nil).wants(f.t, 200).into(f.t, &sources)
	for _, src := range sources.Items {
		if src.ID == id {
			return src.ETag
		}
	}
	f.t.Fatalf("no source %s", id)
	return ""
}

// matching returns the precondition of a request that needs one.
func (f *tenantFixture) matching(v visit) []string {
	if v.path == "/api/v1/sources/moved/accept" {
		return ifMatch(f.sourceTag("moved"))
	}
	if v.method != "PUT" || v.path != "/api/v1/policy" && v.path != "/api/v1/limits" {
		return nil
	}
	return []string{"If-Match", f.admin.send("GET", v.path, nil).wants(f.t, 200).header.Get("ETag")}
}
