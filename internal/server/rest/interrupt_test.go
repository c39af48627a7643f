package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// interrupts lists the inbox as LangGraph's Agent Inbox does.
func (c *client) interrupts(query string) map[string]wire.Interrupt {
	c.t.Helper()
	var page wire.Page[wire.Interrupt]
	c.send("GET", "/api/v1/inbox/interrupts?"+query, nil).wants(c.t, 200).into(c.t, &page)
	found := make(map[string]wire.Interrupt)
	for _, it := range page.Items {
		found[it.ActionID.String()] = it
	}
	return found
}

// asAgentInbox returns the arguments of an interrupt as Agent Inbox returns them:
// every value is a text.
func asAgentInbox(t *testing.T, it wire.Interrupt) object {
	t.Helper()
	var args map[string]json.RawMessage
	if err := json.Unmarshal(it.Request.Args, &args); err != nil {
		t.Fatal(err)
	}
	texts := object{}
	for name, value := range args {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		texts[name] = text
	}
	return object{"action": it.Request.Action, "args": texts}
}

// respond sends a response, as Agent Inbox does in a list of one.
func (c *client) respond(it wire.Interrupt, kind string, args any) answer {
	c.t.Helper()
	var header []string
	if it.ETag != "" {
		header = ifMatch(it.ETag)
	}
	return c.send("POST", path(it.ActionID.String(), "/respond"), []object{{"type": kind, "args": args}}, header...)
}

// TestInterruptsHaveTheShapeOfAgentInbox compares an interrupt with the documented
// HumanInterrupt of LangGraph, to the byte.
func TestInterruptsHaveTheShapeOfAgentInbox(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	t.Parallel()
	f := newFixture(t).tenant("interrupts")
	raw := `{"type":"mcp.exec","external_id":"big","tool":{"source":"mail","name":"write"},"args":{"to":"[x](https://evil.example) www.evil.example","n":9007199254740993}}`
	id := f.agent.send("POST", "/api/v1/actions", raw).wants(t, 201).action(t).Envelope.ActionID

	var page struct {
		Items []struct {
			ActionID string          `json:"action_id"`
			ETag     string          `json:"etag"`
			Kind     string          `json:"kind"`
			Request  json.RawMessage `json:"action_request"`
			Config   json.RawMessage `json:"config"`
			Text     string          `json:"description"`
		}
		Next *string `json:"next_cursor"`
	}
	f.operator.send("GET", "/api/v1/inbox/interrupts", nil).wants(t, 200).into(t, &page)
	it := page.Items[0]
	if len(page.Items) != 1 || it.ActionID != id || it.ETag == "" || it.Kind != "approval" || page.Next != nil {
		t.Fatalf("interrupts = %+v", page)
	}
	if want := `{"action":"mail:write","args":{"n":9007199254740993,"to":"[x](https://evil.example) www.evil.example"}}`; string(it.Request) != want {
		t.Errorf("action_request = %s, want %s", it.Request, want)
	}
	if want := `{"allow_ignore":true,"allow_respond":true,"allow_edit":true,"allow_accept":true}`; string(it.Config) != want {
		t.Errorf("config = %s, want %s", it.Config, want)
	}
	if !strings.HasPrefix(it.Text, `mail\:write waits for approval.`+"\n\n") || !strings.Contains(it.Text, "\n\nRisk: medium.\n\n") || strings.Contains(it.Text, "evil") {
		t.Errorf("description = %s", it.Text)
	}

	// A person without rights to decide gets no offers, a viewer redacted arguments,
	// and an agent nothing.
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	seen := viewer.interrupts("")[id]
	if hidden := viewer.interrupts("")[f.mail(object{"to": secret})]; seen.Config != (wire.InterruptConfig{}) || hidden.Config != seen.Config || strings.Contains(string(hidden.Request.Args), secret) {
		t.Errorf("a viewer gets %+v %s", seen.Config, hidden.Request.Args)
	}
	viewer.respond(seen, "accept", nil).wants(t, 403)
	f.agent.send("GET", "/api/v1/inbox/interrupts", nil).wants(t, 403)
	f.agent.respond(seen, "accept", nil).wants(t, 403)
	own := f.operator.send("POST", "/api/v1/actions", proposal("write", object{"n": 1})).wants(t, 201).action(t).Envelope.ActionID
	mine := f.operator.interrupts("")[own]
	if mine.Config != (wire.InterruptConfig{}) || !strings.Contains(mine.Description, `own\_proposal`) {
		t.Errorf("a proposal of one's own = %+v %s", mine.Config, mine.Description)
	}
	f.operator.respond(mine, "accept", nil).refused(t, 403, "own_proposal")
}

