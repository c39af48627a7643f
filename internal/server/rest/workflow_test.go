package rest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const workflows = "/api/v1/workflows"

// shownWorkflow is the part of a workflow that tests compare.
type shownWorkflow struct {
	ID        string `json:"workflow_id"`
	State     string
	Code      string
	SessionID string  `json:"session_id"`
	WaitsFor  *string `json:"waits_for"`
	Steps     []struct {
		Tool, State string
		ActionID    *string `json:"action_id"`
		Outputs     json.RawMessage
		Reversal    *struct{ Tool string }
	}
}

func (a answer) workflow(t testing.TB) (b shownWorkflow) {
	t.Helper()
	a.into(t, &b)
	return b
}

// workflow submits one as the agent, and sets its state.
func (f *tenantFixture) workflow(state string) string {
	f.t.Helper()
	id := f.agent.send("POST", workflows, object{"external_id": uuid.NewString(), "steps": []any{object{"tool": "mail:read"}}}).wants(f.t, 201).workflow(f.t).ID
	if state == "compensation_failed" {
		f.inTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE workflows SET state = $2, atomic = true, code = 'step_failed' WHERE workflow_id = $1", id, state)
			if err == nil {
				_, err = tx.Exec(ctx, "UPDATE workflow_steps SET state = 'revert_failed' WHERE workflow_id = $1", id)
			}
			return err
		})
	}
	return id
}

// drive moves workflows on, as the fleet does.
func (f *tenantFixture) drive() {
	f.t.Helper()
	if _, err := f.tryDrive(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *tenantFixture) tryDrive(ctx context.Context) (int, error) {
	n, _, err := workflow.NewDriver(f.db, intake.New(f.db, settings.NewCache(), intake.Config{}), slog.New(slog.DiscardHandler)).Sweep(ctx)
	return n, err
}

func TestAWorkflowFromItsSubmissionToItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("workflows")
	body := object{"external_id": "b-1", "steps": []any{
		object{"tool": "mail:read", "inputs": object{"q": "x"}},
		object{"tool": "read", "inputs": object{"ok": "$0.ok"}, "constraints": object{"urgent": true}, "risk": "medium"},
	}}

	first := f.agent.send("POST", workflows, body).wants(t, http.StatusCreated)
	known := f.agent.send("POST", workflows, body).wants(t, http.StatusOK)
	for range 2 {
		f.drive()
		f.settle(envelope.StatusSent, "")
	}
	f.drive()
	b := f.agent.send("GET", first.header.Get("Location")+"?wait=1s", nil).wants(t, 200).workflow(t)

	if got := known.workflow(t); got.ID != b.ID || got.SessionID != "s-one" {
		t.Errorf("the same again is %+v", got)
	}
	if b.State != "completed" || b.Steps[1].State != "done" || string(b.Steps[1].Outputs) != `{"ok":true}` {
		t.Errorf("the workflow is %+v", b)
	}
	action := f.agent.send("GET", path(*b.Steps[1].ActionID), nil).wants(t, 200)
	if !strings.Contains(string(action.body), `"args":{"ok":true}`) {
		t.Errorf("the second step is %s", action.body)
	}
	f.operator.send("GET", workflows+"?session_id=s-one", nil).wants(t, 200)
	f.other.send("GET", workflows+"/"+b.ID, nil).wants(t, 404)
	f.other.send("POST", workflows+"/"+b.ID+"/cancel", nil).wants(t, 404)
	f.agent.send("POST", workflows+"/"+b.ID+"/cancel", nil).wants(t, 409)
	for who, want := range map[*client]int{f.agent: 1, f.other: 0, f.operator: 1} {
		var page struct{ Items []shownWorkflow }
		who.send("GET", workflows, nil).wants(t, 200).into(t, &page)
		if len(page.Items) != want {
			t.Errorf("somebody sees %d workflows, want %d", len(page.Items), want)
		}
	}
	var page struct{ Items []shownWorkflow }
	f.other.send("GET", workflows+"?session_id=s-one", nil).wants(t, 200).into(t, &page)
	if len(page.Items) != 0 {
		t.Errorf("another agent sees %d workflows of the session", len(page.Items))
	}
}

func TestAWorkflowIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("waiting")
	ended := make(chan answer, 1)
	go func() { // waited for below
		a, err := f.agent.trySend(t.Context(), "POST", workflows, object{"external_id": "b", "wait": "1m", "steps": []any{object{"tool": "mail:read"}}})
		if err != nil {
			t.Error(err)
		}
		ended <- a
	}()

	for done := false; !done; {
		if _, err := f.tryDrive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.trySettle(t.Context(), envelope.StatusSent, ""); err != nil {
			t.Fatal(err)
		}
		select {
		case a := <-ended:
			if b := a.wants(t, 201).workflow(t); b.State != "completed" || a.header.Get("Countersign-Pending") != "" {
				t.Errorf("the answer is %s", a.body)
			}
			done = true
		default:
		}
	}

	id := f.agent.send("POST", workflows, object{"external_id": "w", "wait": "0s", "steps": []any{object{"tool": "mail:write"}}}).wants(t, 201).workflow(t).ID
	if a := f.agent.send("GET", workflows+"/"+id+"?wait=1ms", nil).wants(t, 200); a.header.Get("Countersign-Pending") != "true" {
		t.Errorf("a workflow that has not ended is answered without saying so")
	}
}

func TestInvalidWorkflowIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("refused")
	step := func(tool string, inputs object) object { return object{"tool": tool, "inputs": inputs} }
	for name, test := range map[string]struct {
		body object
		want []string
	}{
		"without a name":    {object{"steps": []any{step("mail:read", nil)}}, []string{"/steps/0/inputs"}},
		"without its name":  {object{"steps": []any{object{"tool": "mail:read"}}}, []string{"/external_id"}},
		"without steps":     {object{"external_id": "x", "steps": []any{}}, []string{"/steps"}},
		"an unknown field":  {object{"external_id": "x", "steps": []any{object{"tool": "mail:read", "args": object{}}}}, []string{"/steps/0/args"}},
		"bad inputs":        {object{"external_id": "x", "steps": []any{step("mail:read", object{}), step("mail:write", object{"n": marker})}}, []string{"/steps/1/inputs/n"}},
		"irreversible":      {object{"external_id": "x", "atomic": true, "steps": []any{step("mail:write", object{})}}, []string{"/steps/0/tool"}},
		"denied":            {object{"external_id": "x", "steps": []any{step("mail:danger", object{})}}, []string{"/steps/0/tool"}},
		"a circle":          {object{"external_id": "x", "steps": []any{step("mail:read", object{"a": "$0.x"})}}, []string{"/steps/0/inputs/a"}},
		"of a dry run too":  {object{"dry_run": true, "steps": []any{step("mail:read", object{"a": "$7.x"})}}, []string{"/steps/0/inputs/a"}},
		"a session of else": {object{"external_id": "x", "session_id": "s-two", "steps": []any{step("mail:read", object{})}}, []string{"/session_id"}},
	} {
		p := f.agent.send("POST", workflows, test.body).wants(t, 400).problem(t)
		var at []string
		for _, e := range p.Errors {
			at = append(at, e.Pointer)
		}
		if diff := cmp.Diff(test.want, at); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if a := f.agent.send("POST", workflows, object{"external_id": "a", "steps": []any{object{"tool": "mail:read"}}}, "Idempotency-Key", "b"); a.status != 400 {
		t.Errorf("two names are %d", a.status)
	}
}

func TestADryRunOfAWorkflow(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("dry-runs")

	var plan struct {
		DryRun bool `json:"dry_run"`
		Steps  []struct {
			Tool, Mode string
			References []string
		}
	}
	f.agent.send("POST", workflows, object{"dry_run": true, "steps": []any{
		object{"tool": "read"}, object{"tool": "mail:write", "inputs": object{"to": "$0.from"}},
	}}).wants(t, 200).into(t, &plan)

	if !plan.DryRun || len(plan.Steps) != 2 || plan.Steps[0].Tool != "mail:read" || plan.Steps[0].Mode != "allow" ||
		plan.Steps[1].Mode != "require_approval" || !slices.Equal(plan.Steps[1].References, []string{"$steps.0/from"}) {
		t.Errorf("the plan is %+v", plan)
	}
	var page struct{ Items []shownWorkflow }
	f.agent.send("GET", workflows, nil).wants(t, 200).into(t, &page)
	if len(page.Items) != 0 {
		t.Errorf("a dry run made %d workflows", len(page.Items))
	}
}

// Nobody may approve their own proposal, nor its reversal.
func TestTheProposerOfAWorkflowApprovesNoneOfIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("own")
	id := f.operator.send("POST", workflows, object{"external_id": "x", "steps": []any{object{"tool": "mail:write"}}}).wants(t, 201).workflow(t).ID
	f.drive()
	b := f.operator.send("GET", workflows+"/"+id, nil).wants(t, 200).workflow(t)

	f.operator.send("POST", path(*b.WaitsFor, "/approve"), nil).wants(t, 403)
	f.admin.send("POST", path(*b.WaitsFor, "/approve"), nil).wants(t, 200)
}
