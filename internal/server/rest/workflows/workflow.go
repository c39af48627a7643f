// Package workflows handles requests about workflows, which the paths still call batches.
package workflows

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	batches "github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source"
)

// cursorBatches is the list of batches, as cursors name it.
const cursorBatches = "batches"

// batchAsked is a batch of steps, as the body asks for it.
type batchAsked struct {
	Steps        []stepAsked         `json:"steps"`
	Atomic       bool                `json:"atomic"`
	DryRun       bool                `json:"dry_run"`
	WaitSeconds  int                 `json:"wait_seconds"`
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

// request is the batch with its name.
func (in batchAsked) request(c *request.Call) (batches.Request, error) {
	key := c.R.Header.Get("Idempotency-Key")
	switch {
	case key == "" && in.ExternalID == "" && !in.DryRun:
		return batches.Request{}, request.Invalid("/external_id", envelope.RuleRequired, "give the batch a name of your own, in external_id or in the header Idempotency-Key, so that sending it again is safe")
	case key != "" && in.ExternalID != "" && key != in.ExternalID:
		return batches.Request{}, request.Invalid("/external_id", "same", "is not the Idempotency-Key; leave one of them out")
	case key != "":
		in.ExternalID = key
	}
	r := batches.Request{
		ExternalID: in.ExternalID, Atomic: in.Atomic, Session: in.SessionID, Employee: in.EmployeeID, Automation: in.AutomationID,
		Steps: make([]batches.StepRequest, len(in.Steps)),
	}
	for i, s := range in.Steps {
		r.Steps[i] = batches.StepRequest(s)
	}
	return r, nil
}

// batchShown is a batch as the API shows it.
type batchShown struct {
	ID          batches.ID          `json:"batch_id"`
	ExternalID  string              `json:"external_id"`
	Atomic      bool                `json:"atomic"`
	State       batches.State       `json:"state"`
	Code        string              `json:"code,omitzero"`
	Message     string              `json:"message,omitzero"`
	StoppedAt   *int                `json:"stopped_at"`
	WaitsFor    *envelope.ActionID  `json:"waits_for"`
	Proposer    string              `json:"proposed_by"`
	Session     string              `json:"session_id,omitzero"`
	Employee    envelope.EmployeeID `json:"employee_id,omitzero"`
	Automation  string              `json:"automation_id,omitzero"`
	CancelledBy string              `json:"cancelled_by,omitzero"`
	ResolvedBy  string              `json:"resolved_by,omitzero"`
	Note        string              `json:"note,omitzero"`
	CreatedAt   time.Time           `json:"created_at"`
	UpdatedAt   time.Time           `json:"updated_at"`
	EndedAt     *time.Time          `json:"ended_at"`
	Steps       []stepShown         `json:"steps"`
}

type stepShown struct {
	Step     int                `json:"step"`
	Tool     string             `json:"tool"`
	Inputs   json.RawMessage    `json:"inputs"`
	State    batches.StepState  `json:"state"`
	Action   *envelope.ActionID `json:"action_id"`
	Outputs  json.RawMessage    `json:"outputs,omitempty"`
	Code     string             `json:"code,omitzero"`
	Message  string             `json:"message,omitzero"`
	Reversal *reversalShown     `json:"reversal"`
}

// reversalShown is how a step is taken back, and the action that does so.
type reversalShown struct {
	Tool   string             `json:"tool"`
	Action *envelope.ActionID `json:"action_id"`
}

func batchFrom(b *batches.Batch) batchShown {
	shown := batchShown{
		ID: b.ID, ExternalID: b.ExternalID, Atomic: b.Atomic, State: b.State, Code: b.Code, Message: b.Message, StoppedAt: b.StoppedAt,
		WaitsFor: b.WaitsFor, Proposer: b.Proposer, Session: b.Session, Employee: b.Employee, Automation: b.Automation,
		CancelledBy: b.CancelledBy, ResolvedBy: b.ResolvedBy, Note: b.Note, CreatedAt: b.CreatedAt.UTC(), UpdatedAt: b.UpdatedAt.UTC(),
		EndedAt: request.UTC(b.EndedAt), Steps: make([]stepShown, len(b.Steps)),
	}
	for i, s := range b.Steps {
		shown.Steps[i] = stepShown{Step: i, Tool: s.Tool.String(), Inputs: s.Inputs, State: s.State, Action: s.Action, Code: s.Code, Message: s.Message}
		if s.Undo != nil {
			shown.Steps[i].Reversal = &reversalShown{Tool: s.Undo.Tool, Action: s.Reversal}
		}
	}
	return shown
}

// plannedShown is a step of a batch that was only checked.
type plannedShown struct {
	Step       int            `json:"step"`
	Tool       string         `json:"tool"`
	Mode       envelope.Mode  `json:"mode"`
	Source     string         `json:"mode_source"`
	References []string       `json:"references"`
	Reversal   *reversalShown `json:"reversal"`
}

func desk(c *request.Call) *batches.Desk { return batches.NewDesk(c.DB, c.Catalog, c.Wake) }

// POST /api/v1/batches starts a workflow, or checks it only with dry_run.
func Submit(c *request.Call) error {
	var in batchAsked
	if err := c.Decode(&in); err != nil {
		return err
	}
	r, err := in.request(c)
	if err != nil {
		return err
	}
	by := c.Submitter()
	by.Origin = request.Origin(c.R.Context(), execution.ViaBatch)
	if in.DryRun {
		steps, err := desk(c).Preview(c.R.Context(), by, r)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, plannedFrom(in.Atomic, steps))
	}
	id, known, err := desk(c).Submit(c.R.Context(), by, r)
	if err != nil {
		return err
	}
	c.WaitFor = time.Duration(in.WaitSeconds) * time.Second
	c.W.Header().Set("Location", "/api/v1/batches/"+id.String())
	status := http.StatusCreated
	if known {
		status = http.StatusOK
	}
	return showBatch(c, id, status)
}