// TestResponsesOfAgentInbox goes through every type of response, with the values as
// texts, and checks the call.
func TestResponsesOfAgentInbox(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("responses")
	const big = 9007199254740993
	for name, test := range map[string]struct {
		kind  string
		args  func(it wire.Interrupt) any
		phase string
		sent  string // the arguments afterwards
		note  string
	}{
		"accept":                           {"accept", func(wire.Interrupt) any { return nil }, "approved", `{"n":9007199254740993,"to":"5"}`, ""},
		"accept with the request as texts": {"accept", func(it wire.Interrupt) any { return asAgentInbox(t, it) }, "approved", `{"n":9007199254740993,"to":"5"}`, ""},
		"accept with the request":          {"accept", func(it wire.Interrupt) any { return it.Request }, "approved", `{"n":9007199254740993,"to":"5"}`, ""},
		"edit nothing":                     {"edit", func(it wire.Interrupt) any { return asAgentInbox(t, it) }, "approved", `{"n":9007199254740993,"to":"5"}`, ""},
		"edit": {"edit", func(it wire.Interrupt) any {
			return object{"action": it.Request.Action, "args": object{"n": " 9007199254740995 ", "to": "6"}}
		}, "approved", `{"n":9007199254740995,"to":"6"}`, ""},
		"edit and remove": {"edit", func(it wire.Interrupt) any { return object{"action": it.Request.Action, "args": object{"n": 2}} }, "approved", `{"n":2}`, ""},
		"edit to a text like JSON": {"edit", func(it wire.Interrupt) any {
			return object{"action": it.Request.Action, "args": object{"n": "7", "to": `{"a":1}`}}
		}, "approved", `{"n":7,"to":"{\"a\":1}"}`, ""},
		"edit to a whole number": {"edit", func(it wire.Interrupt) any { return object{"action": it.Request.Action, "args": object{"n": "3.0"}} }, "approved", `{"n":3}`, ""},
		"response":               {"response", func(wire.Interrupt) any { return "ask again in May" }, "denied", `{"n":9007199254740993,"to":"5"}`, "ask again in May"},
		"ignore":                 {"ignore", func(wire.Interrupt) any { return nil }, "denied", `{"n":9007199254740993,"to":"5"}`, ""},
	} {
		id := f.mail(object{"n": json.Number(fmt.Sprint(big)), "to": "5"})
		it := f.operator.interrupts("")[id]

		var done struct {
			Phase    string
			Envelope struct {
				ActionID string `json:"action_id"`
				Args     json.RawMessage
			}
			Decision struct{ Note string }
		}
		f.operator.respond(it, test.kind, test.args(it)).wants(t, 200).into(t, &done)
		if done.Phase != test.phase || string(done.Envelope.Args) != test.sent || done.Decision.Note != test.note || done.Envelope.ActionID != id {
			t.Errorf("%s: %s %s %q, want %s %s %q", name, done.Phase, done.Envelope.Args, done.Decision.Note, test.phase, test.sent, test.note)
		}
		f.operator.respond(it, test.kind, test.args(it)).refused(t, 409, "decided")
	}
}

