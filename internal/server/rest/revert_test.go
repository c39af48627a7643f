package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// revertible declares a reversal of mail:write and allows both.
func (f *tenantFixture) revertible() *tenantFixture {
	f.t.Helper()
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := settings.PutMode(ctx, tx, f.id, "", "mail:write", envelope.ModeAllow, "test"); err != nil {
			return err
		}
		return catalog.DescribeTool(ctx, tx, f.id, policy.Key{Source: "mail", Action: "write"}, catalog.Description{
			Reversal: &catalog.Reversal{Tool: policy.Key{Source: "mail", Action: "danger"}, Args: json.RawMessage(`{"of":"$inputs/to","ok":"$outputs/ok"}`)},
		})
	})
	return f
}

func (f *tenantFixture) automation(mode envelope.Mode) {
	f.t.Helper()
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, f.id, reversal.Automation, "mail:danger", mode, "test")
	})
}

// done has an agent propose a letter, which is sent.
func (f *tenantFixture) done(by *client, to string) string {
	f.t.Helper()
	id := by.invoke("mail:write", object{"inputs": object{"to": to}, "external_id": uuid.NewString(), "wait": "0s"}).wants(f.t, http.StatusAccepted).call(f.t).ID
	f.settle(envelope.StatusSent, "")
	return id
}

// revertedAction is the part of an action that tests of reversals compare.
type revertedAction struct {
	Envelope envelope.Envelope
	Phase    string
	Reverts  string
	By       struct {
		ActionID string `json:"action_id"`
		Phase    string
	} `json:"reverted_by"`
}

func (a answer) reverted(t testing.TB) (r revertedAction) {
	t.Helper()
	a.into(t, &r)
	return r
}

func TestRevertProposesOneReversal(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme").revertible()
	id := f.done(f.agent, "ana")

	f.agent.send("POST", path(id, "/revert"), nil).wants(t, http.StatusForbidden)
	f.automation(envelope.ModeAllow)
	made := f.agent.send("POST", path(id, "/revert"), nil).wants(t, http.StatusCreated)
	known := f.operator.send("POST", path(id, "/revert"), nil).wants(t, http.StatusOK).reverted(t)
	f.settle(envelope.StatusSent, "")
	first := f.agent.send("GET", path(id), nil).wants(t, http.StatusOK).reverted(t)

	back := made.reverted(t)
	if back.Reverts != id || back.Envelope.SessionID != "s-one" || back.Envelope.AutomationID != reversal.Automation || string(back.Envelope.Args) != `{"of":"ana","ok":true}` && string(back.Envelope.Args) != `{"ok":true,"of":"ana"}` ||
		made.header.Get("Location") != path(back.Envelope.ActionID.String()) {
		t.Errorf("the reversal is %s", made.body)
	}
	if known.Envelope.ActionID != back.Envelope.ActionID || first.By.ActionID != back.Envelope.ActionID.String() || first.By.Phase != "completed" {
		t.Errorf("reverting again gives %+v, and the action is reverted by %+v", known.Envelope.ActionID, first.By)
	}
	related := f.operator.execution(id).Related
	if len(related) != 2 || related[0].Relation != "reversal" || related[1].Relation != "reversal" {
		t.Errorf("related = %+v, want the reversal and the one that was denied", related)
	}
	if back := f.operator.execution(back.Envelope.ActionID.String()).Related; len(back) != 1 || back[0].ID != id || back[0].Relation != "reverses" {
		t.Errorf("related to the reversal = %+v", back)
	}
}

func TestRevertHasTheReasonOfARefusal(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme").revertible()
	f.automation(envelope.ModeAllow)
	lost := f.agent.invoke("mail:write", object{"external_id": "lost", "wait": "0s"}).wants(t, http.StatusAccepted).call(t).ID
	f.settle(envelope.StatusUnknown, outbox.Unknown)
	bare := f.agent.invoke("mail:write", object{"external_id": "bare", "wait": "0s"}).wants(t, http.StatusAccepted).call(t).ID
	f.settle(envelope.StatusSent, "")
	mine := f.done(f.agent, "ana")
	theirs := f.operator.send("POST", path(mine, "/revert"), nil).wants(t, http.StatusCreated).reverted(t)

	for id, want := range map[string]envelope.FieldError{
		lost:                              {Pointer: "/phase", Rule: "unknown"},
		bare:                              {Pointer: "/inputs/to", Rule: "reference_missing"},
		mine:                              {Pointer: "/reverted_by", Rule: "other_session"},
		theirs.Envelope.ActionID.String(): {},
	} {
		status := http.StatusConflict
		if want == (envelope.FieldError{}) {
			status = http.StatusNotFound // the agent does not see it
		}
		p := f.agent.send("POST", path(id, "/revert"), nil).wants(t, status).problem(t)
		if want.Pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != want.Pointer || p.Errors[0].Rule != want.Rule || p.Detail == "") {
			t.Errorf("problem = %+v, want %+v", p, want)
		}
	}
	f.other.send("POST", path(mine, "/revert"), nil).wants(t, http.StatusNotFound)
	f.operator.send("POST", path(theirs.Envelope.ActionID.String(), "/revert"), nil).wants(t, http.StatusConflict)
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	viewer.send("POST", path(mine, "/revert"), nil).wants(t, http.StatusForbidden)
	viewer.send("POST", "/api/v1/actions/revert", object{"action_ids": []string{mine}}).wants(t, http.StatusForbidden)
}

