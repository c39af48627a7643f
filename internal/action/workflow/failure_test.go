package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reference"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestReferencesToMissingValuesFail(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 30<<10)
	for name, test := range map[string]struct{ result, ref, code string }{
		"what is not answered":           {`{"id":"a"}`, "$0.name", reference.CodeMissing},
		"beyond the end of a list":       {`{"hits":[]}`, "$0.hits[0]", reference.CodeMissing},
		"below a text":                   {`{"id":"a"}`, "$0.id.x", reference.CodeMissing},
		"nothing was answered":           {`null`, "$0.id", reference.CodeMissing},
		"a secret":                       {`{"id":"a","token":"abc"}`, "$0.token", reference.CodeRedacted},
		"what holds a secret":            {`{"all":{"id":"a","password":"abc"}}`, "$0.all", reference.CodeRedacted},
		"what was cut":                   {`{"id":"a","text":"` + long + `"}`, "$0.text", reference.CodeTruncated},
		"what holds what was cut":        {`{"id":"a","all":{"text":"` + long + `"}}`, "$0.all", reference.CodeTruncated},
		"what was left out":              {`{"hits":[` + strings.Repeat(`"`+strings.Repeat("y", 999)+`",`, 30) + `1]}`, "$0.hits[30]", reference.CodeTruncated},
		"all of a list with parts left":  {`{"hits":[` + strings.Repeat(`"`+strings.Repeat("y", 999)+`",`, 30) + `1]}`, "$0.hits", reference.CodeTruncated},
		"what is whole beside what is":   {`{"id":"a","text":"` + long + `"}`, "$0.id", ""},
		"what is beside a secret":        {`{"id":"a","token":"abc"}`, "$0.id", ""},
		"a part of MCP's text":           {`{"content":[{"type":"text","text":"{\"id\":\"a\"}"}]}`, "$0.id", ""},
		"MCP's structured part":          {`{"content":[{"type":"text","text":"no"}],"structured":{"id":"a"}}`, "$0.id", ""},
		"MCP's text that is no document": {`{"content":[{"type":"text","text":"a"}]}`, "$0.content[0].text", ""},
		"MCP's text that was cut":        {`{"content":[{"type":"text","text":"{\"id\":\"a\",\"x\":\"` + long + `\"}"}]}`, "$0.id", reference.CodeTruncated},
	} {
		o := newFixture(t)
		id := o.submit(steps(false, "find", `{}`, "link", `{"from":"x","to":"`+test.ref+`"}`))
		if test.code == "" {
			calls := o.run(func(c call) outcome { return answering(test.result) })
			o.wants(id, "completed: done done")
			if got := calls[1].args; got != `{"to":"a","from":"x"}` && test.code == "" {
				t.Errorf("%s: it was called with %s", name, got)
			}
			continue
		}
		o.run(always(answering(test.result)))

		b := o.wants(id, "failed: done failed")
		if s := b.Steps[1]; s.Code != test.code || s.Action != nil || strings.Contains(s.Message, "abc") {
			t.Errorf("%s: the step failed for %s (%s), want %s", name, s.Code, s.Message, test.code)
		}
	}
}