// TestRefusedResponsesOfAgentInbox: each error names the path in the response, and
// nothing is decided.
func TestRefusedResponsesOfAgentInbox(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("norespond")
	id := f.mail(object{"n": json.Number("9007199254740993"), "to": "5"})
	it := f.operator.interrupts("")[id]
	edit := func(args object) object { return object{"action": "mail:write", "args": args} }
	for name, test := range map[string]struct {
		kind    string
		args    any
		pointer string
	}{
		"another type":                  {"approve", nil, "/0/type"},
		"an edit without arguments":     {"edit", nil, "/0/args"},
		"a response without a text":     {"response", nil, "/0/args"},
		"a response with arguments":     {"response", edit(object{"n": 1}), "/0/args"},
		"an edit that is a text":        {"edit", "yes", "/0/args"},
		"an ignored one with a text":    {"ignore", "yes", "/0/args"},
		"another action":                {"edit", object{"action": "mail:danger", "args": object{"n": 1}}, "/0/args/action"},
		"no action":                     {"edit", object{"args": object{"n": 1}}, "/0/args/action"},
		"no number":                     {"edit", edit(object{"n": marker}), "/0/args/args/n"},
		"a number with a fraction":      {"edit", edit(object{"n": "1.5"}), "/0/args/args/n"},
		"a list":                        {"edit", edit(object{"n": "[1]"}), "/0/args/args/n"},
		"an unknown argument":           {"edit", edit(object{"n": 1, "cc": marker}), "/0/args/args/cc"},
		"a number for a text":           {"edit", edit(object{"to": 5}), "/0/args/args/to"},
		"lost digits":                   {"edit", edit(object{"n": json.Number("9007199254740992"), "to": "6"}), "/0/args/args/n"},
		"lost digits in a text":         {"edit", edit(object{"n": "9007199254740992", "to": "6"}), "/0/args/args/n"},
		"an acceptance of lost digits":  {"accept", edit(object{"n": json.Number("9007199254740992"), "to": "5"}), "/0/args/args/n"},
		"an acceptance of another text": {"accept", edit(object{"n": json.Number("9007199254740993"), "to": "6"}), "/0/args/args/to"},
		"an acceptance of a part":       {"accept", edit(object{"n": json.Number("9007199254740993")}), "/0/args/args/to"},
		"an acceptance of more":         {"accept", edit(object{"n": json.Number("9007199254740993"), "to": "5", "cc": "x"}), "/0/args/args/cc"},
		"a huge exponent":               {"edit", edit(object{"n": "1e999999999"}), "/0/args/args/n"},
	} {
		p := f.operator.respond(it, test.kind, test.args).wants(t, 400).problem(t)
		if !slices.ContainsFunc(p.Errors, func(e envelope.FieldError) bool { return e.Pointer == test.pointer }) {
			t.Errorf("%s: %v, want a pointer to %s", name, p.Errors, test.pointer)
		}
		// The same response without the list has the same pointer without its index.
		body := object{"type": test.kind, "args": test.args}
		p = f.operator.send("POST", path(id, "/respond"), body, ifMatch(it.ETag)...).wants(t, 400).problem(t)
		if want := strings.TrimPrefix(test.pointer, "/0"); !slices.ContainsFunc(p.Errors, func(e envelope.FieldError) bool { return e.Pointer == want }) {
			t.Errorf("%s, alone: %v, want a pointer to %s", name, p.Errors, want)
		}
	}
	two := []object{{"type": "ignore", "args": nil}, {"type": "accept", "args": nil}}
	f.operator.send("POST", path(id, "/respond"), two, ifMatch(it.ETag)...).wants(t, 400)
	f.operator.send("POST", path(id, "/respond"), []object{}, ifMatch(it.ETag)...).wants(t, 400)
	for _, field := range []string{`{"type":"ignore","args":null,"note":"x"}`, `{"args":null}`, `5`, `[5]`, `{"type":"response","args":""}`, `{"type":"response","args":"` + strings.Repeat("x", 501) + `"}`, `{"type":"edit","args":{"action":"mail:write","args":[]}}`, `{"type":"edit","args":{"action":"mail:write","args":{},"note":"x"}}`} {
		f.operator.send("POST", path(id, "/respond"), field, ifMatch(it.ETag)...).wants(t, 400)
	}
	twice := `[{"type":"edit","args":{"action":"mail:write","args":{"n":1,"n":2}}}]`
	f.operator.send("POST", path(id, "/respond"), twice, ifMatch(it.ETag)...).wants(t, 400)

	// A response is to the interrupt that was seen.
	f.operator.send("POST", path(id, "/respond"), object{"type": "accept", "args": nil}).wants(t, 428)
	f.operator.send("POST", path(id, "/respond"), object{"type": "ignore", "args": nil}).wants(t, 428)
	f.admin.send("POST", path(id, "/edit"), object{"args": object{"n": 1, "to": "6"}}).wants(t, 200)
	for kind, args := range map[string]any{"accept": nil, "ignore": nil, "response": "no", "edit": edit(object{"n": 2})} {
		f.operator.respond(it, kind, args).refused(t, 412, "stale")
	}
	if now := f.operator.pendingAction(id); now.Phase != "pending" {
		t.Errorf("it is %s, want pending", now.Phase)
	}
	f.operator.respond(f.operator.interrupts("")[id], "accept", nil).wants(t, 200)
}

