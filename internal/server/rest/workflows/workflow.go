// Package workflows handles requests about workflows.
package workflows

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source"
)

// workflowRequest is the body of a new workflow.
type workflowRequest struct {
	Steps        []stepAsked         `json:"steps"`
	Atomic       bool                `json:"atomic"`
	DryRun       bool                `json:"dry_run"`
	Wait         envelope.Duration   `json:"wait"`
	ExternalID   string              `json:"external_id"`
	SessionID    string              `json:"session_id"`
	EmployeeID   envelope.EmployeeID `json:"employee_id"`
	AutomationID string              `json:"automation_id"`
}

type stepAsked struct {
	Tool        string               `json:"tool"`
	Inputs      json.RawMessage      `json:"inputs"`
	Risk        envelope.Risk        `json:"risk"`
	Approval    envelope.Approval    `json:"approval"`
	Constraints envelope.Constraints `json:"constraints"`
}

// request is the workflow with its name.
func (in workflowRequest) request(c *request.Call) (workflow.Request, error) {
	key := c.R.Header.Get("Idempotency-Key")
	switch {
	case key == "" && in.ExternalID == "" && !in.DryRun:
		return workflow.Request{}, request.Invalid("/external_id", envelope.RuleRequired, "set external_id or the header Idempotency-Key, so that sending the workflow again is safe")
	case key != "" && in.ExternalID != "" && key != in.ExternalID:
		return workflow.Request{}, request.Invalid("/external_id", "same", "differs from the Idempotency-Key; send only one of them")
	case key != "":
		in.ExternalID = key
	}
	r := workflow.Request{
		ExternalID: in.ExternalID, Atomic: in.Atomic, Session: in.SessionID, Employee: in.EmployeeID, Automation: in.AutomationID,
		Steps: make([]workflow.StepRequest, len(in.Steps)),
	}
	for i, s := range in.Steps {
		r.Steps[i] = workflow.StepRequest(s)
	}
	return r, nil
}

// workflowFor returns a workflow as the caller may see it.
func workflowFor(c *request.Call, b *workflow.Workflow) wire.Workflow {
	shown := wire.Workflow{
		ID: uuid.UUID(b.ID), ExternalID: b.ExternalID, Atomic: b.Atomic, State: string(b.State), Code: b.Code, Message: b.Message, StoppedAt: b.StoppedAt,
		WaitsFor: b.WaitsFor, ProposedBy: b.Proposer, SessionID: b.Session, EmployeeID: b.Employee, Automation: b.Automation,
		CancelledBy: envelope.Actor(b.CancelledBy), ResolvedBy: envelope.Actor(b.ResolvedBy), Note: b.Note, CreatedAt: b.CreatedAt.UTC(), UpdatedAt: b.UpdatedAt.UTC(),
		EndedAt: postgres.UTC(b.EndedAt), Steps: make([]wire.WorkflowStep, len(b.Steps)),
	}
	for i, s := range b.Steps {
		shown.Steps[i] = wire.WorkflowStep{Step: i, Tool: s.Tool.String(), Inputs: access.Args(c.By, s.Inputs), State: string(s.State), ActionID: s.Action, Code: s.Code, Message: s.Message}
		if s.Reversal != nil {
			shown.Steps[i].Reversal = &wire.StepReversal{Tool: s.Reversal.Tool.String(), ActionID: s.ReversalAction}
		}
	}
	return shown
}

func service(c *request.Call) *workflow.Service { return workflow.NewService(c.DB, c.Catalog, c.Wake) }

// Submit handles POST /api/v1/workflows. It starts a workflow, or checks it
// only with dry_run.
func Submit(c *request.Call, in workflowRequest) error {
	if err := request.CheckDuration("/wait", in.Wait, 0, request.MaxWait); err != nil {
		return err
	}
	r, err := in.request(c)
	if err != nil {
		return err
	}
	by := c.Submitter()
	by.Origin = request.Origin(c.R.Context(), execution.ViaWorkflow)
	if in.DryRun {
		steps, err := service(c).Preview(c.R.Context(), by, r)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, plannedFrom(in.Atomic, steps))
	}
	id, known, err := service(c).Submit(c.R.Context(), by, r)
	if err != nil {
		return err
	}
	c.WaitFor = time.Duration(in.Wait)
	c.W.Header().Set("Location", "/api/v1/workflows/"+id.String())
	status := http.StatusCreated
	if known {
		status = http.StatusOK
	}
	return showWorkflow(c, id, status)
}

func plannedFrom(atomic bool, steps []workflow.PlannedStep) wire.WorkflowPlan {
	shown := make([]wire.PlannedStep, len(steps))
	for i, p := range steps {
		shown[i] = wire.PlannedStep{Step: i, Tool: p.Tool.String(), Mode: p.Mode, ModeSource: p.Source, References: append([]string{}, p.References...)}
		if p.Reversal != nil {
			shown[i].Reversal = &wire.StepReversal{Tool: p.Reversal.Tool.String()}
		}
	}
	return wire.WorkflowPlan{DryRun: true, Atomic: atomic, Steps: shown}
}