func TestResolvedReferencesAreValidated(t *testing.T) {
	t.Parallel()
	o := newFixture(t)

	id := o.submit(steps(true, "create", `{"name":"Ana"}`, "find", `{}`, "create", `{"name":"$1.name"}`))
	calls := o.run(func(c call) outcome {
		if c.tool == "find" {
			return answering(`{"name":{"first":"MARKER"}}`)
		}
		return sent
	})

	b := o.wants(id, "reverted: reverted kept failed")
	if s := b.Steps[2]; s.Code != workflow.CodeRefused || !strings.Contains(s.Message, "/args/name") || strings.Contains(s.Message, "MARKER") {
		t.Errorf("the step failed for %s: %s", s.Code, s.Message)
	}
	if diff := cmp.Diff([]string{"create", "find", "delete"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// service takes decisions as another person than who submitted.
func (o *fixture) approvals() (*approval.Service, approval.Decider) {
	by := approval.Decider{Tenant: o.tenant, Token: uuid.Must(uuid.NewV7()), Name: "ada"}
	tenanttest.Person(o.t, o.db, o.tenant, by.Token, by.Name)
	return approval.New(o.db, o.cache, approval.Config{}), by
}

func TestAStepWaitsForAPersonHoweverLong(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.submit(steps(true, "link", `{"from":"a","to":"b"}`, "ask", `{}`, "find", `{}`))
	o.run(always(sent))
	b := o.wants(id, "running: done running planned")
	service, by := o.approvals()
	o.exec("UPDATE actions SET approval_expires_at = now() + interval '9 days', created_at = now() - interval '9 days' WHERE tenant_id = $1 AND action_id = $2", o.tenant.String(), b.WaitsFor.String())

	if _, err := service.Approve(t.Context(), by, *b.WaitsFor, approval.Approval{}); err != nil {
		t.Fatal(err)
	}
	o.run(always(sent))

	o.wants(id, "completed: done done done")
}

func TestDeniedStepRevertsEarlierSteps(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.submit(steps(true, "link", `{"from":"a","to":"b"}`, "ask", `{}`))
	o.run(always(sent))
	service, by := o.approvals()

	if err := service.Deny(t.Context(), by, *o.get(id).WaitsFor, approval.Denial{Note: "not today"}); err != nil {
		t.Fatal(err)
	}
	o.run(always(sent))

	b := o.wants(id, "reverted: reverted failed")
	if s := b.Steps[1]; s.Code != workflow.CodeDenied || !strings.HasPrefix(s.Message, "denied by ada (") || !strings.HasSuffix(s.Message, "): not today") {
		t.Errorf("the step failed for %s: %s", s.Code, s.Message)
	}
}

func TestUndecidedStepExpires(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.submit(steps(false, "ask", `{}`, "find", `{}`))
	o.run(always(sent))
	o.exec("UPDATE actions SET approval_expires_at = now() - interval '1 second' WHERE tenant_id = $1", o.tenant.String())

	if _, err := approval.Expire(t.Context(), o.db, 1000); err != nil {
		t.Fatal(err)
	}
	o.run(always(sent))

	if b := o.wants(id, "failed: failed skipped"); b.Steps[0].Code != workflow.CodeExpired {
		t.Errorf("the step failed for %s", b.Steps[0].Code)
	}
}

func (o *fixture) resolve(id envelope.ActionID, r deadletter.Resolution) {
	o.t.Helper()
	r.Actor, r.Note = "ada", "seen"
	o.as(func(ctx context.Context, tx pgx.Tx) error { return deadletter.Resolve(ctx, tx, o.tenant, id, r) })
}

func TestWorkflowWaitsForAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		found deadletter.Resolution
		want  string
		calls []string
	}{
		"it happened":    {deadletter.Resolution{Happened: true}, "completed: done done done", []string{"find"}},
		"it runs again":  {deadletter.Resolution{}, "completed: done done done", []string{"link", "find"}},
		"it is given up": {deadletter.Resolution{GiveUp: true}, "reverted: reverted failed skipped", []string{"delete"}},
	} {
		o := newFixture(t)
		id := o.submit(steps(true, "create", `{"name":"a"}`, "link", `{"from":"a","to":"b"}`, "find", `{}`))
		o.run(failing("link", unknown))
		b := o.wants(id, "stuck: done running planned")
		if err := o.service.Resolve(t.Context(), o.tenant, id, "ada", "n", false); !errors.Is(err, fault.Conflict) {
			t.Errorf("%s: Resolve without abandon = %v, want fault.Conflict", name, err)
		}

		o.resolve(*b.WaitsFor, test.found)
		calls := o.run(always(sent))

		o.wants(id, test.want)
		if diff := cmp.Diff(test.calls, names(calls)); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", name, diff)
		}
	}
}