// TestInterruptsOfTriage: mail is in descriptions for people with mail:read alone
// and cannot format them; the guards of mail hold for edits, and a notice is
// acknowledged by ignoring it.
func TestInterruptsOfTriage(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailinterrupts")
	message, poisoned := uuid.NewString(), uuid.NewString()
	f.mailbox("ann", message)
	f.message("ann", poisoned, time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	f.write("UPDATE triage_messages SET subject = $3, sender_name = $4 WHERE tenant_id = $1 AND message_id = $2::uuid", poisoned,
		"![x](https://evil.example/t.png)\n# Approve <b>this</b> www.evil.example \u202e", "a@evil.example")
	id, odd, did := f.waitingProposal(message, "a", object{"to": "x"}), f.waitingProposal(poisoned, "b", object{"n": 1}), f.waitingProposal(message, "c", object{"n": 2})
	f.write("UPDATE actions SET approval_state = 'auto', approval_expires_at = NULL WHERE tenant_id = $1 AND action_id = $2::uuid", did)
	f.write("INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at) VALUES ($1, $2::uuid, 1, 'sent', now())", did)

	all := f.operator.interrupts("kind=approval,notify")
	if got := all[id]; !strings.Contains(got.Description, `From: MAIL\-TEXT\-77b0 bob\@example\.org`) || !strings.Contains(got.Description, `It needs its owner soon\,`) || !strings.Contains(got.Description, `(bucket\:urgent\, act\:request\, veto\:starred)`) {
		t.Errorf("description = %s", got.Description)
	}
	if got := all[odd].Description; !strings.Contains(got, `Subject: \!\[x\]\(https\:\/\/evil\.example\/t\.png\) \# Approve \<b\>this\<\/b\> www\.evil\.example \\u\{202E\}`+"\n") || strings.Contains(got, "\u202e") {
		t.Errorf("a poisoned description = %s", got)
	}
	if got := all[did]; got.Kind != "notify" || got.ETag != "" || got.Config != (wire.InterruptConfig{Ignore: true}) {
		t.Errorf("a notice = %+v", got)
	}
	scopes := slices.DeleteFunc(slices.Clone(identity.Scopes()), func(s identity.Scope) bool { return s == identity.MailRead })
	scopeless := f.holder(identity.Grant{Name: "scopeless", Role: identity.RoleOperator, Scopes: scopes})
	if a := scopeless.send("GET", "/api/v1/inbox/interrupts?kind=approval,notify", nil).wants(t, 200); strings.Contains(string(a.body), mailMarker) || strings.Contains(string(a.body), "evil") {
		t.Errorf("mail is in the descriptions for a person without mail:read: %s", a.body)
	}

	p := f.operator.respond(all[id], "edit", object{"action": "mail:write", "args": object{"account": "bob"}}).wants(t, 400).problem(t)
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/0/args/args/account" {
		t.Errorf("another account = %v", p.Errors)
	}
	f.operator.respond(all[did], "accept", nil).wants(t, 428)
	f.operator.respond(all[did], "ignore", nil).wants(t, 200)
	f.operator.respond(all[did], "ignore", nil).wants(t, 428)
	if left := slices.Sorted(maps.Keys(f.operator.interrupts("kind=notify"))); len(left) != 0 {
		t.Errorf("notices left: %v", cmp.Diff([]string{}, left))
	}
}

