package rest_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/server/rest/route"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/server/openapi/openapitest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/schemas"
)

func TestRoutesAndContractAgree(t *testing.T) {
	t.Parallel()
	contract := openapitest.Load(t)
	inContract, inTable := map[string]string{}, map[string]string{}
	for path, methods := range contract.Paths {
		for method, op := range methods {
			inContract[strings.ToUpper(method)+" "+path] = op.OperationID
			if _, ok := op.Responses["default"]; !ok {
				t.Errorf("%s describes no problem", op.OperationID)
			}
		}
	}

	for _, rt := range route.Access() {
		inTable[rt.Pattern] = rt.Operation
		method, path, _ := strings.Cut(rt.Pattern, " ")
		op := contract.Paths[path][strings.ToLower(method)]
		if diff := cmp.Diff(op.Roles, rt.Roles); diff != "" {
			t.Errorf("x-roles of %s (-contract +table):\n%s", rt.Operation, diff)
		}
		if op.Scope != rt.Scope {
			t.Errorf("x-scope of %s is %q in the contract and %q in the table", rt.Operation, op.Scope, rt.Scope)
		}
		if wants := rt.Roles != nil && !aboutCaller(rt.Operation); wants != (rt.Scope != "") || wants && !rt.Scope.Valid() {
			t.Errorf("%s has the scope %q; every route with roles has one that there is, except those about the caller", rt.Operation, rt.Scope)
		}
		if public := op.Security != nil; public != (rt.Roles == nil) {
			t.Errorf("security of %s does not fit its roles", rt.Operation)
		}
	}

	if diff := cmp.Diff(inContract, inTable); diff != "" {
		t.Errorf("operations (-contract +table):\n%s", diff)
	}
}

// aboutCaller reports whether an operation is about the caller itself, which takes
// no scope.
func aboutCaller(operation string) bool {
	return slices.Contains([]string{"getMe", "touchSession", "createLoginCode", "listMySessions", "endMySession", "showProgramRequest"}, operation)
}

func TestExamplesFitTheContract(t *testing.T) {
	t.Parallel()
	contract := openapitest.Load(t)
	examples, err := contract.Examples()
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
	// want is the status for allowed callers.
	want int
}

