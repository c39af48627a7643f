package rest_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// pendingAction is an action as an approver sees it.
type pendingAction struct {
	Envelope struct {
		ActionID string `json:"action_id"`
		Approval string
		Args     json.RawMessage
	}
	Phase    string
	Decision struct {
		By, Note, ETag string
		Needed         int `json:"approvals_needed"`
		Given          int `json:"approvals_given"`
		Edited         *struct {
			By           string
			ProposedArgs json.RawMessage `json:"proposed_args"`
			Edits        []struct {
				By, Note string
				Pointers []string
			}
		}
	}
}

func (c *client) pendingAction(id string) (j pendingAction) {
	c.t.Helper()
	c.send("GET", path(id), nil).wants(c.t, 200).into(c.t, &j)
	return j
}

func (f *tenantFixture) mail(args object) string {
	f.t.Helper()
	return f.agent.send("POST", "/api/v1/actions", proposal("write", args)).wants(f.t, 201).action(f.t).Envelope.ActionID
}

func TestApproveNeedsTheCurrentETag(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("seen")
	id := f.mail(object{"to": marker, "n": 1})
	before := f.operator.pendingAction(id)

	f.admin.send("POST", path(id, "/edit"), object{"args": object{"to": marker, "n": 2}, "note": "two"}, ifMatch(before.Decision.ETag)...).wants(t, 200)

	f.operator.send("POST", path(id, "/approve"), nil, ifMatch(before.Decision.ETag)...).wants(t, 412)
	f.operator.send("POST", path(id, "/approve"), nil).wants(t, 428)
	f.operator.send("POST", path(id, "/edit"), object{"args": object{"n": 3}}, ifMatch(before.Decision.ETag)...).wants(t, 412)
	after := f.agent.pendingAction(id)
	e := after.Decision.Edited
	if e == nil || e.By != f.admin.named("admin") || len(e.Edits) != 1 || !slices.Equal(e.Edits[0].Pointers, []string{"/n"}) || e.Edits[0].Note != "two" || !contains(e.ProposedArgs, `"n":1`) {
		t.Errorf("the agent sees the edit as %+v", e)
	}
	if !contains(after.Envelope.Args, `"n":2`) || after.Decision.ETag == before.Decision.ETag {
		t.Errorf("args %s, etag %s", after.Envelope.Args, after.Decision.ETag)
	}
	f.operator.send("POST", path(id, "/deny"), nil).wants(t, 428)
	f.operator.send("POST", path(id, "/deny"), nil, ifMatch(before.Decision.ETag)...).wants(t, 412)
	var refused struct {
		Items []struct{ Problem struct{ Status int } }
	}
	f.operator.send("POST", "/api/v1/actions/deny", object{"ids": []string{id}, "etags": object{id: before.Decision.ETag}}).wants(t, 200).into(t, &refused)
	if len(refused.Items) != 1 || refused.Items[0].Problem.Status != 412 {
		t.Errorf("a list with a stale etag = %+v, want a refusal with 412", refused.Items)
	}
	var done pendingAction
	f.operator.send("POST", path(id, "/approve"), nil, ifMatch(after.Decision.ETag)...).wants(t, 200).into(t, &done)
	if done.Phase != "approved" || done.Decision.ETag != "" || done.Decision.Given != 1 {
		t.Errorf("approved = %+v", done)
	}
}

func TestEditsAreHeldToTheSchema(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("typed")
	id := f.mail(object{"to": "a", "n": 1})
	for pointer, args := range map[string]object{"/args/n": {"n": marker}, "/args/cc": {"cc": marker}} {
		for _, how := range []string{"/edit", "/approve"} {
			p := f.operator.send("POST", path(id, how), object{"args": args}).wants(t, 400).problem(t)
			if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
				t.Errorf("%s with %v names %v, want %s", how, args, p.Errors, pointer)
			}
		}
	}
	f.operator.send("POST", path(id, "/edit"), object{}).wants(t, 400)
	if got := f.operator.pendingAction(id); got.Phase != "pending" || got.Decision.Edited != nil {
		t.Errorf("it is %s and was edited: %+v", got.Phase, got.Decision.Edited)
	}
}

func TestTwoPeopleOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("quorum")
	f.admin.send("PUT", "/api/v1/reviews/mail:write", object{"approvals": 2, "wait": "1h", "warn": "10m", "escalate": "30m"}).wants(t, 200)
	id := f.mail(object{})

	begun := time.Now()
	var first, second pendingAction
	f.operator.send("POST", path(id, "/approve?wait=1m"), object{"note": "by me"}).wants(t, 200).into(t, &first)
	if first.Phase != "pending" || first.Decision.Needed != 2 || first.Decision.Given != 1 || time.Since(begun) > 30*time.Second {
		t.Errorf("the first vote = %+v after %s", first, time.Since(begun))
	}
	f.operator.send("POST", path(id, "/approve"), nil).wants(t, 409)
	f.operator.send("POST", path(id, "/approve"), object{"always": object{}}).wants(t, 409)
	f.admin.send("POST", path(id, "/approve"), nil).wants(t, 200).into(t, &second)
	if second.Phase != "approved" || second.Decision.Given != 2 {
		t.Errorf("the second vote = %+v", second)
	}
	var votes struct {
		Items []struct {
			Round              int
			By, Decision, Note string
		}
	}
	f.operator.send("GET", path(id, "/votes"), nil).wants(t, 200).into(t, &votes)
	if len(votes.Items) != 2 || votes.Items[0].By != f.operator.named("operator") || votes.Items[0].Note != "by me" || votes.Items[1].Decision != string(envelope.DecisionGrant) {
		t.Errorf("votes = %+v", votes.Items)
	}
	f.agent.send("GET", path(id, "/votes"), nil).wants(t, 403)
}

func TestReviewsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("reviews")
	f.admin.send("PUT", "/api/v1/reviews/mail:*?risk=high", object{"approvals": 3, "wait": "1d", "escalate": "0s"}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/reviews/*", object{}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/reviews/mail", object{}).wants(t, 400)
	f.admin.send("PUT", "/api/v1/reviews/*?risk=danger", object{}).wants(t, 400)
	for _, body := range []object{{"approvals": 6}, {"wait": "31d"}, {"wait": "1m", "warn": "2m"}, {"wait": "1.5s"}} {
		f.admin.send("PUT", "/api/v1/reviews/*", body).wants(t, 400)
	}
	var list struct {
		Items []struct {
			Tool, Risk, Wait, Escalate string
			Approvals                  int
			UpdatedBy                  string `json:"updated_by"`
		}
	}
	f.operator.send("GET", "/api/v1/reviews", nil).wants(t, 200).into(t, &list)
	if len(list.Items) != 2 || list.Items[0].Tool != "*" || list.Items[1].Approvals != 3 || list.Items[1].Wait != "1d" || list.Items[1].Escalate != "0s" || list.Items[1].UpdatedBy != f.admin.named("admin") {
		t.Errorf("reviews = %+v", list.Items)
	}
	f.admin.send("DELETE", "/api/v1/reviews/mail:*?risk=high", nil).wants(t, 204)
	f.admin.send("DELETE", "/api/v1/reviews/mail:*?risk=high", nil).wants(t, 404)
}

func TestTheInboxOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("inbox")
	lost := f.unresolved()
	first, second := f.mail(object{"n": 1}), f.mail(object{"n": 2})
	type page struct {
		Items []struct {
			Kind, Tool, ETag, Policy string
			ActionID                 string `json:"action_id"`
		}
		NextCursor *string `json:"next_cursor"`
	}
	var got page

	f.operator.send("GET", "/api/v1/inbox?limit=2", nil).wants(t, 200).into(t, &got)
	if len(got.Items) != 2 || got.NextCursor == nil || got.Items[0].ActionID != lost || got.Items[0].Kind != "unknown" || got.Items[1].ActionID != first || got.Items[1].Policy == "" {
		t.Fatalf("the first page = %+v", got)
	}
	if got.Items[1].ETag != f.operator.pendingAction(first).Decision.ETag {
		t.Errorf("the inbox has another etag than the action: %s", got.Items[1].ETag)
	}
	next := *got.NextCursor
	got = page{}
	f.operator.send("GET", "/api/v1/inbox?cursor="+next, nil).wants(t, 200).into(t, &got)
	if len(got.Items) != 1 || got.NextCursor != nil || got.Items[0].ActionID != second {
		t.Errorf("the last page = %+v", got)
	}
	f.agent.send("GET", "/api/v1/inbox", nil).wants(t, 403)
}

func TestBulkDecisionsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("bulk")
	good, gone, own, changed := f.mail(object{}), f.mail(object{}), f.operator.propose("write"), f.mail(object{})
	f.operator.send("POST", path(gone, "/deny"), nil).wants(t, 200)
	var done struct {
		Items []struct {
			ActionID string `json:"action_id"`
			Result   string
			Problem  *shownProblem
		}
	}

	f.operator.send("POST", "/api/v1/actions/approve", object{
		"ids": []string{good, gone, own, changed}, "note": "all", "etags": object{changed: "AAAAAAAAAAAAAAAAAAAAAAAA", good: f.operator.pendingAction(good).Decision.ETag},
	}).wants(t, 200).into(t, &done)

	for i, want := range []struct {
		id, result string
		status     int
	}{{good, "approved", 0}, {gone, "refused", 409}, {own, "refused", 403}, {changed, "refused", 412}} {
		got := done.Items[i]
		if got.ActionID != want.id || got.Result != want.result || (got.Problem == nil) != (want.status == 0) || got.Problem != nil && got.Problem.Status != want.status {
			t.Errorf("item %d = %+v, want %+v", i, got, want)
		}
	}
	f.operator.send("POST", "/api/v1/actions/deny", object{"ids": []string{changed}, "note": "no"}).wants(t, 200).into(t, &done)
	if got := f.agent.pendingAction(changed); got.Phase != "denied" || got.Decision.Note != "no" {
		t.Errorf("denied = %+v", got)
	}
	f.operator.send("POST", "/api/v1/actions/approve", object{"ids": []string{}}).wants(t, 400)
}

func TestAlwaysOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("always")
	id := f.mail(object{"to": "ana", "n": 1})

	a := f.operator.send("POST", path(id, "/approve"), object{"always": object{"expires_in": "2h", "pins": "all"}}).wants(t, 200)

	if a.header.Get("Countersign-Grant") == "" {
		t.Errorf("no grant is named: %v", a.header)
	}
	same := f.agent.send("POST", "/api/v1/actions", proposal("write", object{"n": 1, "to": "ana"})).wants(t, 201).action(t)
	more := f.agent.send("POST", "/api/v1/actions", proposal("write", object{"to": "ana", "n": 2})).wants(t, 201).action(t)
	theirs := f.other.send("POST", "/api/v1/actions", proposal("write", object{"n": 1, "to": "ana"})).wants(t, 201).action(t)
	if same.Policy.Mode != "allow" || more.Policy.Mode != "require_approval" || theirs.Policy.Mode != "require_approval" {
		t.Errorf("modes are %s, %s and %s, want only the same of the same session allowed", same.Policy.Mode, more.Policy.Mode, theirs.Policy.Mode)
	}
	f.operator.send("POST", path(more.Envelope.ActionID, "/approve"), object{"always": object{"pins": []string{"/cc"}}}).wants(t, 400)
	f.operator.send("POST", path(more.Envelope.ActionID, "/approve"), object{"always": object{"expires_in": "91d", "pins": "all"}}).wants(t, 400)
	if got := f.operator.pendingAction(more.Envelope.ActionID); got.Phase != "pending" {
		t.Errorf("it is %s after approvals that were refused", got.Phase)
	}
}

// TestAlwaysCoversOnlyTheCall: a grant made by any form of the request covers only
// the call and the arguments named as loose.
func TestAlwaysCoversOnlyTheCall(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("exactly")
	f.admin.send("PUT", "/api/v1/policy/modes/mail:danger", object{"mode": "require_approval"}).wants(t, 200)
	call := object{"to": []any{"ana"}, "n": 1, "o": object{"a": 1, "b": 2}}
	others := []object{
		{"to": []any{"ana", "bo"}, "n": 1, "o": object{"a": 1, "b": 2}},
		{"to": []any{"ana"}, "n": 1, "o": object{"a": 1, "b": 2}, "cc": "bo"},
		{"to": []any{"ana"}, "n": 99999, "o": object{"a": 1, "b": 2}},
		{"to": []any{"ana"}, "n": 1, "o": object{"a": 1, "b": 2, "c": 3}},
		{"to": []any{"ana"}, "n": 1},
	}
	for name, tt := range map[string]struct {
		always object
		passes int // the one of others that passes, or -1
	}{
		"by default":          {object{}, -1},
		"with pins of leaves": {object{"pins": []string{"/to/0", "/n", "/o/a", "/o/b"}}, -1},
		"with n loose":        {object{"loose": []string{"/n"}}, 2},
		"with o/a loose":      {object{"loose": []string{"/o/a"}}, -1},
	} {
		agent := f.holder(identity.Grant{Name: "agent " + name, Role: identity.RoleAgent, Session: "s " + name})
		id := agent.send("POST", "/api/v1/actions", proposal("danger", call)).wants(t, 201).action(t).Envelope.ActionID
		preview := struct {
			Count, Compared int
			Complete        bool
			Calls           []struct{ ActionID string }
			Loose           []string
		}{}
		waits := agent.send("POST", "/api/v1/actions", proposal("danger", call)).wants(t, 201).action(t)
		f.operator.send("POST", path(id, "/always"), tt.always).wants(t, 200).into(t, &preview)
		if preview.Count != 1 || len(preview.Calls) != 1 || !preview.Complete || preview.Compared < 2 {
			t.Errorf("%s: the preview is %+v, want the call that waits", name, preview)
		}
		if got := f.operator.pendingAction(id); got.Phase != "pending" || waits.Phase != "pending" {
			t.Errorf("%s: a preview left it %s", name, got.Phase)
		}
		f.operator.send("POST", path(id, "/approve"), object{"always": tt.always}).wants(t, 200)
		if phase := agent.phase("danger", call); phase != "approved" {
			t.Errorf("%s: the call itself is %s, want approved", name, phase)
		}
		for i, other := range others {
			if phase := agent.phase("danger", other); (phase == "approved") != (i == tt.passes) {
				t.Errorf("%s: %v is %s", name, other, phase)
			}
		}
	}
}

// TestPreviewsOfGrantsAreRefusedAsGrantsAre has the same answer for both.
func TestPreviewsOfGrantsAreRefusedAsGrantsAre(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("previews")
	id := f.mail(object{"to": "ana"})
	own := f.operator.propose("write")
	for name, tt := range map[string]struct {
		id   string
		body object
		want int
	}{
		"a wide one":     {id, object{"loose": []string{""}}, 403},
		"for everybody":  {id, object{"scope": "tenant"}, 403},
		"nothing there":  {id, object{"loose": []string{"/cc"}}, 400},
		"of their own":   {own, object{}, 403},
		"for long":       {id, object{"expires_in": "91d"}, 400},
		"loose and pins": {id, object{"loose": []string{"/to"}, "pins": "all"}, 400},
	} {
		shown := f.operator.send("POST", path(tt.id, "/always"), tt.body)
		made := f.operator.send("POST", path(tt.id, "/approve"), object{"always": tt.body})
		if shown.status != tt.want || made.status != tt.want {
			t.Errorf("%s: the preview is %d %s, and approving %d, want %d", name, shown.status, shown.body, made.status, tt.want)
		}
	}
	decides := f.holder(identity.Grant{Name: "decides", Role: identity.RoleOperator, Scopes: []identity.Scope{identity.ApprovalsDecide}})
	f.mail(object{"to": "ana"})
	var preview struct {
		Count int
		Calls []any
	}
	decides.send("POST", path(id, "/always"), object{}).wants(t, 200).into(t, &preview)
	if preview.Count != 1 || len(preview.Calls) != 0 {
		t.Errorf("somebody who may not read actions sees %+v", preview)
	}
	f.agent.send("POST", path(id, "/always"), object{}).wants(t, 403)
}

// TestTokensOfAPersonCountOnce: who holds several proposes, votes and edits
// as one.
func TestTokensOfAPersonCountOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("persons")
	f.admin.send("PUT", "/api/v1/reviews/*", object{"approvals": 2}).wants(t, 200)
	second := f.holder(identity.Grant{Name: "operator's other", Role: identity.RoleOperator})
	var person string
	if err := f.db.QueryRow(t.Context(), `
		WITH o AS (INSERT INTO operators (tenant_id, operator_id, name, role_set) VALUES ($1, gen_random_uuid(), 'ada', 'operator') RETURNING operator_id)
		SELECT operator_id::text FROM o`, f.id.String()).Scan(&person); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.Exec(t.Context(), "UPDATE api_tokens SET operator_id = $1 WHERE token_id IN ($2, $3)", person, f.operator.id.String(), second.id.String()); err != nil {
		t.Fatal(err)
	}
	theirs, own := f.mail(object{}), f.operator.propose("write")

	f.operator.send("POST", path(theirs, "/approve"), nil).wants(t, 200)
	f.operator.send("POST", path(own, "/approve"), nil).wants(t, 403)

	second.send("POST", path(theirs, "/approve"), nil).wants(t, 409)
	second.send("POST", path(own, "/approve"), nil).wants(t, 403)
	second.send("POST", path(own, "/edit"), object{"args": object{"n": 1}}).wants(t, 403)
	f.admin.send("POST", path(theirs, "/approve"), nil).wants(t, 200)
}