// workflowOf reads a workflow that the caller may see. Any other is
// fault.NotFound.
func workflowOf(c *request.Call, ctx context.Context, tx pgx.Tx, id workflow.ID) (*workflow.Workflow, error) {
	b, err := workflow.Get(ctx, tx, c.By.Tenant, id)
	if err == nil && !access.SeesSession(c.By, b.Session) {
		err = fault.New(fault.NotFound, "no workflow %s", id)
	}
	return b, err
}

// workflowID returns the {id} in the path.
func workflowID(c *request.Call) (workflow.ID, error) {
	id, err := c.ActionID()
	return workflow.ID(id), err
}

// showWorkflow answers with a workflow, after its end if the caller wants to
// wait. A workflow that needs a person counts as ended here.
func showWorkflow(c *request.Call, id workflow.ID, status int) error {
	if c.WaitFor > 0 {
		closed, err := c.OpenWait()
		if err != nil {
			return err
		}
		if closed == nil {
			c.WaitFor = 0
		} else {
			defer closed()
		}
	}
	wait := request.Wait{Most: c.WaitFor, Every: c.Poll, Closed: c.Broker.Closed()}
	shown, settled, err := request.Await(c.R.Context(), wait, func(context.Context) (wire.Workflow, bool, error) { return readWorkflow(c, id) })
	if err != nil {
		return err
	}
	if !settled && c.WaitFor > 0 {
		c.W.Header().Set("Countersign-Pending", "true")
	}
	return c.JSON(status, shown)
}

// readWorkflow reads a workflow with the outputs of its steps.
func readWorkflow(c *request.Call, id workflow.ID) (shown wire.Workflow, settled bool, err error) {
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		b, err := workflowOf(c, ctx, tx, id)
		if err != nil {
			return err
		}
		shown, settled = workflowFor(c, b), b.State.Ended() || b.State == workflow.StateCompensationFailed || b.State == workflow.StateStuck
		views, err := outbox.Get(ctx, tx, c.By.Tenant, b.Actions()...)
		for i := range shown.Steps {
			for _, v := range views {
				if a := shown.Steps[i].ActionID; a != nil && v.Envelope.ActionID == *a {
					shown.Steps[i].Outputs = source.Outputs(v.Envelope.Result.Output)
				}
			}
		}
		return err
	})
	return shown, settled, err
}

// Get handles GET /api/v1/workflows/{id}. It shows a workflow, after its end if
// the caller wants to wait.
func Get(c *request.Call) error {
	id, err := workflowID(c)
	if err != nil {
		return err
	}
	return showWorkflow(c, id, http.StatusOK)
}

// List handles GET /api/v1/workflows. It lists workflows, newest first.
func List(c *request.Call) error {
	q := c.Query
	f := workflow.Filter{
		State: workflow.State(q.Get("state")), Session: q.Get("session_id"), ExternalID: q.Get("external_id"), NeedsOperator: q.Get("needs_operator") == "true",
	}
	var visible bool
	f.Session, visible = access.SessionFilter(c.By, f.Session)
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]*workflow.Workflow, error) {
		if !visible {
			return nil, nil
		}
		f.Before, f.Limit = workflow.ID(before), most
		return workflow.List(ctx, tx, c.By.Tenant, f)
	}
	return request.AnswerPage(c, "workflows", read, func(b *workflow.Workflow) wire.Workflow { return workflowFor(c, b) },
		func(b *workflow.Workflow) envelope.ActionID { return envelope.ActionID(b.ID) })
}

// Cancel handles POST /api/v1/workflows/{id}/cancel. It cancels a workflow.
func Cancel(c *request.Call) error {
	return changeWorkflow(c, func(id workflow.ID, _ wire.WorkflowResolution) error {
		return service(c).Cancel(c.R.Context(), c.By.Tenant, id, c.By.Actor())
	})
}

// Retry handles POST /api/v1/workflows/{id}/retry. It retries a workflow that
// needs a person.
func Retry(c *request.Call) error {
	return changeWorkflow(c, func(id workflow.ID, d wire.WorkflowResolution) error {
		return service(c).Retry(c.R.Context(), c.By.Tenant, id, string(c.By.Actor()), d.Note)
	})
}

// Resolve handles POST /api/v1/workflows/{id}/resolve. It resolves a workflow
// that needs a person.
func Resolve(c *request.Call) error {
	return changeWorkflow(c, func(id workflow.ID, d wire.WorkflowResolution) error {
		return service(c).Resolve(c.R.Context(), c.By.Tenant, id, string(c.By.Actor()), d.Note, d.Abandon)
	})
}

// changeWorkflow changes a workflow that the caller may see, and answers with
// it.
func changeWorkflow(c *request.Call, change func(workflow.ID, wire.WorkflowResolution) error) error {
	var d wire.WorkflowResolution
	if len(c.Body) > 0 {
		if err := c.Decode(&d); err != nil {
			return err
		}
	}
	id, err := workflowID(c)
	if err != nil {
		return err
	}
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := workflowOf(c, ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	if err := change(id, d); err != nil {
		return err
	}
	return showWorkflow(c, id, http.StatusOK)
}