// TestAnEditForAnotherPerson: under a rule that excludes editors from approving, an
// edit is stored and waits for another person.
func TestAnEditForAnotherPerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("editors")
	f.admin.send("PUT", "/api/v1/reviews/mail:write", object{"edits": "another"}).wants(t, 200)
	id := f.mail(object{"n": 1, "to": "a"})

	var done pendingAction
	edit := object{"action": "mail:write", "args": object{"n": "2", "to": "b"}}
	f.operator.respond(f.operator.interrupts("")[id], "edit", edit).wants(t, 200).into(t, &done)
	if done.Phase != "pending" || string(done.Envelope.Args) != `{"n":2,"to":"b"}` {
		t.Errorf("an edit = %s %s, want it to wait", done.Phase, done.Envelope.Args)
	}
	mine := f.operator.interrupts("")[id]
	if mine.Config != (wire.InterruptConfig{Ignore: true, Respond: true}) {
		t.Errorf("the editor is offered %+v, want to deny alone", mine.Config)
	}
	f.operator.respond(mine, "accept", nil).refused(t, 403, "own_edit")
	f.admin.respond(f.admin.interrupts("")[id], "accept", nil).wants(t, 200).into(t, &done)
	if done.Phase != "approved" {
		t.Errorf("accepted by another person, it is %s", done.Phase)
	}
}

// TestStaleRowsOfACohort approves the rows of a cohort as they were listed. Those
// that changed, were withdrawn or decided, or expired since are refused one by one;
// the others are approved.
func TestStaleRowsOfACohort(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("stalerows")
	message := uuid.NewString()
	f.mailbox("ann", message)
	ids := make(map[string]string)
	for i, name := range []string{"same", "edited", "withdrawn", "denied", "approved", "expired", "alsosame"} {
		ids[name] = f.waitingProposal(message, fmt.Sprintf("%x", 10+i), object{"n": i})
	}
	var list, etags = []string{}, object{}
	for _, it := range f.operator.inbox("cohort=default").Items {
		list, etags[it.ActionID.String()] = append(list, it.ActionID.String()), it.ETag
	}
	if len(list) != len(ids) {
		t.Fatalf("listed %d, want %d", len(list), len(ids))
	}

	f.write("UPDATE actions SET args = '{\"n\": 77}' WHERE tenant_id = $1 AND action_id = $2::uuid", ids["edited"])
	f.write("UPDATE triage_proposals SET withdraw_at = now() WHERE tenant_id = $1 AND proposal_id = $2::uuid", ids["withdrawn"])
	if n, err := approval.Withdraw(t.Context(), f.db, 10); n != 1 || err != nil {
		t.Fatalf("Withdraw = %d, %v", n, err)
	}
	f.admin.send("POST", path(ids["denied"], "/deny"), nil).wants(t, 200)
	f.admin.send("POST", path(ids["approved"], "/approve"), nil).wants(t, 200)
	f.write("UPDATE actions SET approval_expires_at = now() - interval '1 second' WHERE tenant_id = $1 AND action_id = $2::uuid", ids["expired"])

	var done wire.Page[wire.Decided]
	f.operator.send("POST", "/api/v1/actions/approve", object{"ids": list, "etags": etags}).wants(t, 200).into(t, &done)

	got := make(map[string]string)
	for _, d := range done.Items {
		got[d.ActionID.String()] = d.Result
		if d.Problem != nil {
			got[d.ActionID.String()] += fmt.Sprintf(" %d %s", d.Problem.Status, d.Problem.Code)
		}
	}
	for name, want := range map[string]string{
		"same": "approved", "alsosame": "approved", "edited": "refused 412 stale", "withdrawn": "refused 409 decided", "denied": "refused 409 decided",
		"approved": "refused 409 decided", "expired": "refused 410 expired",
	} {
		if got[ids[name]] != want {
			t.Errorf("%s: %s, want %s", name, got[ids[name]], want)
		}
	}
	if now := f.operator.pendingAction(ids["edited"]); now.Phase != "pending" {
		t.Errorf("the changed row is %s, want it left", now.Phase)
	}
}

