package rest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// triaged makes the mail account "ann" of a person, and returns an action that
// triage had completed there, its run, and a token of the person.
func (f *tenantFixture) triaged() (action, run string, ann *client) {
	f.t.Helper()
	person, message, run := f.somebody("Ann", identity.RoleOperator), uuid.NewString(), uuid.NewString()
	f.mailbox("ann", message)
	f.admin.send("PUT", "/api/v1/triage/accounts/ann", object{
		"kind": "imap", "connection": object{"host": "imap.example.org", "user": "ann@example.org"}, "operator_id": person.String(),
	}).wants(f.t, 200)
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := settings.PutMode(ctx, tx, f.id, "", "mail:write", envelope.ModeAllow, "test"); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, f.id, "", "mail:danger", envelope.ModeRequireApproval, "test")
	})
	f.write(`UPDATE tools SET default_reversal = '{"tool":"mail:danger","args":{"of":"$inputs/to"}}' WHERE tenant_id = $1 AND source_id = 'mail' AND name = 'write'`)
	external := "triage:" + strings.Repeat(strings.ReplaceAll(message, "-", ""), 2)
	action = f.operator.invoke("mail:write", object{"inputs": object{"to": "ana"}, "external_id": external, "wait": "0s"}).wants(f.t, 202).call(f.t).ID
	f.settle(envelope.StatusSent, "")
	f.write(`INSERT INTO triage_runs (tenant_id, run_id, account_id, kind) SELECT a.tenant_id, $2::uuid, a.account_id, 'asked' FROM triage_accounts a WHERE a.tenant_id = $1`, run)
	f.write(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, parts, fields, envelope, proposal_id, run_id)
		SELECT m.tenant_id, $2::text, m.account_id, m.message_id, 'archive', '[{"action":"archive"}]', '[{"pointer":"/account","value":"a","origin":"config"}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', $2::text, 'tool', '{"source":"mail","name":"message.archive"}'::jsonb, 'args', '{"account":"a"}'::jsonb), $4::uuid, $5::uuid
		FROM triage_messages m WHERE m.tenant_id = $1 AND m.message_id = $3::uuid`, external, message, action, run)
	return action, run, f.holder(identity.Grant{Name: "ann", Role: identity.RoleOperator, Operator: person})
}

// undone posts an undo and returns each result in short.
func (c *client) undone(body object) (results []string) {
	c.t.Helper()
	var out struct {
		Items []struct {
			ActionID   string `json:"action_id"`
			Account    string
			Result     string
			Phase      string
			RevertedBy string `json:"reverted_by"`
			Problem    *struct{ Errors []envelope.FieldError }
		}
	}
	c.send("POST", "/api/v1/triage/undo", body).wants(c.t, 200).into(c.t, &out)
	for _, it := range out.Items {
		text := it.Account + " " + it.Result + " " + it.Phase
		if it.Problem != nil && len(it.Problem.Errors) > 0 {
			text += string(it.Problem.Errors[0].Rule)
		}
		if want := body["dry_run"] == nil && (it.Result == "accepted" || it.Result == "known"); (it.RevertedBy != "") != want {
			c.t.Errorf("item = %+v", it)
		}
		results = append(results, text)
	}
	return results
}

// TestOwnerOfMailUndoesTriage undoes an act by run, by time and by id.
func TestOwnerOfMailUndoesTriage(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailundo")
	action, run, ann := f.triaged()
	ids, filter := object{"action_ids": []string{action}}, object{"filter": object{"run_id": run, "account": "ann", "since": time.Now().Add(-time.Hour)}}

	for name, test := range map[string]struct {
		got  []string
		want string
	}{
		"another person": {f.operator.undone(ids), "ann refused other_operator"},
		"a dry run":      {ann.undone(object{"filter": object{"run_id": run}, "dry_run": true}), "ann accepted approved"},
	} {
		if diff := cmp.Diff([]string{test.want}, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	first, again := ann.undone(filter), ann.undone(ids)
	f.settle(envelope.StatusSent, "")
	done := ann.undone(ids)

	if diff := cmp.Diff([]string{"ann accepted approved", "ann known approved", "ann known completed"}, append(append(first, again...), done...)); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
	back := f.operator.send("GET", path(action), nil).wants(t, 200).reverted(t).By.ActionID
	var votes struct {
		Items []struct{ Note string }
	}
	ann.send("GET", path(back, "/votes"), nil).wants(t, 200).into(t, &votes)
	if len(votes.Items) != 1 || !strings.Contains(votes.Items[0].Note, "undo of triage") {
		t.Errorf("votes about the reversal = %+v, want that of the undo", votes.Items)
	}
}

// TestUndoOfTriageNamesTheProblem sends undos that select nothing, and names an
// operator without the right to.
func TestUndoOfTriageNamesTheProblem(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("mailundobad")
	action, _, ann := f.triaged()
	at, now := "/api/v1/triage/undo", time.Now()
	for name, test := range map[string]struct {
		by     *client
		body   object
		status int
		want   string
	}{
		"nobody's":            {f.operator, object{"filter": object{"since": now}}, 403, "no mail account names you"},
		"another's account":   {f.operator, object{"filter": object{"account": "ann"}}, 403, "does not name you as its operator"},
		"an unknown account":  {ann, object{"filter": object{"account": "bob"}}, 404, "no triage account bob"},
		"an unknown run":      {ann, object{"filter": object{"run_id": uuid.NewString()}}, 404, "no run"},
		"an empty filter":     {ann, object{"filter": object{}}, 400, "/filter"},
		"nothing":             {ann, object{}, 400, ""},
		"ends before it does": {ann, object{"filter": object{"since": now, "until": now.Add(-time.Hour)}}, 400, "/filter/until"},
		"a foreign cursor":    {ann, object{"filter": object{"account": "ann"}, "cursor": "x"}, 400, "/cursor"},
		"an agent":            {f.agent, object{"action_ids": []string{action}}, 403, "role agent"},
		"who may not decide":  {f.holder(identity.Grant{Name: "proposer", Role: identity.RoleOperator, Scopes: []identity.Scope{identity.ActionsPropose}}), object{"action_ids": []string{action}}, 403, "approvals:decide"},
	} {
		a := test.by.send("POST", at, test.body).wants(t, test.status)
		if !strings.Contains(string(a.body), test.want) {
			t.Errorf("%s: %s, want %q", name, a.body, test.want)
		}
	}

	body := object{"kind": "maildir", "connection": object{"path": "/srv/mail"}, "operator_id": f.person("Bo")}
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAdmin, Scopes: []identity.Scope{identity.TriageManage}})
	if a := narrow.send("PUT", "/api/v1/triage/accounts/bo", body).wants(t, 403); !strings.Contains(string(a.body), "policy:write") {
		t.Errorf("an operator named without policy:write: %s", a.body)
	}
	f.admin.send("PUT", "/api/v1/triage/accounts/bo", body).wants(t, 200)
	narrow.send("PUT", "/api/v1/triage/accounts/bo", body).wants(t, 200) // the same operator
	body["operator_id"] = uuid.NewString()
	if a := f.admin.send("PUT", "/api/v1/triage/accounts/bo", body).wants(t, 400); !strings.Contains(string(a.body), "/operator_id") {
		t.Errorf("an unknown operator: %s", a.body)
	}
}
