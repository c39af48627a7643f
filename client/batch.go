package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

const batchesPath = "/api/v1/batches"

// Batch is several calls in order, as they stand.
type Batch struct {
	ID         uuid.UUID `json:"batch_id"`
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
	Steps       []BatchStep         `json:"steps"`
}

// BatchStep is one call of a batch.
type BatchStep struct {
	Step   int             `json:"step"`
	Tool   string          `json:"tool"`
	Inputs json.RawMessage `json:"inputs"`
	// State is planned, running, done, failed, skipped, kept, reverting,
	// reverted, unreverted or resolved.
	State    string             `json:"state"`
	ActionID *envelope.ActionID `json:"action_id"`
	// Outputs are what it answered, as far as that is stored; lists leave them
	// out.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	Code    string          `json:"code,omitzero"`
	Message string          `json:"message,omitzero"`
	// Reversal is how it is taken back; nil if nobody said how.
	Reversal *BatchReversal `json:"reversal"`
}

// BatchReversal is how a step is taken back, and the action that does so.
type BatchReversal struct {
	Tool     string             `json:"tool"`
	ActionID *envelope.ActionID `json:"action_id"`
}

// BatchPlan is what a dry run of a batch found.
type BatchPlan struct {
	DryRun bool          `json:"dry_run"`
	Atomic bool          `json:"atomic"`
	Steps  []PlannedStep `json:"steps"`
}

// PlannedStep is a step of a batch that was only checked.
type PlannedStep struct {
	Step       int            `json:"step"`
	Tool       string         `json:"tool"`
	Mode       envelope.Mode  `json:"mode"`
	ModeSource string         `json:"mode_source"`
	References []string       `json:"references"`
	Reversal   *BatchReversal `json:"reversal"`
}

// SubmittedBatch is a batch that was submitted.
type SubmittedBatch struct {
	Batch Batch
	// Known says that it had been accepted before.
	Known bool
	// Pending says that it had not ended when the time to wait was over.
	Pending bool
}

// SubmitBatch submits a batch, which is an object as the API takes it. The
// time to wait is that of its wait_seconds, of which wait must be no less.
func (c *Client) SubmitBatch(ctx context.Context, batch json.RawMessage, wait time.Duration) (SubmittedBatch, error) {
	var s SubmittedBatch
	answer, err := c.do(ctx, request{method: http.MethodPost, path: batchesPath, in: batch, wait: wait}, &s.Batch)
	if err != nil {
		return SubmittedBatch{}, err
	}
	s.Known, s.Pending = answer.StatusCode == http.StatusOK, pending(answer)
	return s, nil
}

// PlanBatch checks a batch, whose dry_run must be set, and changes nothing.
func (c *Client) PlanBatch(ctx context.Context, batch json.RawMessage) (BatchPlan, error) {
	var p BatchPlan
	_, err := c.do(ctx, request{method: http.MethodPost, path: batchesPath, in: batch}, &p)
	return p, err
}

// BatchFilter narrows a list of batches; its zero fields do not.
type BatchFilter struct {
	State, Session, ExternalID string
	// Troubled leaves those that wait for an operator.
	Troubled bool
	// Limit is how many a page holds; zero means 50. Cursor is the NextCursor
	// of the page before.
	Limit  int
	Cursor string
}

// Batches lists batches, the newest first.
func (c *Client) Batches(ctx context.Context, f BatchFilter) (Page[Batch], error) {
	query := given("state", f.State, "session", f.Session, "external_id", f.ExternalID, "cursor", f.Cursor)
	if f.Troubled {
		query.Set("troubled", "true")
	}
	limited(query, f.Limit)
	var page Page[Batch]
	_, err := c.do(ctx, request{method: http.MethodGet, path: batchesPath, query: query}, &page)
	return page, err
}

// Batch reads a batch when it has ended or needs a person, or as it stands
// when the time is over; zero does not wait. unfinished says
// which.
func (c *Client) Batch(ctx context.Context, id uuid.UUID, wait time.Duration) (b Batch, unfinished bool, err error) {
	rq := request{method: http.MethodGet, path: batchesPath + "/" + id.String()}
	rq.waiting("wait", wait)
	answer, err := c.do(ctx, rq, &b)
	if err != nil {
		return Batch{}, false, err
	}
	return b, pending(answer), nil
}

// CancelBatch has a batch go no further. fault.Conflict says that it has
// stopped already.
func (c *Client) CancelBatch(ctx context.Context, id uuid.UUID) (Batch, error) {
	return c.changeBatch(ctx, id, "/cancel", nil)
}

// RetryBatch asks again for the reversal that failed. The note may be empty.
func (c *Client) RetryBatch(ctx context.Context, id uuid.UUID, note string) (Batch, error) {
	return c.changeBatch(ctx, id, "/retry", struct {
		Note string `json:"note,omitzero"`
	}{note})
}

// ResolveBatch says that a person has seen to the reversal that failed; with
// abandon the batch ends as it stands.
func (c *Client) ResolveBatch(ctx context.Context, id uuid.UUID, note string, abandon bool) (Batch, error) {
	return c.changeBatch(ctx, id, "/resolve", struct {
		Note    string `json:"note"`
		Abandon bool   `json:"abandon,omitzero"`
	}{note, abandon})
}

func (c *Client) changeBatch(ctx context.Context, id uuid.UUID, how string, in any) (Batch, error) {
	var b Batch
	_, err := c.do(ctx, request{method: http.MethodPost, path: batchesPath + "/" + id.String() + how, in: in}, &b)
	return b, err
}