func TestAStuckWorkflowCanBeAbandoned(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.submit(steps(true, "create", `{"name":"a"}`, "link", `{"from":"a","to":"b"}`, "find", `{}`))
	o.run(failing("link", unknown))

	if err := o.service.Resolve(t.Context(), o.tenant, id, "ada", "leave it", true); err != nil {
		t.Fatal(err)
	}
	o.run(always(sent))

	if b := o.wants(id, "resolved: done running skipped"); b.ResolvedBy != "ada" || b.Note != "leave it" || b.EndedAt == nil {
		t.Errorf("it was resolved by %q: %q", b.ResolvedBy, b.Note)
	}
}

// compensation returns a workflow whose second reversal, of create, fails.
func (o *fixture) compensation() workflow.ID {
	o.t.Helper()
	id := o.submit(steps(true, "link", `{"from":"a","to":"b"}`, "create", `{"name":"a"}`, "link", `{"from":"$1.id","to":"c"}`, "ask", `{}`))
	o.run(failing("delete", failed))
	service, by := o.approvals()
	if err := service.Deny(o.t.Context(), by, *o.get(id).WaitsFor, approval.Denial{}); err != nil {
		o.t.Fatal(err)
	}
	o.run(failing("delete", failed))
	b := o.wants(id, "compensation_failed: done revert_failed reverted failed")
	if b.Steps[1].Code != "tool_error" || b.Steps[1].ReversalAction == nil {
		o.t.Fatalf("the reversal failed for %+v", b.Steps[1])
	}
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		all, err := workflow.List(ctx, tx, o.tenant, workflow.Filter{NeedsOperator: true, Limit: 10})
		if len(all) != 1 || all[0].ID != id {
			o.t.Errorf("%d workflows wait for an operator", len(all))
		}
		return err
	})
	return id
}

func TestAReversalThatFailedIsRetried(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.compensation()
	first := *o.get(id).Steps[1].ReversalAction
	service, ada := o.approvals()
	inbox, err := service.Inbox(t.Context(), ada, approval.InboxQuery{Most: 10})
	if err != nil || len(inbox) != 1 || inbox[0].Kind != approval.InboxCompensation || workflow.ID(inbox[0].Workflow) != id || inbox[0].Code != "tool_error" {
		t.Errorf("the inbox holds %+v, %v", inbox, err)
	}
	// Meanwhile the declaration was corrected.
	o.reversal("create", "delete", `{"id":"fixed"}`)

	if err := o.service.Retry(t.Context(), o.tenant, id, "ada", "once more"); err != nil {
		t.Fatal(err)
	}
	calls := o.run(always(sent))

	b := o.wants(id, "reverted: reverted reverted reverted failed")
	if diff := cmp.Diff([]string{"delete", "unlink"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if calls[0].args != `{"id":"fixed"}` || calls[0].external != "revert:"+b.Steps[1].Action.String()+":002" || *b.Steps[1].ReversalAction == first {
		t.Errorf("the second try was %+v", calls[0])
	}
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := deadletter.Get(ctx, tx, o.tenant, first); !errors.Is(err, fault.NotFound) {
			t.Errorf("the first reversal is a dead letter still: %v", err)
		}
		return nil
	})
	if err := o.service.Retry(t.Context(), o.tenant, id, "ada", ""); !errors.Is(err, fault.Conflict) {
		t.Errorf("Retry of what is reverted = %v, want fault.Conflict", err)
	}
}