// revertMany reverts several actions and returns each result in short.
func (c *client) revertMany(body object) (results []string, next *string) {
	c.t.Helper()
	var out struct {
		Items []struct {
			ActionID   string `json:"action_id"`
			Result     string
			RevertedBy string `json:"reverted_by"`
			Problem    *struct{ Errors []envelope.FieldError }
		}
		NextCursor *string `json:"next_cursor"`
	}
	c.send("POST", "/api/v1/actions/revert", body).wants(c.t, http.StatusOK).into(c.t, &out)
	for _, it := range out.Items {
		text := it.ActionID + " " + it.Result
		if it.Problem != nil && len(it.Problem.Errors) > 0 {
			text += " " + string(it.Problem.Errors[0].Rule)
		}
		if (it.RevertedBy != "") != (it.Result != "refused" && body["dry_run"] == nil || it.Result == "known") {
			c.t.Errorf("item = %+v", it)
		}
		results = append(results, text)
	}
	return results, out.NextCursor
}

func TestRevertManyGoesFromTheNewest(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme").revertible()
	f.automation(envelope.ModeAllow)
	one, two := f.done(f.agent, "ana"), f.done(f.agent, "bo")
	bare := f.agent.invoke("mail:write", object{"external_id": "bare", "wait": "0s"}).wants(t, http.StatusAccepted).call(t).ID
	f.settle(envelope.StatusSent, "")
	foreign := f.done(f.other, "cy")
	filter := object{"session_id": "s-one", "tool": "mail:*", "since": time.Now().Add(-time.Hour)}

	dry, _ := f.operator.revertMany(object{"filter": filter, "dry_run": true})
	own, _ := f.agent.revertMany(object{"filter": object{"tool": "*:write"}, "dry_run": true})
	none, _ := f.agent.revertMany(object{"filter": object{"session_id": "s-two"}})
	page, next := f.operator.revertMany(object{"filter": filter, "limit": 2})
	if next == nil {
		t.Fatal("there is no second page")
	}
	rest, end := f.operator.revertMany(object{"filter": filter, "limit": 2, "cursor": *next})
	again, _ := f.operator.revertMany(object{"filter": filter})
	named, _ := f.agent.revertMany(object{"action_ids": []string{one, foreign}})

	for name, test := range map[string]struct{ got, want []string }{
		"a dry run":     {dry, []string{bare + " refused reference_missing", two + " accepted", one + " accepted"}},
		"an agent's":    {own, []string{bare + " refused reference_missing", two + " accepted", one + " accepted"}},
		"of another":    {none, nil},
		"the first two": {page, []string{bare + " refused reference_missing", two + " accepted"}},
		"the rest":      {rest, []string{one + " accepted"}},
		"once more":     {again, []string{bare + " refused reference_missing", two + " known", one + " known"}},
		"by id":         {named, []string{one + " known", foreign + " refused"}},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if end != nil {
		t.Errorf("next_cursor at the end = %s", *end)
	}
	for name, body := range map[string]object{
		"nothing": {}, "both": {"action_ids": []string{one}, "filter": filter}, "no filter": {"filter": object{}},
		"times in the wrong order":  {"filter": object{"since": time.Now(), "until": time.Now().Add(-time.Hour)}},
		"a tool with a star within": {"filter": object{"tool": "mail:w*e"}}, "a foreign cursor": {"filter": filter, "cursor": "x"},
	} {
		if p := f.operator.send("POST", "/api/v1/actions/revert", body).wants(t, http.StatusBadRequest).problem(t); len(p.Errors) == 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestIrreversibleActionsAreMarkedBeforeADecision(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	f.agent.invoke("mail:write", object{"inputs": object{"to": "ana"}, "external_id": "letter"}).wants(t, http.StatusAccepted)
	shown := func() (reversible [3]bool) {
		var inbox struct{ Items []struct{ Reversible bool } }
		f.operator.send("GET", "/api/v1/inbox", nil).wants(t, http.StatusOK).into(t, &inbox)
		var dry struct {
			DryRun struct{ Call struct{ Reversible bool } } `json:"dry_run"`
		}
		f.agent.invoke("mail:write", object{"dry_run": true}).wants(t, http.StatusOK).into(t, &dry)
		var tool struct{ Reversible bool }
		f.operator.send("GET", "/api/v1/tools/mail:write", nil).wants(t, http.StatusOK).into(t, &tool)
		return [3]bool{inbox.Items[0].Reversible, dry.DryRun.Call.Reversible, tool.Reversible}
	}

	if got := shown(); got != [3]bool{} {
		t.Errorf("reversible = %v in inbox, dry run and catalog, of a tool that declares no reversal", got)
	}
	f.revertible()
	if got := shown(); got != [3]bool{true, true, true} {
		t.Errorf("reversible = %v in inbox, dry run and catalog, of a tool that declares one", got)
	}
}