func plannedFrom(atomic bool, steps []batches.Planned) any {
	shown := make([]plannedShown, len(steps))
	for i, p := range steps {
		shown[i] = plannedShown{Step: i, Tool: p.Tool.String(), Mode: p.Mode, Source: p.Source, References: append([]string{}, p.References...)}
		if p.Undo != nil {
			shown[i].Reversal = &reversalShown{Tool: p.Undo.Tool}
		}
	}
	return struct {
		DryRun bool           `json:"dry_run"`
		Atomic bool           `json:"atomic"`
		Steps  []plannedShown `json:"steps"`
	}{true, atomic, shown}
}

// batchOf reads a batch that the caller may see. Another one is not there.
func batchOf(c *request.Call, ctx context.Context, tx pgx.Tx, id batches.ID) (*batches.Batch, error) {
	b, err := batches.Get(ctx, tx, c.By.Tenant, id)
	if err == nil && !access.SeesSession(c.By, b.Session) {
		err = fault.New(fault.NotFound, "no batch %s", id)
	}
	return b, err
}

// batchID is the id in the path.
func batchID(c *request.Call) (batches.ID, error) {
	id, err := c.ActionID()
	return batches.ID(id), err
}

// showBatch answers with a batch, after its end if the caller wants to wait.
// What a person has to see to is an end for now.
func showBatch(c *request.Call, id batches.ID, status int) error {
	ctx, cancel := context.WithTimeout(c.R.Context(), c.WaitFor)
	defer cancel()
	tick := time.NewTicker(c.Poll)
	defer tick.Stop()
	for {
		shown, settled, err := lookAtBatch(c, id)
		if err != nil {
			return err
		}
		if settled || c.WaitFor == 0 || ctx.Err() != nil || c.Broker.IsClosed() {
			if !settled && c.WaitFor > 0 {
				c.W.Header().Set("Countersign-Pending", "true")
			}
			return c.JSON(status, shown)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		case <-c.Broker.Closed():
		}
	}
}

// lookAtBatch reads a batch with what its steps answered.
func lookAtBatch(c *request.Call, id batches.ID) (shown batchShown, settled bool, err error) {
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		b, err := batchOf(c, ctx, tx, id)
		if err != nil {
			return err
		}
		shown, settled = batchFrom(b), b.State.Ended() || b.State == batches.StateCompensationFailed || b.State == batches.StateStuck
		views, err := outbox.Get(ctx, tx, c.By.Tenant, b.Actions()...)
		for i := range shown.Steps {
			for _, v := range views {
				if a := shown.Steps[i].Action; a != nil && v.Envelope.ActionID == *a {
					shown.Steps[i].Outputs = source.Outputs(v.Envelope.Result.Output)
				}
			}
		}
		return err
	})
	return shown, settled, err
}

// GET /api/v1/batches/{id} shows a workflow, after its end if the caller wants
// to wait.
func Get(c *request.Call) error {
	id, err := batchID(c)
	if err != nil {
		return err
	}
	return showBatch(c, id, http.StatusOK)
}

// GET /api/v1/batches lists workflows, newest first.
func List(c *request.Call) error {
	before, limit, err := c.Page(cursorBatches)
	if err != nil {
		return err
	}
	q := c.Query
	f := batches.Filter{
		State: batches.State(q.Get("state")), Session: q.Get("session"), ExternalID: q.Get("external_id"), Troubled: q.Get("troubled") == "true",
		Before: batches.ID(before), Most: limit + 1,
	}
	var visible bool
	f.Session, visible = access.SessionFilter(c.By, f.Session)
	var all []*batches.Batch
	if visible {
		err = c.InTx(func(ctx context.Context, tx pgx.Tx) (err error) {
			all, err = batches.List(ctx, tx, c.By.Tenant, f)
			return err
		})
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, request.PageOf(all, limit, cursorBatches, batchFrom,
		func(b *batches.Batch) envelope.ActionID { return envelope.ActionID(b.ID) }))
}

// POST /api/v1/batches/{id}/cancel cancels a workflow.
func Cancel(c *request.Call) error {
	return changeBatch(c, func(id batches.ID, _ batchDecision) error {
		return desk(c).Cancel(c.R.Context(), c.By.Tenant, id, c.By.Name)
	})
}

// POST /api/v1/batches/{id}/retry retries a workflow that needs a person.
func Retry(c *request.Call) error {
	return changeBatch(c, func(id batches.ID, d batchDecision) error {
		return desk(c).Retry(c.R.Context(), c.By.Tenant, id, c.By.Name, d.Note)
	})
}

// POST /api/v1/batches/{id}/resolve resolves a workflow that needs a person.
func Resolve(c *request.Call) error {
	return changeBatch(c, func(id batches.ID, d batchDecision) error {
		return desk(c).Resolve(c.R.Context(), c.By.Tenant, id, c.By.Name, d.Note, d.Abandon)
	})
}

// batchDecision is what somebody says about a batch.
type batchDecision struct {
	Note    string `json:"note"`
	Abandon bool   `json:"abandon"`
}

// changeBatch has a change made to a batch that the caller may see, and
// answers with what the batch is then.
func changeBatch(c *request.Call, change func(batches.ID, batchDecision) error) error {
	var d batchDecision
	if len(c.Body) > 0 {
		if err := c.Decode(&d); err != nil {
			return err
		}
	}
	id, err := batchID(c)
	if err != nil {
		return err
	}
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := batchOf(c, ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	if err := change(id, d); err != nil {
		return err
	}
	return showBatch(c, id, http.StatusOK)
}