func TestReplayedReversalResumesItsWorkflow(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.compensation()
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		_, err := deadletter.Replay(ctx, tx, o.tenant, deadletter.BulkRequest{Limit: 10, Actor: "ada"}, deadletter.ReplayOptions{})
		return err
	})
	if err := o.service.Retry(t.Context(), o.tenant, id, "ada", ""); !errors.Is(err, fault.Conflict) {
		t.Errorf("Retry while it runs again = %v, want fault.Conflict", err)
	}

	calls := o.run(always(sent))

	o.wants(id, "reverted: reverted reverted reverted failed")
	if diff := cmp.Diff([]string{"delete", "unlink"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAReversalThatFailedIsResolved(t *testing.T) {
	t.Parallel()
	for want, abandon := range map[string]bool{
		"reverted: reverted resolved reverted failed": false,
		"resolved: done resolved reverted failed":     true,
	} {
		o := newFixture(t)
		id := o.compensation()

		if err := o.service.Resolve(t.Context(), o.tenant, id, "ada", "by hand", abandon); err != nil {
			t.Fatal(err)
		}
		o.run(always(sent))

		if b := o.wants(id, want); b.ResolvedBy != "ada" || b.Note != "by hand" {
			t.Errorf("it was resolved by %q: %q", b.ResolvedBy, b.Note)
		}
	}
}

func TestAReversalThatPointsAtNothingStopsTheWorkflow(t *testing.T) {
	t.Parallel()
	o := newFixture(t)

	id := o.submit(steps(true, "link", `{"from":"a","to":"b"}`, "create", `{"name":"a"}`, "find", `{}`))
	calls := o.run(failing("create", answering(`{"nick":"a"}`)))

	b := o.wants(id, "compensation_failed: done revert_failed skipped")
	if b.Code != workflow.CodeIrreversible || b.Steps[1].Code != reference.CodeMissing || b.Steps[1].ReversalAction != nil {
		t.Errorf("it stopped for %s, the step for %s", b.Code, b.Steps[1].Code)
	}
	if diff := cmp.Diff([]string{"link", "create"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	o.reversal("create", "delete", `{"id":"$outputs/nick"}`)
	if err := o.service.Retry(t.Context(), o.tenant, id, "ada", ""); err != nil {
		t.Fatal(err)
	}
	o.run(always(sent))
	o.wants(id, "reverted: reverted reverted skipped")
}

func TestExistingEffectsAreNotReverted(t *testing.T) {
	t.Parallel()
	there := outcome{status: envelope.StatusConflict, result: `{"id":"theirs"}`}
	again := there
	again.attempt = 1

	o := newFixture(t)
	id := o.submit(steps(true, "create", `{"name":"a"}`, "link", `{"from":"a","to":"b"}`))
	calls := o.run(func(c call) outcome {
		if c.tool == "create" {
			return there
		}
		return failed
	})
	o.wants(id, "reverted: kept failed")
	if diff := cmp.Diff([]string{"create", "link"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}

	// After an attempt of its own, the owner of the effect is unknown.
	o = newFixture(t)
	id = o.submit(steps(true, "create", `{"name":"a"}`, "link", `{"from":"a","to":"b"}`))
	o.run(func(c call) outcome {
		if c.tool == "create" {
			return again
		}
		return failed
	})
	if b := o.wants(id, "compensation_failed: revert_failed failed"); b.Steps[0].Code != workflow.CodeAlreadyPresent {
		t.Errorf("the step is not taken back for %s", b.Steps[0].Code)
	}
	if err := o.service.Retry(t.Context(), o.tenant, id, "ada", "it is ours"); err != nil {
		t.Fatal(err)
	}
	o.run(always(sent))
	o.wants(id, "reverted: reverted failed")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		atomic bool
		works  int
		want   string
	}{
		"before anything":            {false, 0, "cancelled: failed skipped skipped"},
		"after a step":               {false, 1, "cancelled: done failed skipped"},
		"atomic, before anything":    {true, 0, "reverted: failed skipped skipped"},
		"atomic, after a step":       {true, 1, "reverted: reverted failed skipped"},
		"atomic, after another step": {true, 2, "reverted: reverted reverted failed"},
	} {
		o := newFixture(t)
		id := o.submit(steps(test.atomic, "create", `{"name":"a"}`, "link", `{"from":"$0.id","to":"b"}`, "ask", `{}`))
		o.sweep()
		for range test.works {
			o.work(always(sent))
			o.sweep()
		}

		for range 2 {
			if err := o.service.Cancel(t.Context(), o.tenant, id, "ada"); err != nil {
				t.Fatal(err)
			}
		}
		o.run(always(sent))

		b := o.wants(id, test.want)
		if b.Code != workflow.CodeCancelled || b.CancelledBy != "ada" {
			t.Errorf("%s: it stopped for %s by %q", name, b.Code, b.CancelledBy)
		}
		if err := o.service.Cancel(t.Context(), o.tenant, id, "ada"); !errors.Is(err, fault.Conflict) {
			t.Errorf("%s: Cancel at the end = %v, want fault.Conflict", name, err)
		}
	}
}

// A step that is being sent is allowed to end, and then reverted. If it goes
// back to the schedule instead, it is undone there.
func TestCancelDuringACall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ends  outcome
		want  string
		calls []string
	}{
		"it is done":        {sent, "reverted: reverted skipped", []string{"delete"}},
		"it fails":          {failed, "reverted: failed skipped", nil},
		"it is tried later": {outcome{status: envelope.StatusPending}, "reverted: failed skipped", nil},
	} {
		o := newFixture(t)
		id := o.submit(steps(true, "create", `{"name":"a"}`, "find", `{}`))
		o.sweep()
		items, calls := o.claim()
		if err := o.service.Cancel(t.Context(), o.tenant, id, "ada"); err != nil {
			t.Fatal(err)
		}
		o.sweep()
		o.wants(id, "running: running planned")

		o.settle(items, calls, always(test.ends))
		o.exec("UPDATE workflows SET check_at = now() WHERE tenant_id = $1", o.tenant.String())
		calls = o.run(always(sent))

		o.wants(id, test.want)
		if diff := cmp.Diff(test.calls, names(calls)); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", name, diff)
		}
	}
}

func TestCancelOfAStuckWorkflowWaitsForTheOutcome(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.submit(steps(true, "link", `{"from":"a","to":"b"}`, "find", `{}`))
	o.run(always(unknown))
	if err := o.service.Cancel(t.Context(), o.tenant, id, "ada"); err != nil {
		t.Fatal(err)
	}
	o.run(always(sent))
	b := o.wants(id, "stuck: running planned")

	o.resolve(*b.WaitsFor, deadletter.Resolution{Happened: true})
	calls := o.run(always(sent))

	o.wants(id, "reverted: reverted skipped")
	if diff := cmp.Diff([]string{"unlink"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestATokenThatIsRevokedProposesNothingMore(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	by := o.by()
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		made, err := identity.Issue(ctx, tx, o.tenant, identity.Grant{Name: "agent", Role: identity.RoleAgent}, time.Now())
		by.Token = uuid.UUID(made.Principal.Token)
		return err
	})
	id, _, err := o.service.Submit(t.Context(), by, steps(true, "create", `{"name":"a"}`, "find", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	o.sweep()
	o.exec("UPDATE api_tokens SET revoked_at = now() WHERE token_id = $1", by.Token.String())

	calls := o.run(always(sent))

	if b := o.wants(id, "reverted: reverted skipped"); b.Code != workflow.CodeTokenRevoked {
		t.Errorf("it stopped for %s", b.Code)
	}
	if diff := cmp.Diff([]string{"create", "delete"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAPersonWhoIsDisabledProposesNothingMore(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	by := o.by()
	by.Token = uuid.Must(uuid.NewV7())
	o.exec("INSERT INTO operators (tenant_id, operator_id, name) VALUES ($1, $2, 'Ana')", o.tenant.String(), by.Token.String())
	id, _, err := o.service.Submit(t.Context(), by, steps(false, "find", `{}`, "find", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	o.sweep()
	o.exec("UPDATE operators SET disabled_at = now() WHERE operator_id = $1", by.Token.String())

	o.run(always(sent))

	if b := o.wants(id, "failed: done skipped"); b.Code != workflow.CodeTokenRevoked {
		t.Errorf("it stopped for %s", b.Code)
	}
}

// The definition of a tool changes after the workflow was accepted: its step uses
// the new one, and needs approval.
func TestAToolThatDriftsBetweenSteps(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	id := o.submit(steps(false, "find", `{}`, "send", `{"to":"$0.id"}`))
	gone := o.submit(steps(false, "find", `{}`, "either", `{"kind":"a","a":1}`))
	o.sweep()
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		all := tools()
		for i := range all {
			if all[i].Name == "send" {
				all[i].Description = "Sends, and reads your mail."
			}
		}
		return catalog.PutListing(ctx, tx, o.tenant, "crm", all[:len(all)-1])
	})

	o.run(always(sent))

	b := o.wants(id, "running: done running")
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		views, err := outbox.Get(ctx, tx, o.tenant, *b.WaitsFor)
		if err == nil && !strings.Contains(views[0].ModeSource, "drift") {
			t.Errorf("the step is %s by %s, want that drift asks for a person", views[0].Mode, views[0].ModeSource)
		}
		return err
	})
	if b := o.wants(gone, "failed: done failed"); b.Steps[1].Code != workflow.CodeRefused {
		t.Errorf("the step whose tool is gone failed for %s", b.Steps[1].Code)
	}
}

func TestALimitOfTheSessionIsWaitedOut(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.exec("UPDATE tenants SET session_minute_max = 1 WHERE tenant_id = $1", o.tenant.String())
	by := o.by()
	by.Session = "s"
	id, _, err := o.service.Submit(t.Context(), by, steps(false, "find", `{}`, "find", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	o.run(always(sent))
	o.wants(id, "running: done planned")

	o.exec("UPDATE tenants SET session_minute_max = 0 WHERE tenant_id = $1", o.tenant.String())
	o.exec("UPDATE workflows SET check_at = now() WHERE tenant_id = $1", o.tenant.String())
	o.run(always(sent))

	o.wants(id, "completed: done done")
}

// Such names are refused now; one may be there from before.
func TestAnotherEnvelopeOfTheStepsNameIsNotTaken(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.submit(steps(false, "find", `{}`))
	by := o.by()
	by.Reserved = true
	answers, err := o.in.Accept(t.Context(), by, []*envelope.Proposal{{
		Type: envelope.TypeExec, ExternalID: "workflow:" + id.String() + ":0", Tool: envelope.Tool{Name: "find", Source: "crm"}, Args: []byte(`{}`),
	}})
	if err != nil || answers[0].Err != nil {
		t.Fatal(err, answers)
	}

	o.run(always(sent))

	if b := o.wants(id, "failed: failed"); b.Steps[0].Code != workflow.CodeNameTaken {
		t.Errorf("the step failed for %s", b.Steps[0].Code)
	}
}

// A failed step of an atomic workflow is not a dead letter: a replay would
// repeat a reverted effect.
func TestAFailedStepOfAnAtomicWorkflowIsNotReplayed(t *testing.T) {
	t.Parallel()
	for atomic, want := range map[bool]int{true: 0, false: 1} {
		o := newFixture(t)
		o.submit(steps(atomic, "create", `{"name":"a"}`, "link", `{"from":"a","to":"b"}`))
		o.run(failing("link", failed))

		o.as(func(ctx context.Context, tx pgx.Tx) error {
			all, err := deadletter.List(ctx, tx, o.tenant, deadletter.Filter{Limit: 10})
			if len(all) != want {
				t.Errorf("atomic %t: %d dead letters, want %d", atomic, len(all), want)
			}
			return err
		})
	}
}

func TestPruneDeletesWhatTheExecutionLogDeletes(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	old, young, alive := o.submit(steps(false, "find", `{}`)), o.submit(steps(false, "find", `{"a":1}`)), o.submit(steps(false, "ask", `{}`))
	o.run(always(sent))
	o.exec("UPDATE workflows SET ended_at = now() - interval '40 days' WHERE workflow_id = $1", old.String())
	o.exec("UPDATE workflows SET created_at = now() - interval '40 days' WHERE workflow_id = $1", alive.String())
	if n, err := workflow.Prune(t.Context(), o.db); n != 0 || err != nil {
		t.Errorf("Prune without retention = %d, %v", n, err)
	}
	o.exec("INSERT INTO retention (tenant_id, kind, days, action) VALUES ($1, 'actions', 30, 'delete')", o.tenant.String())

	n, err := workflow.Prune(t.Context(), o.db)

	if n != 1 || err != nil {
		t.Errorf("Prune = %d, %v, want 1", n, err)
	}
	o.wants(young, "completed: done")
	o.wants(alive, "running: running")
}
