package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
)

const workflowsPath = "/api/v1/workflows"

// SubmittedWorkflow is the answer to SubmitWorkflow.
type SubmittedWorkflow struct {
	Workflow wire.Workflow
	// Known reports whether the workflow had been accepted before.
	Known bool
	// Pending reports whether it had not ended when the time to wait was over.
	Pending bool
}

// SubmitWorkflow submits a workflow, an object as in the API, whose
// external_id makes it safe to repeat. The server waits for its wait; the
// argument must not be less.
func (c *Client) SubmitWorkflow(ctx context.Context, workflow json.RawMessage, wait time.Duration) (SubmittedWorkflow, error) {
	var s SubmittedWorkflow
	answer, err := c.do(ctx, request{method: http.MethodPost, path: workflowsPath, in: workflow, wait: wait, repeatable: true}, &s.Workflow)
	if err != nil {
		return SubmittedWorkflow{}, err
	}
	s.Known, s.Pending = answer.StatusCode == http.StatusOK, pending(answer)
	return s, nil
}

// PlanWorkflow checks a workflow, whose dry_run must be set, and changes
// nothing.
func (c *Client) PlanWorkflow(ctx context.Context, workflow json.RawMessage) (wire.WorkflowPlan, error) {
	return post[wire.WorkflowPlan](ctx, c, workflowsPath, workflow)
}

// WorkflowFilter narrows a list of workflows; its zero fields do not.
type WorkflowFilter struct {
	State, Session, ExternalID string
	// NeedsOperator selects those that wait for an operator.
	NeedsOperator bool
	// Limit is the size of a page; zero means 50. Cursor is the NextCursor of the
	// previous page.
	Limit  int
	Cursor string
}

// Workflows lists workflows, newest first.
func (c *Client) Workflows(ctx context.Context, f WorkflowFilter) (wire.Page[wire.Workflow], error) {
	return read[wire.Page[wire.Workflow]](ctx, c, workflowsPath, given("state", f.State, "session_id", f.Session,
		"external_id", f.ExternalID, "needs_operator", flag(f.NeedsOperator), "limit", number(f.Limit), "cursor", f.Cursor))
}

// Workflow returns a workflow when it has ended, needs a person, or the time
// is over; zero does not wait. ended reports whether it has ended.
func (c *Client) Workflow(ctx context.Context, id uuid.UUID, wait time.Duration) (w wire.Workflow, ended bool, err error) {
	rq := request{method: http.MethodGet, path: workflowsPath + "/" + id.String()}
	answer, err := c.do(ctx, rq.waiting("wait", wait), &w)
	if err != nil {
		return wire.Workflow{}, false, err
	}
	return w, !pending(answer), nil
}

// CancelWorkflow stops a workflow. A workflow that has stopped already is
// ErrConflict.
func (c *Client) CancelWorkflow(ctx context.Context, id uuid.UUID) (wire.Workflow, error) {
	return post[wire.Workflow](ctx, c, workflowsPath+"/"+id.String()+"/cancel", nil)
}

// RetryWorkflow retries the reversal that failed. The note may be empty.
func (c *Client) RetryWorkflow(ctx context.Context, id uuid.UUID, note string) (wire.Workflow, error) {
	return post[wire.Workflow](ctx, c, workflowsPath+"/"+id.String()+"/retry", wire.Note{Note: note})
}

// ResolveWorkflow records that a person has dealt with the reversal that failed.
func (c *Client) ResolveWorkflow(ctx context.Context, id uuid.UUID, r wire.WorkflowResolution) (wire.Workflow, error) {
	return post[wire.Workflow](ctx, c, workflowsPath+"/"+id.String()+"/resolve", r)
}