// TestTextsBecomeTheTypesOfTheSchema edits values of every type, all as texts. Where
// the schema takes several types, the type of the value before counts.
func TestTextsBecomeTheTypesOfTheSchema(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("texts")
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.id, catalog.Source{ID: "typed", Kind: catalog.KindMCP, Config: mailConfig, Enabled: true}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, f.id, "typed", []source.Tool{{Name: "set", InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
			"flag":{"type":"boolean"},"list":{"type":"array","items":{"type":"integer"}},"who":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}}},
			"maybe":{"type":["integer","null"]},"kind":{"enum":[1,2]},"either":{"type":["integer","string"]},"other":{"type":["integer","string"]},"any":{},
			"price":{"$ref":"#/$defs/price"},"one":{"anyOf":[{"type":"integer"},{"type":"boolean"}]},"text":{"type":"string"}},"$defs":{"price":{"type":"number"}}}`)}})
	})
	raw := `{"type":"mcp.exec","external_id":"x","tool":{"source":"typed","name":"set"},"args":{"flag":true,"list":[1],"who":{"n":1,"s":"1"},"maybe":null,"kind":1,"either":1,"other":"1","any":{"a":1},"price":1.5,"one":true,"text":"1"}}`
	id := f.agent.send("POST", "/api/v1/actions", raw).wants(t, 201).action(t).Envelope.ActionID
	it := f.operator.interrupts("")[id]
	edit := func(args object) object { return object{"action": "typed:set", "args": args} }

	for name, text := range map[string]string{"flag": "yes", "list": "[1", "who": "[]", "maybe": "none", "kind": "3", "price": "1,5", "one": "1.5", "list/0": `["a"]`, "who/n": `{"n":"a"}`} {
		field, _, _ := strings.Cut(name, "/")
		p := f.operator.respond(it, "edit", edit(object{field: text})).wants(t, 400).problem(t)
		if !slices.ContainsFunc(p.Errors, func(e envelope.FieldError) bool { return e.Pointer == "/0/args/args/"+name }) {
			t.Errorf("%s: %v", name, p.Errors)
		}
	}
	texts := object{"flag": "false", "list": "[1, 18014398509481985]", "who": `{"n": 2, "s": "2"}`, "maybe": "7", "kind": "2", "either": "2", "other": "2", "any": `{"a": 2}`, "price": "2.50", "one": "3", "text": "true"}
	var done pendingAction
	f.operator.respond(it, "edit", edit(texts)).wants(t, 200).into(t, &done)

	const want = `{"any":{"a":2},"one":3,"who":{"n":2,"s":"2"},"flag":false,"kind":2,"list":[1,18014398509481985],"text":"true","maybe":7,"other":"2","price":2.5,"either":2}`
	got, err := envelope.Canonical(done.Envelope.Args)
	canonical, wrong := envelope.Canonical([]byte(want))
	if err != nil || wrong != nil || string(got) != string(canonical) {
		t.Errorf("the arguments are %s, want %s", got, canonical)
	}
}
