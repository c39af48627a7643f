package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/server/rest/route"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// mailMarker is in every text of mails; only mail:read shows it.
const mailMarker = "MAIL-TEXT-77b0"

// write runs statements as the database's owner, each with the tenant as $1.
func (f *tenantFixture) write(statement string, args ...any) {
	f.t.Helper()
	err := postgres.InTx(f.t.Context(), f.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(f.t.Context(), statement, append([]any{f.id.String()}, args...)...)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// mailbox makes an account with one message that was judged and led to nothing.
func (f *tenantFixture) mailbox(name, message string) {
	f.t.Helper()
	f.admin.send("PUT", "/api/v1/triage/accounts/"+name, object{
		"kind": "imap", "connection": object{"host": "imap.example.org", "user": "ann@example.org"}, "secret": marker + "-password",
	}).wants(f.t, 200)
	f.message(name, message, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	f.write(`INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question,
			decision, signals, prediction, features, notes, skipped, model)
		SELECT m.tenant_id, m.message_id, m.account_id, m.message_id, 'request', 'primary', 'urgent', 'urgent', 'default', 2, 0.9, false,
			'{"act":"request","category":"primary","priority":"urgent","bucket":"urgent","cohort":"default","asked":"L3","allowed":"L2","confidence":0.9,
				"vetoes":["starred"],"trace":[{"rule":"level unproven","from":"L3","to":"L2","because":"nothing proves the sender"},
				{"rule":"result","to":"nothing is proposed","because":"no action is left"}]}',
			jsonb_build_object('symbols', jsonb_build_array(jsonb_build_object('name', 'URGENT_WORDS', 'axis', 'urgency', 'weight', 1.5, 'evidence', $3::text))),
			'{}', '\x01', '{"removed":[{"step":"quote","kind":"reply","count":1,"characters":90}],"warnings":["no date"]}', '[{"action":"label","because":"the message already has the label"}]', 'digest'
		FROM triage_messages m WHERE m.tenant_id = $1 AND m.message_id = $2::uuid`, message, mailMarker)
	f.write(`INSERT INTO triage_findings (tenant_id, message_id, finding_no, account_id, kind, fields)
		SELECT m.tenant_id, m.message_id, 1, m.account_id, 'task', jsonb_build_array(jsonb_build_object('name', 'summary', 'value', $3::text, 'part', 'body', 'span', '{"from":0,"to":3}'::jsonb))
		FROM triage_messages m WHERE m.tenant_id = $1 AND m.message_id = $2::uuid`, message, mailMarker)
}

// message stores a message of an account as triage does.
func (f *tenantFixture) message(account, id string, received time.Time) {
	f.t.Helper()
	f.write(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, header_id, thread_id, outgoing, sender, sender_name, subject, body, received_at, size)
		SELECT a.tenant_id, $3::uuid, a.account_id, sha256($3::text::bytea), $3::text || '@example.org', $3::uuid, false, 'bob@example.org', $4::text, $4::text, $4::text, $5::timestamptz, 100
		FROM triage_accounts a WHERE a.tenant_id = $1 AND a.name = $2`, account, id, mailMarker, received)
}

// waitingProposal makes the action of a proposal of triage about a message, which
// waits for a person, and returns its id.
func (f *tenantFixture) waitingProposal(message, name string, args object) string {
	f.t.Helper()
	external := "triage:" + strings.Repeat("0", 64-len(name)) + name
	p := proposal("write", args)
	p["external_id"] = external
	id := f.agent.send("POST", "/api/v1/actions", p).wants(f.t, 201).action(f.t).Envelope.ActionID
	f.write(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope, proposal_id)
		SELECT m.tenant_id, $3::text, m.account_id, m.message_id, 'label',
			'[{"pointer":"/account","value":"ann","origin":"config","ref":""}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', $3::text, 'tool', jsonb_build_object('source', 'mail', 'name', 'message.label'), 'args', jsonb_build_object('account', 'ann')),
			$4::uuid
		FROM triage_messages m WHERE m.tenant_id = $1 AND m.message_id = $2::uuid`, message, external, id)
	return id
}

func TestSenderAndSubjectOfMailInApprovals(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailapproval")
	message, poisoned := uuid.NewString(), uuid.NewString()
	f.mailbox("ann", message)
	f.message("ann", poisoned, time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	subject := "<b>*pay*</b> \u202enow\u0007 " + strings.Repeat("ä", 600)
	f.write("UPDATE triage_messages SET subject = $3, sender_name = 'Bob\u202e' WHERE tenant_id = $1 AND message_id = $2::uuid", poisoned, subject)
	plain, other := f.waitingProposal(message, "a", object{"n": 1}), f.mail(object{"n": 2})
	odd := f.waitingProposal(poisoned, "b", object{"n": 3})
	// A name that looks like one of triage's, without a proposal of triage.
	forged := proposal("write", object{"n": 4})
	forged["external_id"] = "triage:" + strings.Repeat("c", 64)
	fake := f.agent.send("POST", "/api/v1/actions", forged).wants(t, 201).action(t).Envelope.ActionID

	mails := map[string]*wire.ActionMail{}
	for _, it := range f.operator.inbox("").Items {
		mails[it.ActionID.String()] = it.Mail
	}
	if m := mails[plain]; m == nil || m.Subject != mailMarker || m.SenderName != mailMarker || m.Sender != "bob@example.org" ||
		m.MessageID.String() != message || m.Account != "ann" || m.Cohort != "default" {
		t.Errorf("the message of a proposal of triage = %+v", m)
	}
	// The reason is a sentence with its codes, the same in the inbox, the list and why.
	const text = "It needs its owner soon, because it asks for something; it stays where it is, because it has a star."
	codes := []string{"bucket:urgent", "act:request", "veto:starred"}
	var messages wire.Page[wire.TriageMessage]
	f.operator.send("GET", "/api/v1/triage/messages", nil).wants(t, 200).into(t, &messages)
	var why wire.TriageWhy
	f.operator.send("GET", "/api/v1/triage/messages/"+message+"/why", nil).wants(t, 200).into(t, &why)
	for name, r := range map[string]*wire.TriageReason{"inbox": mails[plain].Reason, "list": messages.Items[1].Reason, "why": why.Reason} {
		if r == nil || r.Text != text || !slices.Equal(r.Codes, codes) {
			t.Errorf("%s: reason = %+v, want %q %q", name, r, text, codes)
		}
	}
	if messages.Items[0].Reason != nil {
		t.Errorf("a message that was not judged has the reason %+v", messages.Items[0].Reason)
	}
	if mails[other] != nil || mails[fake] != nil {
		t.Errorf("actions of an agent are about %+v and %+v, want no message", mails[other], mails[fake])
	}
	// The API is exact, but for the length; command line, page and Slack escape it.
	if m := mails[odd]; m == nil || !strings.HasPrefix(m.Subject, "<b>*pay*</b> \u202enow\u0007 ä") || len(m.Subject) > 520 || !strings.HasSuffix(m.Subject, "…") || m.SenderName != "Bob\u202e" {
		t.Errorf("a poisoned message = %+v", m)
	}
	var one wire.Action
	f.operator.send("GET", path(plain, ""), nil).wants(t, 200).into(t, &one)
	if one.Mail == nil || one.Mail.Subject != mailMarker {
		t.Errorf("the action's message = %+v", one.Mail)
	}
	var list wire.Page[wire.Action]
	f.operator.send("GET", "/api/v1/actions?view=summary", nil).wants(t, 200).into(t, &list)
	if n := len(slices.DeleteFunc(list.Items, func(a wire.Action) bool { return a.Mail == nil })); n != 2 {
		t.Errorf("%d actions of the list have a message, want 2", n)
	}

	scopes := slices.DeleteFunc(slices.Clone(identity.Scopes()), func(s identity.Scope) bool { return s == identity.MailRead })
	for name, by := range map[string]*client{
		"an agent": f.agent, "a viewer": f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer, Scopes: identity.Scopes()}),
		"an operator without the scope": f.holder(identity.Grant{Name: "scopeless", Role: identity.RoleOperator, Scopes: scopes}),
		"a token for some tools":        f.holder(identity.Grant{Name: "narrow", Role: identity.RoleOwner, Tools: []string{"mail:*"}}),
	} {
		for _, at := range []string{path(plain, ""), "/api/v1/actions", "/api/v1/inbox", "/api/v1/inbox?view=summary"} {
			if a := by.send("GET", at, nil); strings.Contains(string(a.body), mailMarker) || strings.Contains(string(a.body), `"mail":{`) {
				t.Errorf("%s reads text of mail at %s: %s", name, at, a.body)
			}
		}
	}

	f.operator.send("POST", path(plain, "/approve"), object{"note": "as agreed"}).wants(t, 200)
	f.operator.send("POST", path(odd, "/deny"), nil).wants(t, 200)
	f.leaksNoMail()
}

// TestEditsOfProposalsOfTriage: an edit replaces the arguments under the same id, and
// the guards of mail hold for an edit as well.
func TestEditsOfProposalsOfTriage(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailedits")
	message := uuid.NewString()
	f.mailbox("ann", message)
	id := f.waitingProposal(message, "a", object{"to": "x"})
	for pointer, args := range map[string]object{
		"/args/account":        {"account": "bob"},
		"/args/message/key":    {"account": "ann", "message": object{"key": "7:9"}},
		"/args/to/0":           {"account": "ann", "to": []string{"eve@example.org"}},
		"/args/labels/add/0":   {"account": "ann", "labels": object{"add": []string{"countersign_do_pay"}}},
		"/args/labels/add/1":   {"account": "ann", "labels": object{"add": []string{"Good", "not good"}}},
		"/args/flags/add/0":    {"account": "ann", "flags": object{"add": []string{"\\Deleted"}}},
		"/args/labels/remove":  {"account": "ann", "labels": object{"remove": 5}},
		"/args/expected/flags": {"account": "ann", "expected": object{"flags": nil}},
	} {
		for _, how := range []string{"/edit", "/approve"} {
			if a := f.operator.send("POST", path(id, how), object{"args": args}).wants(t, 400); !strings.Contains(string(a.body), `"`+pointer+`"`) {
				t.Errorf("%s with %v = %s, want a pointer to %s", how, args, a.body, pointer)
			}
		}
	}
}

// TestKindsOfWhatWaits: questions and texts of triage are kinds of their own, and so
// are its acts without a person, until somebody acknowledges them.
func TestKindsOfWhatWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailkinds")
	message, unsure := uuid.NewString(), uuid.NewString()
	f.mailbox("ann", message)
	f.message("ann", unsure, time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	f.write(`INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question, decision, signals, prediction, model)
		SELECT tenant_id, $3::uuid, account_id, run_id, act, category, priority, bucket, 'newsletters', level, 0.4, true, decision, signals, prediction, model
		FROM triage_decisions WHERE tenant_id = $1 AND message_id = $2::uuid`, message, unsure)
	plain, other := f.waitingProposal(message, "a", object{"n": 1}), f.mail(object{"n": 2})
	question, review := f.waitingProposal(unsure, "b", object{"n": 3}), f.waitingProposal(message, "c", object{"n": 4})
	f.write("UPDATE actions SET tool_name = 'message.draft' WHERE tenant_id = $1 AND action_id = $2::uuid", review)
	var did []string
	for n, name := range []string{"d", "e", "f"} {
		id := f.waitingProposal(message, name, object{"n": n})
		did = append(did, id)
		f.write("UPDATE actions SET approval_state = 'auto', approval_expires_at = NULL WHERE tenant_id = $1 AND action_id = $2::uuid", id)
		f.write("INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at) VALUES ($1, $2::uuid, 1, 'sent', now())", id)
	}
	// What was taken back, and what is too old, is no notice.
	f.write("UPDATE triage_proposals SET outcome = 'reverted' WHERE tenant_id = $1 AND proposal_id = $2::uuid", did[1])
	f.write("UPDATE triage_proposals SET proposed_at = now() - interval '8 days' WHERE tenant_id = $1 AND proposal_id = $2::uuid", did[2])
	kinds := func(by *client, query string) map[string]string {
		t.Helper()
		got := map[string]string{}
		for _, it := range by.inbox(query).Items {
			got[it.ActionID.String()] = it.Kind
		}
		return got
	}
	counts := func(query string) wire.InboxCounts {
		t.Helper()
		var c wire.InboxCounts
		f.operator.send("GET", "/api/v1/inbox/counts?"+query, nil).wants(t, 200).into(t, &c)
		return c
	}

	for query, want := range map[string]map[string]string{
		"":                           {plain: "approval", other: "approval", question: "question", review: "review"},
		"kind=approval":              {plain: "approval", other: "approval"},
		"kind=question,review":       {question: "question", review: "review"},
		"kind=notify":                {did[0]: "notify"},
		"kind=notify&order=risk":     {did[0]: "notify"},
		"kind=notify&order=expiry":   {did[0]: "notify"},
		"cohort=newsletters":         {question: "question"},
		"cohort=default":             {plain: "approval", review: "review"},
		"cohort=vip":                 {},
		"kind=review&order=newest":   {review: "review"},
		"kind=notify&cohort=default": {did[0]: "notify"},
	} {
		if got := kinds(f.operator, query); !maps.Equal(got, want) {
			t.Errorf("inbox?%s = %v, want %v", query, got, want)
		}
	}
	for query, want := range map[string]wire.InboxByKind{
		"": {Approval: 2, Question: 1, Review: 1, Notify: 1}, "kind=question": {Question: 1}, "kind=notify": {Notify: 1}, "cohort=newsletters": {Question: 1},
	} {
		if got := counts(query); got.ByKind != want || got.Total != want.Approval+want.Question+want.Review+counts("kind=notify").ByKind.Notify*map[bool]int{true: 1}[query == "kind=notify"] {
			t.Errorf("counts?%s = %+v, want %+v", query, got, want)
		}
	}
	for _, it := range f.operator.inbox("").Items {
		if it.ETag == "" || it.Needed != 1 {
			t.Errorf("%s has no version to decide about: %+v", it.Kind, it)
		}
	}
	f.operator.send("POST", path(question, "/approve"), nil).wants(t, 200)

	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	if got := kinds(viewer, "kind=review"); len(got) != 1 {
		t.Errorf("a viewer sees %v, want the kinds as everybody", got)
	}
	viewer.send("GET", "/api/v1/inbox?cohort=default", nil).refused(t, 403, "scope")
	viewer.send("POST", "/api/v1/inbox/acknowledge", object{"ids": did[:1]}).wants(t, 403)
	f.operator.send("POST", "/api/v1/inbox/acknowledge", object{"ids": []string{}}).wants(t, 400)
	var done wire.InboxNoticed
	f.operator.send("POST", "/api/v1/inbox/acknowledge", object{"ids": did[:1]}).wants(t, 200).into(t, &done)
	if done.Acknowledged != 1 || len(kinds(f.operator, "kind=notify")) != 0 || counts("").ByKind.Notify != 0 {
		t.Errorf("acknowledged %d, and %v is listed, want it gone", done.Acknowledged, kinds(f.operator, "kind=notify"))
	}
	f.operator.send("POST", "/api/v1/inbox/acknowledge", object{"ids": did[:1]}).wants(t, 200).into(t, &done)
	if done.Acknowledged != 0 {
		t.Errorf("acknowledged %d again", done.Acknowledged)
	}
}

// leaksNoMail checks that text of mail is in the tables of triage alone: in no
// line of the log, and in no row of any other table.
func (f *tenantFixture) leaksNoMail() {
	f.t.Helper()
	if strings.Contains(f.logs.String(), mailMarker) {
		f.t.Error("the log holds text of mail")
	}
	err := postgres.InTx(f.t.Context(), f.db, postgres.Admin(), func(tx pgx.Tx) error {
		rows, _ := tx.Query(f.t.Context(), `SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = 'countersign_data' AND c.relkind = 'r' AND c.relname NOT LIKE 'triage\_%' ORDER BY c.relname`)
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if len(tables) < 30 {
			f.t.Errorf("%d tables were looked at, want all", len(tables))
		}
		for _, table := range tables {
			var leaked int
			if err := tx.QueryRow(f.t.Context(), "SELECT count(1) FROM "+pgx.Identifier{table}.Sanitize()+" r WHERE to_jsonb(r)::text LIKE '%' || $1 || '%'", mailMarker).Scan(&leaked); err != nil {
				return err
			}
			if leaked > 0 {
				f.t.Errorf("%d rows of %s hold text of mail", leaked, table)
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func TestTextOfMailNeedsItsScope(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailtext")
	visits := f.visits()
	shown := 0
	for _, role := range []identity.Role{identity.RoleViewer, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner} {
		var others []identity.Scope
		for _, s := range identity.Scopes() {
			if s != identity.MailRead {
				others = append(others, s)
			}
		}
		without := f.holder(identity.Grant{Name: "without", Role: role, Scopes: others})
		for _, rt := range route.Access() {
			if rt.Roles == nil || rt.Operation == "streamEvents" || !strings.HasPrefix(rt.Pattern, "GET ") {
				continue
			}
			v := visits[rt.Operation]
			if a := without.send(v.method, v.path, v.body); strings.Contains(string(a.body), mailMarker) {
				t.Errorf("%s shows text of mail to %s without mail:read: %s", rt.Operation, role, a.body)
			}
			if role != identity.RoleAdmin {
				continue
			}
			if a := f.admin.send(v.method, v.path, v.body); strings.Contains(string(a.body), mailMarker) {
				shown++
			}
		}
	}
	if shown == 0 {
		t.Error("no answer shows text of mail, so that nothing was compared")
	}

	agent := f.holder(identity.Grant{Name: "agent", Role: identity.RoleAgent, Session: "s", Scopes: identity.Scopes()})
	some := f.holder(identity.Grant{Name: "some tools", Role: identity.RoleOwner, Tools: []string{"mail:*"}})
	for _, path := range []string{visits["listTriageMessages"].path, visits["getTriageMessage"].path, visits["explainTriageMessage"].path} {
		agent.send("GET", path, nil).wants(t, http.StatusForbidden)
		some.send("GET", path, nil).wants(t, http.StatusForbidden)
	}
	f.leaksNoMail()
}

func TestPasswordsOfMailAccountsAreNeverShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailsecret")
	const secret = marker + "-of-ann"
	at := "/api/v1/triage/accounts/ann"
	body := func(host string, more object) object {
		o := object{"kind": "imap", "connection": object{"host": host, "user": "ann"}}
		maps.Copy(o, more)
		return o
	}
	var got struct {
		HasSecret bool `json:"has_secret"`
	}

	f.admin.send("PUT", at, body("imap.example.org", object{"secret": secret})).wants(t, 200).into(t, &got)
	if !got.HasSecret {
		t.Error("the password was not stored")
	}
	f.admin.send("PUT", at, body("imap.example.org", object{"every": "5m"})).wants(t, 200).into(t, &got)
	if !got.HasSecret {
		t.Error("a change of something else dropped the password")
	}
	moved := f.admin.send("PUT", at, body("imap.example.net", nil)).wants(t, 400)
	if !strings.Contains(string(moved.body), "/secret") {
		t.Errorf("another server without the password again = %s, want a pointer to /secret", moved.body)
	}
	f.admin.send("PUT", at, body("imap.example.net", object{"secret_from": "env:COUNTERSIGN_TRIAGE_SECRET_ANN"})).wants(t, 200).into(t, &got)
	if got.HasSecret {
		t.Error("the stored password stayed beside secret_from")
	}
	f.admin.send("PUT", at, body("imap.example.net", object{"secret": secret})).wants(t, 200)

	for _, path := range []string{at, "/api/v1/triage/accounts", "/api/v1/triage/status", "/api/v1/audit/events"} {
		if a := f.admin.send("GET", path, nil).wants(t, 200); strings.Contains(string(a.body), secret) {
			t.Errorf("%s shows the password", path)
		}
	}
	if strings.Contains(f.logs.String(), secret) {
		t.Error("the log holds the password")
	}
	var plain int
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT (SELECT count(1) FROM events e WHERE to_jsonb(e)::text LIKE '%' || $1 || '%')
			+ (SELECT count(1) FROM triage_accounts a WHERE position($1::bytea IN a.secret) > 0)`, secret).Scan(&plain)
	})
	if plain > 0 {
		t.Error("the password is stored in clear, or is in an event")
	}
}

func TestBodiesOfMailAccountsAreCheckedStrictly(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailstrict")
	files := func(more object) object {
		o := object{"kind": "maildir", "connection": object{"path": "/srv/mail"}}
		maps.Copy(o, more)
		return o
	}
	for pointer, body := range map[string]object{
		"/passwort":            files(object{"passwort": "x"}),
		"/connection/hots":     files(object{"connection": object{"path": "/srv/mail", "hots": "x"}}),
		"/settings/adresses":   files(object{"settings": object{"adresses": []string{}}}),
		"/settings/levels/vip": files(object{"settings": object{"levels": object{"vip": "L6"}}}),
		"/settings/levels/who": files(object{"settings": object{"levels": object{"who": "L1"}}}),
		"/settings/domains/0":  files(object{"settings": object{"domains": []string{"no domain"}}}),
		"/proposals/folder":    files(object{"proposals": object{"folder": "x"}}),
		"/connection/path":     files(object{"connection": object{"path": "relative"}}),
		"/every":               files(object{"every": "1s"}),
		"/secret_from":         files(object{"kind": "imap", "connection": object{"host": "h", "user": "u"}, "secret_from": "env:PATH"}),
	} {
		a := f.admin.send("PUT", "/api/v1/triage/accounts/files", body).wants(t, 400)
		if !strings.Contains(string(a.body), `"`+pointer+`"`) {
			t.Errorf("%s: the problem does not name it: %s", pointer, a.body)
		}
	}
	f.admin.send("PUT", "/api/v1/triage/accounts/files", files(nil)).wants(t, 200)
	f.admin.send("PUT", "/api/v1/triage/accounts/files", files(object{"kind": "mbox"})).wants(t, 409)
	f.admin.send("PUT", "/api/v1/triage/accounts/files", files(nil), "If-Match", `"other"`).wants(t, 412)
}

func TestPagesOfMessagesMissNothingAndRepeatNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailpages")
	for _, name := range []string{"one", "two"} {
		f.admin.send("PUT", "/api/v1/triage/accounts/"+name, object{"kind": "maildir", "connection": object{"path": "/srv/" + name}}).wants(t, 200)
	}
	want := map[string]bool{}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 25 {
		id := uuid.NewString()
		want[id] = true
		// Several have the same time, so that ids decide.
		f.message([]string{"one", "two"}[i%2], id, start.Add(time.Duration(i/4)*time.Hour))
	}
	var last time.Time
	cursor := ""
	for range 10 {
		var page struct {
			Items []struct {
				ID         string    `json:"message_id"`
				ReceivedAt time.Time `json:"received_at"`
			}
			NextCursor *string `json:"next_cursor"`
		}
		f.admin.send("GET", "/api/v1/triage/messages?limit=4"+cursor, nil).wants(t, 200).into(t, &page)
		for _, m := range page.Items {
			if !want[m.ID] {
				t.Errorf("message %s comes twice", m.ID)
			}
			if !last.IsZero() && m.ReceivedAt.After(last) {
				t.Errorf("message %s is newer than the one before", m.ID)
			}
			delete(want, m.ID)
			last = m.ReceivedAt
		}
		if page.NextCursor == nil {
			break
		}
		// Messages that arrive meanwhile are newer, and change no later page.
		f.message("one", uuid.NewString(), start.Add(1000*time.Hour))
		cursor = "&cursor=" + *page.NextCursor
	}
	if len(want) > 0 {
		t.Errorf("%d messages never came", len(want))
	}
	f.admin.send("GET", "/api/v1/triage/messages?cursor=x", nil).wants(t, 400)
}

func TestWhyExplainsMissingProposals(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailwhy")
	id := uuid.NewString()
	f.mailbox("ann", id)
	var why struct {
		Summary string
		Steps   []struct{ Stage, Text string }
	}

	f.operator.send("GET", "/api/v1/triage/messages/"+id+"/why", nil).wants(t, 200).into(t, &why)

	if !strings.Contains(why.Summary, "nothing is proposed, because label could not be") {
		t.Errorf("summary = %q, want that nothing is proposed and why", why.Summary)
	}
	told := fmt.Sprint(why.Steps)
	for _, want := range []string{"quote: reply removed", "URGENT_WORDS", "L3 → L2, because nothing proves the sender", "label is not proposed"} {
		if !strings.Contains(told, want) {
			t.Errorf("the steps do not tell %q: %s", want, told)
		}
	}
	var found struct{ Items []object }
	f.operator.send("GET", "/api/v1/triage/messages?header_id=%3C"+id+"@example.org%3E", nil).wants(t, 200).into(t, &found)
	if len(found.Items) != 1 {
		t.Errorf("%d messages have the Message-ID, want 1", len(found.Items))
	}

	f.operator.send("GET", "/api/v1/triage/messages?header_id=x@y&account=ann", nil).wants(t, 400)

	bare := uuid.NewString()
	f.message("ann", bare, time.Now())
	f.operator.send("GET", "/api/v1/triage/messages/"+bare+"/why", nil).wants(t, 200).into(t, &why)
	if !strings.Contains(why.Summary, "not judged yet") {
		t.Errorf("summary of a message without decision = %q", why.Summary)
	}
	f.operator.send("POST", "/api/v1/triage/messages/"+bare+"/corrections", object{"head": "act", "label": "fyi"}).wants(t, 409)
	f.operator.send("GET", "/api/v1/triage/messages/"+uuid.NewString()+"/why", nil).wants(t, 404)
}

func TestCorrectionsAreMadeAndTakenBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailfix")
	id := uuid.NewString()
	f.mailbox("ann", id)
	at := "/api/v1/triage/messages/" + id + "/corrections"
	var made struct {
		Number int    `json:"correction_no"`
		MadeBy string `json:"made_by"`
	}

	f.operator.send("POST", at, object{"head": "category", "label": "receipts"}).wants(t, 201).into(t, &made)
	f.operator.send("POST", at, object{"head": "category", "label": "invoices"}).wants(t, 400)
	f.operator.send("POST", at, object{"head": "phishing", "label": "yes"}).wants(t, 400)

	one := fmt.Sprintf("%s/%d", at, made.Number)
	f.operator.send("DELETE", one, nil).wants(t, 204)
	f.operator.send("DELETE", one, nil).wants(t, 404)
	var all struct {
		Items []struct {
			RetractedAt *time.Time `json:"retracted_at"`
			MadeBy      string     `json:"made_by"`
		}
	}
	f.operator.send("GET", at, nil).wants(t, 200).into(t, &all)
	if len(all.Items) != 1 || all.Items[0].RetractedAt == nil || all.Items[0].MadeBy == "" || all.Items[0].MadeBy != made.MadeBy {
		t.Errorf("corrections = %+v, want the one that was taken back, with who made it", all.Items)
	}
	var features []byte
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT features FROM triage_corrections WHERE tenant_id = $1", f.id.String()).Scan(&features)
	})
	if string(features) != "\x01" {
		t.Errorf("features = %x, want those of the decision", features)
	}
	// The API shows events when no older transaction of the cluster is open.
	var recorded bool
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM events WHERE tenant_id = $1 AND items::text LIKE '%triage message ' || $2 || ' corrected%')",
			f.id.String(), id).Scan(&recorded)
	})
	if !recorded {
		t.Error("no event says that the message was corrected")
	}
}

// TestWhyShowsPolicyDecisionsToReadersOfActions reads why a message was treated as
// it was, with and without the scope for actions.
func TestWhyShowsPolicyDecisionsToReadersOfActions(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailpolicy")
	message := uuid.NewString()
	f.mailbox("ann", message)
	action := f.agent.propose("write")
	f.write(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope, proposal_id)
		SELECT m.tenant_id, x.id, m.account_id, m.message_id, 'archive', '[{"pointer":"/account","value":"a","origin":"config","ref":"/account"}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', x.id, 'tool', '{"source":"mail","name":"message.archive"}'::jsonb, 'args', '{"account":"a"}'::jsonb), $3::uuid
		FROM triage_messages m, (SELECT 'triage:' || encode(sha256('x'), 'hex') AS id) x WHERE m.tenant_id = $1 AND m.message_id = $2::uuid`, message, action)
	at := "/api/v1/triage/messages/" + message + "/why"

	told := f.operator.send("GET", at, nil).wants(t, 200).body
	blind := f.holder(identity.Grant{Name: "blind", Role: identity.RoleOperator, Scopes: []identity.Scope{identity.MailRead}})
	untold := blind.send("GET", at, nil).wants(t, 200).body

	if !strings.Contains(string(told), `"stage":"policy"`) || !strings.Contains(string(told), "the mode is ") {
		t.Errorf("why does not tell what policy said: %s", told)
	}
	if strings.Contains(string(untold), `"stage":"policy"`) || !strings.Contains(string(untold), `"stage":"proposal"`) {
		t.Errorf("without actions:read, why tells %s", untold)
	}
}

// TestPurgeOfAnAccountIsRecordedWithoutText purges an account, and reads the events.
func TestPurgeOfAnAccountIsRecordedWithoutText(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailpurge")
	f.mailbox("ann", uuid.NewString())
	const at = "/api/v1/triage/accounts/ann/purge"
	purge := func(body object) (p wire.TriagePurge) {
		f.admin.send("POST", at, body).wants(t, 200).into(t, &p)
		return p
	}

	f.operator.send("POST", at, object{}).wants(t, 403)
	f.admin.send("POST", "/api/v1/triage/accounts/none/purge", object{}).wants(t, 404)
	f.admin.send("POST", at, object{}).refused(t, 409, "conflict")
	f.admin.send("POST", "/api/v1/pauses", object{"scope": "automation", "subject": "triage/ann", "kill": true, "reason": "leaving"}).wants(t, 201)
	dry, done, again := purge(object{"dry_run": true}), purge(object{}), purge(object{})

	if !dry.DryRun || dry.Rows.Messages != 1 || dry.Done || !done.Done || done.Rows != dry.Rows || !again.Done || again.Rows.Sum() != 0 {
		t.Errorf("a dry run = %+v, then %+v, then %+v; want the same rows, then none", dry, done, again)
	}
	f.leaksNoMail()
	var events []string
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, "SELECT i ->> 'subject' || ' ' || (i #>> '{detail,rows,messages}') FROM events e, jsonb_array_elements(e.items) i WHERE i ->> 'subject' LIKE '%purged' ORDER BY e.event_id")
		var err error
		events, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if diff := cmp.Diff([]string{"triage account ann purged 1", "triage account ann purged 0"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestPreviewShowsMailToItsReadersAlone compares decisions as people with and
// without mail:read.
func TestPreviewShowsMailToItsReadersAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailpreview")
	f.mailbox("ann", uuid.NewString())
	f.write(`UPDATE triage_decisions SET facts = '{"headers":{"From":["bob@example.org"]},"folder":"inbox"}' WHERE tenant_id = $1`)
	blind := f.holder(identity.Grant{Name: "blind", Role: identity.RoleOperator, Scopes: []identity.Scope{identity.TriageRead}})
	body := object{"settings": object{"levels": object{"first_contact": "L0"}}, "since": "2026-01-01T00:00:00Z"}
	const at = "/api/v1/triage/accounts/ann/preview"

	var shown, hidden wire.TriagePreview
	f.operator.send("POST", at, body).wants(t, 200).into(t, &shown)
	blind.send("POST", at, body).wants(t, 200).into(t, &hidden)

	if len(shown.Items) != 1 || shown.Items[0].Subject != mailMarker || len(hidden.Items) != 1 || hidden.Items[0].MessageID != shown.Items[0].MessageID ||
		hidden.Items[0].Subject+hidden.Items[0].Sender+hidden.Items[0].SenderName != "" {
		t.Errorf("shown %+v\nhidden %+v", shown, hidden)
	}
	f.operator.send("POST", at, object{"settings": object{}}).wants(t, 200).into(t, &shown)
	if shown.Recomputed != 0 {
		t.Errorf("%d decisions of the last week, want none: the mail is older", shown.Recomputed)
	}
	f.agent.send("POST", at, body).wants(t, 403)
	f.operator.send("POST", at, object{"settings": object{"levels": object{"nobody": "L0"}}}).wants(t, 400)
	f.operator.send("POST", "/api/v1/triage/accounts/none/preview", body).wants(t, 404)
}

// TestExportOfAnAccountHasNoBodies exports an account of two messages, a row at a
// time, and at once.
func TestExportOfAnAccountHasNoBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailexport")
	message, other := uuid.NewString(), uuid.NewString()
	f.mailbox("ann", message)
	f.message("ann", other, time.Now())
	f.write("UPDATE triage_messages SET subject = 'the subject', sender_name = 'Bob' WHERE tenant_id = $1")
	f.write("INSERT INTO triage_texts (tenant_id, account_id, message_id, kind, asked_by, note, text) SELECT tenant_id, account_id, message_id, 'draft', 'ada', $2, $2 FROM triage_decisions WHERE tenant_id = $1", mailMarker)
	f.waitingProposal(message, "1", object{})
	f.write("INSERT INTO triage_corrections (tenant_id, account_id, message_id, head, label, features, made_by) SELECT tenant_id, account_id, message_id, 'act', 'fyi', '', 'ada' FROM triage_decisions WHERE tenant_id = $1")
	for _, sql := range []string{
		"INSERT INTO triage_folders (tenant_id, account_id, folder, use) SELECT a.tenant_id, a.account_id, x, 'inbox' FROM triage_accounts a, unnest('{INBOX,Other}'::text[]) x WHERE tenant_id = $1",
		"INSERT INTO triage_runs (tenant_id, run_id, account_id, kind) SELECT tenant_id, gen_random_uuid(), account_id, 'asked' FROM triage_accounts WHERE tenant_id = $1",
		"INSERT INTO triage_senders (tenant_id, account_id, address, first_seen, last_seen) SELECT tenant_id, account_id, 'bob@example.org', now(), now() FROM triage_accounts WHERE tenant_id = $1",
		"INSERT INTO triage_set_aside (tenant_id, account_id, folder, key, received_at, size, step, reason) SELECT a.tenant_id, a.account_id, 'INBOX', x, now(), 1, 'read', 'because' FROM triage_accounts a, unnest('{1,2}'::text[]) x WHERE tenant_id = $1",
		`INSERT INTO triage_labels (tenant_id, account_id, name, definition, set_by) SELECT tenant_id, account_id, 'bills', '{"description":"Invoices","words":["invoice"],"for":[],"against":[]}', 'ada' FROM triage_accounts WHERE tenant_id = $1`,
		`INSERT INTO triage_tags (tenant_id, message_id, action, account_id, state, tagged_by) SELECT tenant_id, message_id, 'add-contact', account_id, 'due', 'ada' FROM triage_decisions WHERE tenant_id = $1`,
		`INSERT INTO triage_tag_log (tenant_id, log_id, account_id, message_id, action, try, source_id, tool_name, extracted, status, error)
			SELECT tenant_id, gen_random_uuid(), account_id, message_id, 'add-contact', 1, 'dav', 'add-contact', '[{"pointer":"/phones/0","value":"+49 30 123","origin":"span","ref":"text:0-10"}]', 'failed', 'rejected'
			FROM triage_decisions WHERE tenant_id = $1`,
	} {
		f.write(sql)
	}
	export := func(limit int) (all []string) {
		for at := fmt.Sprintf("/api/v1/triage/accounts/ann/export?limit=%d", limit); ; {
			var page wire.Page[json.RawMessage]
			f.operator.send("GET", at, nil).wants(t, 200).into(t, &page)
			for _, line := range page.Items {
				all = append(all, string(line))
			}
			if page.NextCursor == nil {
				return all
			}
			at = fmt.Sprintf("/api/v1/triage/accounts/ann/export?limit=%d&cursor=%s", limit, *page.NextCursor)
		}
	}

	once, singly := export(100), export(1)

	if diff := cmp.Diff(once, singly); diff != "" || len(once) != 9 {
		t.Errorf("%d rows, want 9; at once and singly (-at once +singly):\n%s", len(once), diff)
	}
	text := strings.Join(once, "\n")
	for _, want := range []string{"the subject", message, other, `"head":"act"`, `"action":"label"`, `"text_kind":"draft"`, `"bucket":"urgent"`, `"decision":null`, `"words":["invoice"]`, `"state":"due"`, `"value":"+49 30 123"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the export has no %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, mailMarker) {
		t.Errorf("the export has text of a body, of evidence or of a model:\n%s", text)
	}
	for _, g := range []identity.Grant{
		{Name: "blind", Role: identity.RoleAdmin, Scopes: []identity.Scope{identity.TriageRead, identity.ActionsRead}},
		{Name: "some tools", Role: identity.RoleOperator, Tools: []string{"dav:*"}}, {Name: "viewer", Role: identity.RoleViewer},
	} {
		if a := f.holder(g).send("GET", "/api/v1/triage/accounts/ann/export", nil).wants(t, 403); strings.Contains(string(a.body), "+49") {
			t.Errorf("%s is shown %s", g.Name, a.body)
		}
	}
	for _, cursor := range []string{"x", request.WriteTextCursor("triage-export", "9/x"), request.WriteTextCursor("triage-export", "5/xyz"), request.WriteTextCursor("triage-export", "0/\xff")} {
		f.operator.send("GET", "/api/v1/triage/accounts/ann/export?cursor="+cursor, nil).wants(t, 400)
	}
}

// TestTravellingOverTheAPI sets triage of an account travelling, and reads it back
// as people do.
func TestTravellingOverTheAPI(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("travelling")
	f.mailbox("ann", uuid.NewString())
	var statuses []int
	order := func(body object) (p wire.Pause) {
		body["scope"], body["subject"], body["reason"] = "automation", "triage/ann", "away"
		a := f.operator.send("POST", "/api/v1/pauses", body)
		a.into(t, &p)
		statuses = append(statuses, a.status)
		return p
	}
	state := func() string {
		var list struct{ Items []wire.TriageStatus }
		f.operator.send("GET", "/api/v1/triage/status?account=ann", nil).wants(t, 200).into(t, &list)
		return list.Items[0].State + " " + list.Items[0].Reason
	}

	away, again := order(object{"travelling": true}), order(object{"travelling": true})
	travelling := state()
	paused := order(object{})
	stopped := state()
	weaker := order(object{"travelling": true})

	if !away.Travelling || away.Kill || again.ID != away.ID || paused.ID != away.ID || paused.Travelling || weaker.Travelling || !slices.Equal(statuses, []int{201, 200, 200, 200}) {
		t.Errorf("travelling %+v, %+v, then paused %+v, then travelling again %+v, statuses %v; want one pause that became stronger", away, again, paused, weaker, statuses)
	}
	if !strings.Contains(travelling, "travelling") || strings.HasPrefix(travelling, "paused") || !strings.HasPrefix(stopped, "paused") {
		t.Errorf("status while travelling: %s; while paused: %s", travelling, stopped)
	}
	f.operator.send("DELETE", "/api/v1/pauses/"+away.ID.String(), nil).wants(t, 204)
	if got := state(); strings.Contains(got, "travelling") || strings.HasPrefix(got, "paused") {
		t.Errorf("status after the resume: %s", got)
	}
	for name, body := range map[string]object{
		"a tenant":    {"scope": "tenant", "travelling": true, "reason": "away"},
		"with a kill": {"scope": "automation", "subject": "triage", "travelling": true, "kill": true, "reason": "away"},
		"nobody's":    {"scope": "automation", "subject": "triage/none", "travelling": true, "reason": "away"},
	} {
		if a := f.operator.send("POST", "/api/v1/pauses", body); a.status != http.StatusBadRequest {
			t.Errorf("%s travelling = %d: %s", name, a.status, a.body)
		}
	}
	f.agent.send("POST", "/api/v1/pauses", object{"scope": "automation", "subject": "triage", "travelling": true, "reason": "x"}).wants(t, 403)
	var subjects []string
	f.inTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		rows, _ := tx.Query(ctx, "SELECT i ->> 'subject' FROM events e, jsonb_array_elements(e.items) i WHERE i ->> 'subject' LIKE 'automation %' ORDER BY e.event_id")
		subjects, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if diff := cmp.Diff([]string{"automation triage/ann travelling", "automation triage/ann paused", "automation triage/ann resumed"}, subjects); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
