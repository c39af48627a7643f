package rest

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
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

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
func (in batchAsked) request(c *call) (batches.Request, error) {
	key := c.r.Header.Get("Idempotency-Key")
	switch {
	case key == "" && in.ExternalID == "" && !in.DryRun:
		return batches.Request{}, invalid("/external_id", envelope.RuleRequired, "give the batch a name of your own, in external_id or in the header Idempotency-Key, so that sending it again is safe")
	case key != "" && in.ExternalID != "" && key != in.ExternalID:
		return batches.Request{}, invalid("/external_id", "same", "is not the Idempotency-Key; leave one of them out")
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
		EndedAt: utc(b.EndedAt), Steps: make([]stepShown, len(b.Steps)),
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

func (s *Server) batchDesk() *batches.Desk { return batches.NewDesk(s.DB, s.Catalog, s.cfg.Wake) }

func (s *Server) submitBatch(c *call) error {
	var in batchAsked
	if err := c.decode(&in); err != nil {
		return err
	}
	r, err := in.request(c)
	if err != nil {
		return err
	}
	by := c.submitter()
	by.Origin = Origin(c.r.Context(), execution.ViaBatch)
	if in.DryRun {
		steps, err := s.batchDesk().Preview(c.r.Context(), by, r)
		if err != nil {
			return err
		}
		return c.json(http.StatusOK, plannedFrom(in.Atomic, steps))
	}
	id, known, err := s.batchDesk().Submit(c.r.Context(), by, r)
	if err != nil {
		return err
	}
	c.wait = time.Duration(in.WaitSeconds) * time.Second
	c.w.Header().Set("Location", "/api/v1/batches/"+id.String())
	status := http.StatusCreated
	if known {
		status = http.StatusOK
	}
	return s.showBatch(c, id, status)
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
func (c *call) batchOf(ctx context.Context, tx pgx.Tx, id batches.ID) (*batches.Batch, error) {
	b, err := batches.Get(ctx, tx, c.by.Tenant, id)
	if err == nil && !c.seesSession(b.Session) {
		err = fault.New(fault.NotFound, "no batch %s", id)
	}
	return b, err
}

// batchID is the id in the path.
func (c *call) batchID() (batches.ID, error) {
	id, err := c.action()
	return batches.ID(id), err
}

// showBatch answers with a batch, after its end if the caller wants to wait.
// What a person has to see to is an end for now.
func (s *Server) showBatch(c *call, id batches.ID, status int) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), c.wait)
	defer cancel()
	tick := time.NewTicker(s.cfg.Poll)
	defer tick.Stop()
	for {
		shown, settled, err := s.lookAtBatch(c, id)
		if err != nil {
			return err
		}
		if settled || c.wait == 0 || ctx.Err() != nil || s.hub.isClosed() {
			if !settled && c.wait > 0 {
				c.w.Header().Set("Countersign-Pending", "true")
			}
			return c.json(status, shown)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		case <-s.hub.closed:
		}
	}
}

// lookAtBatch reads a batch with what its steps answered.
func (s *Server) lookAtBatch(c *call, id batches.ID) (shown batchShown, settled bool, err error) {
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		b, err := c.batchOf(ctx, tx, id)
		if err != nil {
			return err
		}
		shown, settled = batchFrom(b), b.State.Ended() || b.State == batches.StateCompensationFailed || b.State == batches.StateStuck
		views, err := outbox.Get(ctx, tx, c.by.Tenant, b.Actions()...)
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

func (s *Server) getBatch(c *call) error {
	id, err := c.batchID()
	if err != nil {
		return err
	}
	return s.showBatch(c, id, http.StatusOK)
}

func (s *Server) listBatches(c *call) error {
	before, limit, err := c.place(cursorBatches)
	if err != nil {
		return err
	}
	q := c.query
	f := batches.Filter{
		State: batches.State(q.Get("state")), Session: q.Get("session"), ExternalID: q.Get("external_id"), Troubled: q.Get("troubled") == "true",
		Before: batches.ID(before), Most: limit + 1,
	}
	var all []*batches.Batch
	if c.seesSession(f.Session) || f.Session == "" && agentSession(c.by) != "" {
		if f.Session == "" {
			f.Session = agentSession(c.by)
		}
		err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) (err error) {
			all, err = batches.List(ctx, tx, c.by.Tenant, f)
			return err
		})
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, pageOf(all, limit, cursorBatches, batchFrom,
		func(b *batches.Batch) envelope.ActionID { return envelope.ActionID(b.ID) }))
}

func (s *Server) cancelBatch(c *call) error {
	return s.changeBatch(c, func(id batches.ID, _ batchDecision) error {
		return s.batchDesk().Cancel(c.r.Context(), c.by.Tenant, id, c.by.Name)
	})
}

func (s *Server) retryBatch(c *call) error {
	return s.changeBatch(c, func(id batches.ID, d batchDecision) error {
		return s.batchDesk().Retry(c.r.Context(), c.by.Tenant, id, c.by.Name, d.Note)
	})
}

func (s *Server) resolveBatch(c *call) error {
	return s.changeBatch(c, func(id batches.ID, d batchDecision) error {
		return s.batchDesk().Resolve(c.r.Context(), c.by.Tenant, id, c.by.Name, d.Note, d.Abandon)
	})
}

// batchDecision is what somebody says about a batch.
type batchDecision struct {
	Note    string `json:"note"`
	Abandon bool   `json:"abandon"`
}

// changeBatch has a change made to a batch that the caller may see, and
// answers with what the batch is then.
func (s *Server) changeBatch(c *call, change func(batches.ID, batchDecision) error) error {
	var d batchDecision
	if len(c.body) > 0 {
		if err := c.decode(&d); err != nil {
			return err
		}
	}
	id, err := c.batchID()
	if err != nil {
		return err
	}
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		_, err := c.batchOf(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	if err := change(id, d); err != nil {
		return err
	}
	return s.showBatch(c, id, http.StatusOK)
}

// seesSession says whether the caller may see what is of a session: agents see
// their own.
func (c *call) seesSession(session string) bool {
	return c.by.Role != identity.RoleAgent || c.by.Session != "" && session == c.by.Session
}
