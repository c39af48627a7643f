package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

const workflowsPath = "/api/v1/workflows"

// Workflow is several calls in order, as they stand.
type Workflow struct {
	ID         uuid.UUID `json:"workflow_id"`
	ExternalID string    `json:"external_id"`
	Atomic     bool      `json:"atomic"`
	// State is running, reverting, stuck, compensation_failed, completed,
	// failed, cancelled, reverted or resolved.
	State string `json:"state"`
	// Code and Message say why it goes no further.
	Code    string `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
	// StoppedAt is the step at which that was; nil while it goes on.
	StoppedAt *int `json:"stopped_at"`
	// WaitsFor is the action whose end moves it on; nil for none.
	WaitsFor    *envelope.ActionID  `json:"waits_for"`
	ProposedBy  string              `json:"proposed_by"`
	SessionID   string              `json:"session_id,omitzero"`
	EmployeeID  envelope.EmployeeID `json:"employee_id,omitzero"`
	Automation  string              `json:"automation_id,omitzero"`
	CancelledBy string              `json:"cancelled_by,omitzero"`
	ResolvedBy  string              `json:"resolved_by,omitzero"`
	Note        string              `json:"note,omitzero"`
	CreatedAt   time.Time           `json:"created_at"`
	UpdatedAt   time.Time           `json:"updated_at"`
	EndedAt     *time.Time          `json:"ended_at"`
	Steps       []WorkflowStep      `json:"steps"`
}

// WorkflowStep is one call of a workflow.
type WorkflowStep struct {
	Step   int             `json:"step"`
	Tool   string          `json:"tool"`
	Inputs json.RawMessage `json:"inputs"`
	// State is planned, running, done, failed, skipped, kept, reverting,
	// reverted, revert_failed or resolved.
	State    string             `json:"state"`
	ActionID *envelope.ActionID `json:"action_id"`
	// Outputs are what it answered, as far as that is stored; lists leave them
	// out.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	Code    string          `json:"code,omitzero"`
	Message string          `json:"message,omitzero"`
	// Reversal is how it is taken back; nil if nobody said how.
	Reversal *WorkflowReversal `json:"reversal"`
}

// WorkflowReversal is how a step is taken back, and the action that does so.
type WorkflowReversal struct {
	Tool     string             `json:"tool"`
	ActionID *envelope.ActionID `json:"action_id"`
}

// WorkflowPlan is what a dry run of a workflow found.
type WorkflowPlan struct {
	DryRun bool          `json:"dry_run"`
	Atomic bool          `json:"atomic"`
	Steps  []PlannedStep `json:"steps"`
}

// PlannedStep is a step of a workflow that was only checked.
type PlannedStep struct {
	Step       int               `json:"step"`
	Tool       string            `json:"tool"`
	Mode       envelope.Mode     `json:"mode"`
	ModeSource string            `json:"mode_source"`
	References []string          `json:"references"`
	Reversal   *WorkflowReversal `json:"reversal"`
}

// SubmittedWorkflow is the answer to SubmitWorkflow.
type SubmittedWorkflow struct {
	Workflow Workflow
	// Known says that it had been accepted before.
	Known bool
	// Pending says that it had not ended when the time to wait was over.
	Pending bool
}

// SubmitWorkflow submits a workflow, which is an object as the API takes it. The
// time to wait is that of its wait, of which wait must be no less.
func (c *Client) SubmitWorkflow(ctx context.Context, workflow json.RawMessage, wait time.Duration) (SubmittedWorkflow, error) {
	var s SubmittedWorkflow
	answer, err := c.do(ctx, request{method: http.MethodPost, path: workflowsPath, in: workflow, wait: wait}, &s.Workflow)
	if err != nil {
		return SubmittedWorkflow{}, err
	}
	s.Known, s.Pending = answer.StatusCode == http.StatusOK, pending(answer)
	return s, nil
}

// PlanWorkflow checks a workflow, whose dry_run must be set, and changes nothing.
func (c *Client) PlanWorkflow(ctx context.Context, workflow json.RawMessage) (WorkflowPlan, error) {
	var p WorkflowPlan
	_, err := c.do(ctx, request{method: http.MethodPost, path: workflowsPath, in: workflow}, &p)
	return p, err
}

// WorkflowFilter narrows a list of workflows; its zero fields do not.
type WorkflowFilter struct {
	State, Session, ExternalID string
	// NeedsOperator leaves those that wait for an operator.
	NeedsOperator bool
	// Limit is how many a page holds; zero means 50. Cursor is the NextCursor
	// of the page before.
	Limit  int
	Cursor string
}

// Workflows lists workflows, the newest first.
func (c *Client) Workflows(ctx context.Context, f WorkflowFilter) (Page[Workflow], error) {
	query := given("state", f.State, "session_id", f.Session, "external_id", f.ExternalID, "cursor", f.Cursor)
	if f.NeedsOperator {
		query.Set("needs_operator", "true")
	}
	limited(query, f.Limit)
	var page Page[Workflow]
	_, err := c.do(ctx, request{method: http.MethodGet, path: workflowsPath, query: query}, &page)
	return page, err
}

// Workflow reads a workflow when it has ended or needs a person, or as it stands
// when the time is over; zero does not wait. unfinished says
// which.
func (c *Client) Workflow(ctx context.Context, id uuid.UUID, wait time.Duration) (b Workflow, unfinished bool, err error) {
	rq := request{method: http.MethodGet, path: workflowsPath + "/" + id.String()}
	rq.waiting("wait", wait)
	answer, err := c.do(ctx, rq, &b)
	if err != nil {
		return Workflow{}, false, err
	}
	return b, pending(answer), nil
}

// CancelWorkflow has a workflow go no further. fault.Conflict says that it has
// stopped already.
func (c *Client) CancelWorkflow(ctx context.Context, id uuid.UUID) (Workflow, error) {
	return c.changeWorkflow(ctx, id, "/cancel", nil)
}

// RetryWorkflow asks again for the reversal that failed. The note may be empty.
func (c *Client) RetryWorkflow(ctx context.Context, id uuid.UUID, note string) (Workflow, error) {
	return c.changeWorkflow(ctx, id, "/retry", struct {
		Note string `json:"note,omitzero"`
	}{note})
}

// ResolveWorkflow says that a person has seen to the reversal that failed; with
// abandon the workflow ends as it stands.
func (c *Client) ResolveWorkflow(ctx context.Context, id uuid.UUID, note string, abandon bool) (Workflow, error) {
	return c.changeWorkflow(ctx, id, "/resolve", struct {
		Note    string `json:"note"`
		Abandon bool   `json:"abandon,omitzero"`
	}{note, abandon})
}

func (c *Client) changeWorkflow(ctx context.Context, id uuid.UUID, how string, in any) (Workflow, error) {
	var b Workflow
	_, err := c.do(ctx, request{method: http.MethodPost, path: workflowsPath + "/" + id.String() + how, in: in}, &b)
	return b, err
}