// visits returns one fresh request for every operation. Each call creates the
// resources that the requests need.
func (f *tenantFixture) visits() map[string]visit {
	dead := f.dead()
	unresolved := f.unresolved()
	waiting, free, undoable, edited := f.agent.propose("write"), f.agent.propose("write"), f.agent.propose("write"), f.agent.propose("write")
	narrow := []identity.Scope{identity.TokensManage}
	doomed := f.holder(identity.Grant{Name: "doomed", Role: identity.RoleAgent}).id.String()
	turning := f.holder(identity.Grant{Name: "turning", Role: identity.RoleAgent, Scopes: narrow}).id.String()
	person, issuer := f.person("Ana"), "https://"+uuid.NewString()+".example.org"
	f.provider("doomed", issuer)
	src := "s" + uuid.NewString()[:8]
	f.admin.send("PUT", "/api/v1/sources/"+src, object{"kind": "mcp", "config": object{"transport": "http", "url": "http://127.0.0.1:9"}}).wants(f.t, 200)
	f.admin.send("PUT", "/api/v1/reviews/"+src+":x", object{}).wants(f.t, 200)
	f.admin.send("PUT", "/api/v1/policy/modes/"+src+":*", object{"mode": "deny"}).wants(f.t, 200)
	employee := uuid.NewString()
	f.limited(src+".old", employee)
	grant := f.ruled(src)
	f.operator.send("PUT", "/api/v1/tools/mail:danger/snapshot-rule", object{"read": "mail:read"}).wants(f.t, 200)
	f.operator.send("PUT", "/api/v1/tools/mail:danger/reconcile-rule", object{"read": "mail:read", "happened": "/found"}).wants(f.t, 200)
	hooks := f.subscribed()
	box, mail := src+".mail", uuid.NewString()
	f.mailbox(box, mail)
	try := f.tried(mail, "create-reminder")
	f.admin.send("PUT", "/api/v1/triage/accounts/"+src+".old", object{"kind": "maildir", "connection": object{"path": "/srv/old"}}).wants(f.t, 200)
	var correction struct {
		Number int `json:"correction_no"`
	}
	f.admin.send("POST", "/api/v1/triage/messages/"+mail+"/corrections", object{"head": "unwanted", "label": "yes"}).wants(f.t, 201).into(f.t, &correction)
	for _, label := range []string{"old", "kept"} {
		f.operator.send("PUT", "/api/v1/triage/accounts/"+box+"/labels/"+label, object{"words": []string{"invoice"}, "untried": true}).wants(f.t, 200)
	}
	f.checkpoint()
	var chain audit.Report
	f.operator.send("GET", "/api/v1/audit/verify", nil).wants(f.t, 200).into(f.t, &chain)
	return map[string]visit{
		"submitAction":            {"POST", "/api/v1/actions", proposal("read", object{}), 201},
		"submitActions":           {"POST", "/api/v1/actions/batch", object{"items": []any{proposal("read", object{})}}, 200},
		"listActions":             {"GET", "/api/v1/actions?limit=5&status=pending&approval=auto&tool=*:read&source=mail&external_id=x&phase=approved,executing&risk=low,high&since=2026-01-02T03:04:05Z&until=2036-01-02T03:04:05Z&order=oldest&automation_id=a&employee_id=" + employee + "&workflow_id=" + employee, nil, 200},
		"getAction":               {"GET", path(waiting), nil, 200},
		"listAttempts":            {"GET", path(dead[0], "/attempts"), nil, 200},
		"search":                  {"GET", "/api/v1/search?q=mail", nil, 200},
		"getForecast":             {"GET", path(waiting, "/forecast"), nil, 200},
		"summarizeDeadLetters":    {"GET", deadLettersPath + "/summary?reason=refused&tool=*:read&source=mail&code=http_400&since=2026-01-02T03:04:05Z", nil, 200},
		"listHistory":             {"GET", path(dead[0], "/history"), nil, 200},
		"waitForAction":           {"GET", path(waiting, "/wait?wait=1ms"), nil, 200},
		"previewAlways":           {"POST", path(waiting, "/always"), object{"loose": []string{}}, 200},
		"approveAction":           {"POST", path(waiting, "/approve"), object{"note": "fine"}, 200},
		"denyAction":              {"POST", path(free, "/deny"), nil, 200},
		"undoAction":              {"POST", path(undoable, "/undo"), nil, 200},
		"revertAction":            {"POST", path(undoable, "/revert"), nil, 409},
		"revertActions":           {"POST", "/api/v1/actions/revert", object{"action_ids": []string{undoable}, "dry_run": true}, 200},
		"editAction":              {"POST", path(edited, "/edit"), object{"args": object{"n": 2}}, 200},
		"listVotes":               {"GET", path(waiting, "/votes"), nil, 200},
		"approveActions":          {"POST", "/api/v1/actions/approve", object{"ids": []string{edited}, "note": "all"}, 200},
		"denyActions":             {"POST", "/api/v1/actions/deny", object{"ids": []string{edited}}, 200},
		"getInbox":                {"GET", "/api/v1/inbox?limit=2", nil, 200},
		"getInboxCounts":          {"GET", "/api/v1/inbox/counts?kind=approval,unknown", nil, 200},
		"listInterrupts":          {"GET", "/api/v1/inbox/interrupts?limit=2", nil, 200},
		"respondToAction":         {"POST", path(edited, "/respond"), []object{{"type": "accept", "args": nil}}, 428},
		"acknowledgeInbox":        {"POST", "/api/v1/inbox/acknowledge", object{"ids": []string{uuid.NewString()}}, 200},
		"listReviews":             {"GET", "/api/v1/reviews", nil, 200},
		"putReview":               {"PUT", "/api/v1/reviews/" + src + ":*?risk=high", object{"approvals": 2}, 200},
		"deleteReview":            {"DELETE", "/api/v1/reviews/" + src + ":x", nil, 204},
		"invokeTool":              {"POST", "/api/v1/tools/mail:read", object{"external_id": uuid.NewString(), "wait": "0s"}, 202},
		"listExecutions":          {"GET", "/api/v1/executions?tool=*:read&source=mail&status=error&code=http_400&via=api&ip=127.0.0.1&since=2026-01-02T03:04:05Z&limit=2", nil, 200},
		"getExecution":            {"GET", "/api/v1/executions/" + waiting, nil, 200},
		"listSnapshotRules":       {"GET", "/api/v1/snapshot-rules", nil, 200},
		"putSnapshotRule":         {"PUT", "/api/v1/tools/mail:write/snapshot-rule", object{"read": "mail:read", "args": object{"to": "$inputs/to"}}, 200},
		"deleteSnapshotRule":      {"DELETE", "/api/v1/tools/mail:danger/snapshot-rule", nil, 204},
		"listProposals":           {"GET", "/api/v1/proposals?state=waiting&login=app&limit=2", nil, 200},
		"getProposal":             {"GET", "/api/v1/proposals/" + f.storedProposal(), nil, 200},
		"listDeadLetters":         {"GET", "/api/v1/dead-letters?reason=refused&tool=mail:*&limit=3", nil, 200},
		"getDeadLetter":           {"GET", "/api/v1/dead-letters/" + dead[0], nil, 200},
		"replayDeadLetters":       {"POST", "/api/v1/dead-letters/replay", object{"action_ids": []string{dead[1]}}, 200},
		"discardDeadLetters":      {"POST", "/api/v1/dead-letters/discard", object{"action_ids": []string{dead[2]}, "reason": "old"}, 200},
		"exportDeadLetters":       {"GET", "/api/v1/dead-letters/export?source=mail&code=http_400&since=2026-01-02T03:04:05Z&until=2100-01-01T00:00:00Z", nil, 200},
		"resolveDeadLetter":       {"POST", "/api/v1/dead-letters/" + unresolved + "/resolve", object{"happened": true, "note": "seen"}, 200},
		"submitWorkflow":          {"POST", "/api/v1/workflows", object{"external_id": uuid.NewString(), "steps": []any{object{"tool": "mail:read"}}}, 201},
		"listWorkflows":           {"GET", "/api/v1/workflows?state=running&needs_operator=false&external_id=x&limit=3", nil, 200},
		"getWorkflow":             {"GET", workflows + "/" + f.workflow("running"), nil, 200},
		"cancelWorkflow":          {"POST", workflows + "/" + f.workflow("running") + "/cancel", nil, 200},
		"retryWorkflow":           {"POST", workflows + "/" + f.workflow("compensation_failed") + "/retry", object{"note": "again"}, 200},
		"resolveWorkflow":         {"POST", workflows + "/" + f.workflow("compensation_failed") + "/resolve", object{"note": "by hand", "abandon": true}, 200},
		"listReconcileRules":      {"GET", "/api/v1/reconcile-rules", nil, 200},
		"putReconcileRule":        {"PUT", "/api/v1/tools/mail:write/reconcile-rule", object{"read": "mail:read", "happened": "/found"}, 200},
		"deleteReconcileRule":     {"DELETE", "/api/v1/tools/mail:danger/reconcile-rule", nil, 204},
		"streamEvents":            {"GET", "/api/v1/events", nil, 200},
		"getRecovery":             {"GET", "/api/v1/recovery", nil, 200},
		"recoverDatabase":         {"POST", "/api/v1/recovery", object{"ask_for": "2d"}, 428},
		"listSubscriptions":       {"GET", "/api/v1/subscriptions", nil, 200},
		"putSubscription":         {"PUT", "/api/v1/subscriptions/" + src, object{"source": hooks, "kinds": []string{"settled"}}, 200},
		"deleteSubscription":      {"DELETE", "/api/v1/subscriptions/" + hooks + ".b", nil, 204},
		"testSubscription":        {"POST", "/api/v1/subscriptions/" + hooks + ".a/test", nil, 200},
		"resendDelivery":          {"POST", path(undoable, "/resend"), object{"note": "lost"}, 409},
		"slackInteraction":        {"POST", "/api/v1/slack/interactions/" + uuid.NewString(), form("payload=%7B%7D"), 401},
		"listTools":               {"GET", "/api/v1/tools", nil, 200},
		"getTool":                 {"GET", "/api/v1/tools/mail:read", nil, 200},
		"diffTool":                {"GET", "/api/v1/tools/mail:read/diff", nil, 200},
		"describeTool":            {"PUT", "/api/v1/tools/mail:write/description", object{"entity": "letter"}, 200},
		"acceptSource":            {"POST", "/api/v1/sources/mail/accept", nil, 428},
		"beginSourceLogin":        {"POST", "/api/v1/sources/mail/login", nil, 409},
		"finishSourceLogin":       {"POST", "/api/v1/sources/mail/login/finish", object{"state": "x"}, 404},
		"removeSourceLogin":       {"DELETE", "/api/v1/sources/mail/login", nil, 404},
		"showSourceLogin":         {"GET", "/auth/source?state=x&code=y&session_state=z", nil, 200},
		"getSourceClient":         {"GET", "/auth/source-client", nil, 200},
		"refreshSource":           {"POST", "/api/v1/sources/mail/refresh", nil, 202},
		"acceptTool":              {"POST", "/api/v1/tools/mail:read/accept", object{"digest": f.digest("read")}, 200},
		"configureTool":           {"PUT", "/api/v1/tools/mail:danger/overrides", object{"max_attempts": 3}, 200},
		"listSources":             {"GET", "/api/v1/sources", nil, 200},
		"putSource":               {"PUT", "/api/v1/sources/" + src, object{"kind": "mcp", "config": object{"transport": "stdio", "command": []string{"true"}}}, 200},
		"deleteSource":            {"DELETE", "/api/v1/sources/" + src, nil, 204},
		"listModes":               {"GET", "/api/v1/policy/modes", nil, 200},
		"putMode":                 {"PUT", "/api/v1/policy/modes/mail:danger?automation_id=a", object{"mode": "deny"}, 200},
		"deleteMode":              {"DELETE", "/api/v1/policy/modes/" + src + ":*", nil, 204},
		"listRules":               {"GET", "/api/v1/policy/rules", nil, 200},
		"putRule":                 {"PUT", "/api/v1/policy/rules/made", object{"tool": "mail:danger", "expression": "args.n > 1", "mode": "deny"}, 200},
		"deleteRule":              {"DELETE", "/api/v1/policy/rules/" + src, nil, 204},
		"listGrants":              {"GET", "/api/v1/policy/grants?ended=true", nil, 200},
		"makeGrant":               {"POST", "/api/v1/policy/grants", object{"tool": "mail:danger", "pins": object{"/n": 1}}, 201},
		"revokeGrant":             {"DELETE", "/api/v1/policy/grants/" + grant, nil, 204},
		"listSessionModes":        {"GET", "/api/v1/policy/sessions?session_id=s", nil, 200},
		"putSessionMode":          {"PUT", "/api/v1/policy/sessions/s/mail:danger", object{"mode": "deny", "expires_in": "1m"}, 200},
		"deleteSessionMode":       {"DELETE", "/api/v1/policy/sessions/" + src + "/" + src + ":*", nil, 204},
		"explainPolicy":           {"POST", "/api/v1/policy/explain", object{"tool": "mail:write", "args": object{"n": 1}}, 200},
		"getPolicyMatrix":         {"GET", "/api/v1/policy/matrix?limit=2", nil, 200},
		"getPolicyUsage":          {"GET", "/api/v1/policy/usage", nil, 200},
		"getPolicy":               {"GET", "/api/v1/policy", nil, 200},
		"putPolicy":               {"PUT", "/api/v1/policy?dry_run=true", object{"reviews": []object{{"tool": src + ":*", "approvals": 2}}}, 200},
		"checkRule":               {"POST", "/api/v1/policy/check", object{"tool": "mail:write", "expression": "args.n > 1"}, 200},
		"simulatePolicy":          {"POST", "/api/v1/policy/simulate", object{"since": "2026-01-02T03:04:05Z", "policy": object{"modes": []object{}}, "limit": 5}, 200},
		"listPreferences":         {"GET", "/api/v1/preferences", nil, 200},
		"putPreference":           {"PUT", "/api/v1/preferences/mail:danger?employee_id=" + employee, nil, 200},
		"deletePreference":        {"DELETE", "/api/v1/preferences/" + src + ":*", nil, 204},
		"getMe":                   {"GET", "/api/v1/me", nil, 200},
		"listMySessions":          {"GET", "/api/v1/me/sessions?limit=2", nil, 200},
		"endMySession":            {"DELETE", "/api/v1/me/sessions/" + uuid.NewString(), nil, 404},
		"listSessions":            {"GET", "/api/v1/operators/sessions?limit=2", nil, 200},
		"endSession":              {"DELETE", "/api/v1/operators/sessions/" + uuid.NewString(), nil, 404},
		"createLoginCode":         {"POST", "/api/v1/login-codes", nil, 201},
		"showProgramRequest":      {"POST", "/auth/program", object{"request": "r"}, 404},
		"consentToProgram":        {"POST", "/auth/consent", object{"request": "r", "agree": true}, 404},
		"getLoginOptions":         {"GET", "/auth/options?organisation=acme", nil, 200},
		"startLogin":              {"GET", "/auth/login?provider=acme", nil, 303},
		"finishLogin":             {"GET", "/auth/callback?state=x&code=y&session_state=z", nil, 303},
		"showLoginCode":           {"POST", "/auth/code", object{"code": "none"}, 401},
		"openSession":             {"POST", "/auth/session", object{"code": "none"}, 400},
		"touchSession":            {"POST", "/auth/touch", nil, 409},
		"closeSession":            {"POST", "/auth/logout", nil, 204},
		"listTokens":              {"GET", "/api/v1/tokens?all=true&limit=3", nil, 200},
		"issueToken":              {"POST", "/api/v1/tokens", object{"name": "n", "role": "agent", "expires_in": "1m", "scopes": narrow}, 201},
		"rotateToken":             {"POST", "/api/v1/tokens/" + turning + "/rotate", object{"overlap": "1m"}, 200},
		"narrowToken":             {"POST", "/api/v1/tokens/" + turning + "/narrow", object{"expires_in": "1h"}, 200},
		"listOperators":           {"GET", "/api/v1/operators", nil, 200},
		"createOperator":          {"POST", "/api/v1/operators", object{"name": "Bo", "role_set": "viewer"}, 201},
		"putOperator":             {"PUT", "/api/v1/operators/" + person, object{"name": "Ana", "disabled": true}, 200},
		"listProviders":           {"GET", "/api/v1/identity-providers", nil, 200},
		"putProvider":             {"PUT", "/api/v1/identity-providers/made", object{"issuer": issuer, "audience": "made-" + f.id.String()}, 200},
		"deleteProvider":          {"DELETE", "/api/v1/identity-providers/doomed", nil, 204},
		"revokeToken":             {"DELETE", "/api/v1/tokens/" + doomed, nil, 204},
		"verifyAudit":             {"GET", "/api/v1/audit/verify", nil, 200},
		"noteHead":                {"PUT", fmt.Sprintf("/api/v1/audit/heads/%d", chain.Head.Checkpoint), object{"hash": chain.Head.Hash.String()}, 200},
		"exportAudit":             {"GET", "/api/v1/audit/events?since=2026-01-01T00:00:00Z", nil, 200},
		"listRetention":           {"GET", "/api/v1/retention", nil, 200},
		"putRetention":            {"PUT", "/api/v1/retention/events", object{"period": "400d", "action": "report"}, 200},
		"putToolRule":             {"PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{"/to"}, "retry": object{"base": "2s"}}, 200},
		"getGuide":                {"GET", "/api/v1/guide?q=read", nil, 200},
		"listNotes":               {"GET", "/api/v1/notes?limit=2", nil, 200},
		"listBucketNames":         {"GET", "/api/v1/bucket-names", nil, 200},
		"listBuckets":             {"GET", "/api/v1/buckets", nil, 200},
		"getBucket":               {"GET", "/api/v1/buckets/default", nil, 200},
		"putBucket":               {"PUT", "/api/v1/buckets/" + src, object{"rate": object{"limit": 10, "per": "1m"}}, 200},
		"retireBucket":            {"DELETE", "/api/v1/buckets/" + src + ".old", nil, 204},
		"reopenBucket":            {"POST", "/api/v1/buckets/default/reopen", nil, 200},
		"listQuietHours":          {"GET", "/api/v1/quiet-hours", nil, 200},
		"previewQuietHours":       {"POST", "/api/v1/quiet-hours/preview?scope=bucket&subject=default&from=2026-03-28T00:00:00Z", night(), 200},
		"putQuietHours":           {"PUT", nightPath("tenant", ""), night(), 200},
		"deleteQuietHours":        {"DELETE", "/api/v1/quiet-hours/bucket?subject=" + src + ".old", nil, 204},
		"listDoNotContact":        {"GET", "/api/v1/do-not-contact?kind=email&prefix=A&expired=true&limit=2", nil, 200},
		"addDoNotContact":         {"POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "a@example.org"}}}, 200},
		"checkDoNotContact":       {"POST", "/api/v1/do-not-contact/check", object{"value": "Ana <A@example.org>"}, 200},
		"removeDoNotContact":      {"POST", "/api/v1/do-not-contact/remove", object{"entries": []object{{"value": "b@example.org"}}}, 200},
		"importDoNotContact":      {"POST", "/api/v1/do-not-contact/import?dry_run=true", csv("value\nc@example.org\n"), 200},
		"exportDoNotContact":      {"GET", "/api/v1/do-not-contact/export", nil, 200},
		"listEmployees":           {"GET", "/api/v1/employees", nil, 200},
		"putEmployee":             {"PUT", "/api/v1/employees/default", object{"trust": "high"}, 200},
		"deleteEmployee":          {"DELETE", "/api/v1/employees/" + employee, nil, 204},
		"listPauses":              {"GET", "/api/v1/pauses?active=true&limit=2", nil, 200},
		"pause":                   {"POST", "/api/v1/pauses", object{"scope": "source", "subject": "mail", "reason": "a test"}, 201},
		"resume":                  {"DELETE", "/api/v1/pauses/" + paused(f, src+".old") + "?reason=done", nil, 204},
		"listBreakers":            {"GET", "/api/v1/breakers", nil, 200},
		"forecastPause":           {"GET", "/api/v1/pauses/forecast?scope=tool&subject=mail:read", nil, 200},
		"listWorkers":             {"GET", "/api/v1/workers", nil, 200},
		"getActivity":             {"GET", "/api/v1/activity?since=2026-01-02T03:04:05Z&until=2026-01-02T04:04:05Z&step=5m", nil, 200},
		"listAuditLog":            {"GET", "/api/v1/audit/log?kind=configured&actor=a&subject=s&action_id=" + employee + "&since=2026-01-02T03:04:05Z&until=2036-01-02T03:04:05Z&limit=5&cursor=99999999-1", nil, 200},
		"resetBreaker":            {"POST", "/api/v1/breakers/mail/reset", nil, 200},
		"getSettings":             {"GET", "/api/v1/settings", nil, 200},
		"putSettings":             {"PUT", "/api/v1/settings", object{"timezone": "Europe/Berlin"}, 200},
		"getLimits":               {"GET", "/api/v1/limits", nil, 200},
		"putLimits":               {"PUT", "/api/v1/limits?dry_run=true", object{"buckets": []object{{"name": "x"}}}, 200},
		"listTriageAccounts":      {"GET", "/api/v1/triage/accounts", nil, 200},
		"getTriageAccount":        {"GET", "/api/v1/triage/accounts/" + box, nil, 200},
		"putTriageAccount":        {"PUT", "/api/v1/triage/accounts/" + src, object{"kind": "maildir", "connection": object{"path": "/srv/mail"}, "proposals": object{"source": "mail", "account": "ann"}}, 200},
		"deleteTriageAccount":     {"DELETE", "/api/v1/triage/accounts/" + src + ".old", nil, 204},
		"previewTriageSettings":   {"POST", "/api/v1/triage/accounts/" + box + "/preview", object{"settings": object{"levels": object{"default": "L1"}}, "since": "2026-01-02T03:04:05Z", "travelling": true}, 200},
		"exportTriageAccount":     {"GET", "/api/v1/triage/accounts/" + box + "/export?limit=1", nil, 200},
		"purgeTriageAccount":      {"POST", "/api/v1/triage/accounts/" + box + "/purge", object{"dry_run": true}, 200},
		"getTriageBrief":          {"GET", "/api/v1/triage/accounts/" + box + "/brief?kind=evening&since=2026-01-02T03:04:05Z&mail=true", nil, 200},
		"prepareTriageMeeting":    {"GET", "/api/v1/triage/accounts/" + box + "/meeting?at=2026-01-02T03:04:05Z&mail=true", nil, 404},
		"listTriageFollowUps":     {"GET", "/api/v1/triage/accounts/" + box + "/follow-ups?closed=true", nil, 200},
		"changeTriageFollowUp":    {"POST", "/api/v1/triage/messages/" + mail + "/follow-up", object{"done": true}, 204},
		"listTriageLabels":        {"GET", "/api/v1/triage/accounts/" + box + "/labels", nil, 200},
		"tryTriageLabel":          {"POST", "/api/v1/triage/accounts/" + box + "/labels/bills/try", object{"words": []string{"invoice"}, "for": []string{mail}}, 200},
		"putTriageLabel":          {"PUT", "/api/v1/triage/accounts/" + box + "/labels/bills", object{"description": "invoices of a supplier", "untried": true}, 200},
		"deleteTriageLabel":       {"DELETE", "/api/v1/triage/accounts/" + box + "/labels/old", nil, 204},
		"judgeTriageLabel":        {"PUT", "/api/v1/triage/messages/" + mail + "/labels/kept", object{"holds": true}, 200},
		"listTriageRuns":          {"GET", "/api/v1/triage/accounts/" + box + "/runs?limit=2", nil, 200},
		"askTriageRun":            {"POST", "/api/v1/triage/accounts/" + box + "/runs", nil, 200},
		"listTriageSetAside":      {"GET", "/api/v1/triage/accounts/" + box + "/set-aside", nil, 200},
		"retryTriageSetAside":     {"POST", "/api/v1/triage/accounts/" + box + "/set-aside", nil, 200},
		"getTriageStatus":         {"GET", "/api/v1/triage/status?account=" + box, nil, 200},
		"listTriageMessages":      {"GET", "/api/v1/triage/messages?account=" + box + "&bucket=urgent&category=primary&cohort=default&question=false&expired=true&label=kept&from=example.org&since=2026-01-01T00:00:00Z&limit=2", nil, 200},
		"getTriageMessage":        {"GET", "/api/v1/triage/messages/" + mail, nil, 200},
		"explainTriageMessage":    {"GET", "/api/v1/triage/messages/" + mail + "/why", nil, 200},
		"listTriageActions":       {"GET", "/api/v1/triage/actions?account=" + box, nil, 200},
		"listTriageTags":          {"GET", "/api/v1/triage/tags?account=" + box + "&message_id=" + mail + "&action=create-reminder&state=any&limit=2", nil, 200},
		"setTriageTag":            {"PUT", "/api/v1/triage/messages/" + mail + "/tags/add-contact", nil, 200},
		"removeTriageTag":         {"DELETE", "/api/v1/triage/messages/" + mail + "/tags/create-reminder", nil, 204},
		"listTriageTries":         {"GET", "/api/v1/triage/tries?account=" + box + "&message_id=" + mail + "&action=create-reminder&status=failed&limit=2", nil, 200},
		"retryTriageTag":          {"POST", "/api/v1/triage/tries/" + try + "/retry", nil, 200},
		"listAvailableActions":    {"GET", "/api/actions/available?account=" + box, nil, 200},
		"listActionLog":           {"GET", "/api/actions/log?account=" + box + "&limit=2", nil, 200},
		"retryAction":             {"POST", "/api/actions/retry/" + try, nil, 200},
		"listTriageCorrections":   {"GET", "/api/v1/triage/messages/" + mail + "/corrections", nil, 200},
		"correctTriageMessage":    {"POST", "/api/v1/triage/messages/" + mail + "/corrections", object{"head": "category", "label": "receipts"}, 201},
		"listTriageTexts":         {"GET", "/api/v1/triage/messages/" + mail + "/texts", nil, 200},
		"undoTriage":              {"POST", "/api/v1/triage/undo", object{"action_ids": []string{undoable}, "dry_run": true}, 200},
		"askTriageText":           {"POST", "/api/v1/triage/messages/" + mail + "/texts", object{"kind": "draft", "note": "yes"}, 201},
		"retractTriageCorrection": {"DELETE", fmt.Sprintf("/api/v1/triage/messages/%s/corrections/%d", mail, correction.Number), nil, 204},
		"getOverview":             {"GET", "/api/v1/overview", nil, 200},
		"getOpenAPI":              {"GET", "/api/v1/openapi.yaml", nil, 200},
		"getOpenAPIAsJSON":        {"GET", "/api/v1/openapi.json", nil, 200},
		"getHealth":               {"GET", "/healthz", nil, 200},
		"getReadiness":            {"GET", "/readyz", nil, 200},
	}
}

// dead makes three dead letters of the agent.
func (f *tenantFixture) dead() []string {
	ids := []string{f.agent.propose("read"), f.agent.propose("read"), f.agent.propose("read")}
	f.settle(envelope.StatusFailed, outbox.Refused)
	return ids
}

// unresolved makes a dead letter of unknown outcome.
func (f *tenantFixture) unresolved() string {
	id := f.agent.propose("read")
	f.settle(envelope.StatusUnknown, outbox.Unknown)
	return id
}

// digest returns the digest of a tool in the list.
func (f *tenantFixture) digest(name string) string {
	var list struct {
		Items []struct{ Tool, Digest string }
	}
	f.agent.send("GET", "/api/v1/tools", nil).wants(f.t, 200).into(f.t, &list)
	for _, it := range list.Items {
		if it.Tool == "mail:"+name {
			return it.Digest
		}
	}
	f.t.Fatalf("no tool %s", name)
	return ""
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
	res, err := direct().Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode
}

func TestAnotherTenantReachesNothing(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	one, two := h.tenant("one"), h.tenant("two")
	visits := one.visits()
	mine := one.operator.send("GET", visits["getAction"].path, nil).wants(t, 200).body

	for _, operation := range []string{"getAction", "listAttempts", "waitForAction", "approveAction", "denyAction", "undoAction", "revertAction", "resendDelivery", "getProposal", "getDeadLetter", "resolveDeadLetter", "revokeToken", "deleteSource", "deleteMode",
		"deleteRule", "revokeGrant", "deleteSessionMode", "deletePreference"} {
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
	for _, list := range []string{"/api/v1/actions", "/api/v1/dead-letters", "/api/v1/dead-letters/export", "/api/v1/reconcile-rules"} {
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
	f := newFixture(t).tenant("sessions")
	id := f.agent.propose("write")

	for _, v := range []visit{
		{"GET", path(id), nil, 404}, {"GET", path(id, "/attempts"), nil, 404},
		{"GET", path(id, "/wait?wait=1ms"), nil, 404}, {"POST", path(id, "/undo"), nil, 404},
	} {
		f.other.send(v.method, v.path, v.body).wants(t, v.want)
		if v.method == "GET" {
			f.agent.send(v.method, v.path, v.body).wants(t, 200)
		}
	}
	for query, want := range map[string]int{"": 0, "?session_id=s-one": 0, "?session_id=s-two": 0} {
		var page struct{ Items []shown }
		if f.other.send("GET", "/api/v1/actions"+query, nil).wants(t, 200).into(t, &page); len(page.Items) != want {
			t.Errorf("list%s shows %d actions of another session", query, len(page.Items))
		}
	}
	f.other.send("POST", "/api/v1/actions", object{"type": "mcp.exec", "external_id": "x", "session_id": "s-one", "tool": object{"name": "read"}, "args": object{}}).wants(t, 400)
}

func TestServesItsOwnContract(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	anyone := &client{fixture: h}

	if got := anyone.send("GET", "/api/v1/openapi.yaml", nil).wants(t, 200).body; !bytes.Equal(got, schemas.OpenAPI()) {
		t.Error("openapi.yaml is another one than the embedded")
	}
	anyone.send("GET", "/metrics", nil).wants(t, 404)
	anyone.send("GET", "/readyz", nil).wants(t, 200)
}

func TestReadinessNeedsTheSchema(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	if _, err := h.db.Exec(t.Context(), "UPDATE goose_db_version SET is_applied = false"); err != nil {
		t.Fatal(err)
	}

	a := (&client{fixture: h}).send("GET", "/readyz", nil).wants(t, 503)

	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
}

func TestShownDigestIsAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("digest")
	other := base64.StdEncoding.EncodeToString([]byte("another definition"))

	f.admin.send("POST", "/api/v1/tools/mail:read/accept", object{"digest": f.digest("read")}).wants(t, 200)
	f.admin.send("POST", "/api/v1/tools/mail:read/accept", object{"digest": other}).wants(t, 409)
	f.admin.send("POST", "/api/v1/tools/mail:read/accept", object{"digest": "==="}).wants(t, 400)
}
