package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// workflowKey names a workflow.
type workflowKey struct {
	tenant envelope.TenantID
	id     ID
}

// nameOf is the external id of a step's envelope.
func (b *Workflow) nameOf(i int) string { return "workflow:" + b.ID.String() + ":" + strconv.Itoa(i) }

// ready returns workflows that can be advanced, the longest unchecked first, and
// whether any are running.
func ready(ctx context.Context, tx pgx.Tx, most int) ([]workflowKey, bool, error) {
	q := dbsqlc.New()
	live, err := q.WorkflowLive(ctx, tx)
	if err != nil || !live {
		return nil, false, err
	}
	rows, err := q.WorkflowReady(ctx, tx, int64(most))
	if err != nil {
		return nil, false, err
	}
	due := make([]workflowKey, len(rows))
	for i, r := range rows {
		due[i] = workflowKey{r.TenantID, ID(r.WorkflowID)}
	}
	return due, true, nil
}

// take locks a workflow and reads it; it returns nil if another driver has the
// lock.
func take(ctx context.Context, tx pgx.Tx, at workflowKey) (*Workflow, error) {
	taken, err := dbsqlc.New().WorkflowTake(ctx, tx, &dbsqlc.WorkflowTakeParams{TenantID: at.tenant, WorkflowID: uuid.UUID(at.id)})
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	return get(ctx, tx, at)
}

// hold locks a workflow, waiting for the lock, and reads it.
func hold(ctx context.Context, tx pgx.Tx, at workflowKey) (*Workflow, error) {
	_, err := dbsqlc.New().WorkflowHold(ctx, tx, &dbsqlc.WorkflowHoldParams{TenantID: at.tenant, WorkflowID: uuid.UUID(at.id)})
	if err != nil {
		return nil, err
	}
	return get(ctx, tx, at)
}

// Get reads a workflow. The error is fault.NotFound if it does not exist.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id ID) (*Workflow, error) {
	return get(ctx, tx, workflowKey{tenant, id})
}

func get(ctx context.Context, tx pgx.Tx, at workflowKey) (*Workflow, error) {
	rows, err := dbsqlc.New().WorkflowGet(ctx, tx, &dbsqlc.WorkflowGetParams{TenantID: at.tenant, WorkflowID: uuid.UUID(at.id)})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fault.New(fault.NotFound, "no workflow %s", at.id)
	}
	b := fromRow(at.tenant, dbsqlc.WorkflowListRow(rows[0]))
	return b, fillSteps(ctx, tx, at.tenant, []*Workflow{b})
}

// Filter narrows a list; its zero fields do not.
type Filter struct {
	State               State
	Session, ExternalID string
	// NeedsOperator selects workflows that wait for an operator: stuck, or with a
	// failed reversal.
	NeedsOperator bool
	// Before is the last id of the page before this one.
	Before ID
	Limit  int
}

// List returns a page of workflows, the newest first.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]*Workflow, error) {
	if f.Before == (ID{}) {
		f.Before = ID(uuid.Max)
	}
	rows, err := dbsqlc.New().WorkflowList(ctx, tx, &dbsqlc.WorkflowListParams{
		TenantID: tenant, Before: uuid.UUID(f.Before), State: postgres.OrNull(string(f.State)), SessionID: postgres.OrNull(f.Session),
		ExternalID: postgres.OrNull(f.ExternalID), NeedsOperator: f.NeedsOperator, Most: int64(f.Limit),
	})
	all, err := postgres.Map(rows, err, func(r dbsqlc.WorkflowListRow) *Workflow { return fromRow(tenant, r) })
	if err != nil {
		return nil, err
	}
	return all, fillSteps(ctx, tx, tenant, all)
}

func fromRow(tenant envelope.TenantID, r dbsqlc.WorkflowListRow) *Workflow {
	b := &Workflow{
		ID: ID(r.WorkflowID), Tenant: tenant, ExternalID: r.ExternalID, Atomic: r.Atomic, State: State(r.State), Code: postgres.OrZero(r.Code),
		Message: postgres.OrZero(r.Message), Employee: postgres.OrZero(r.EmployeeID), Session: postgres.OrZero(r.SessionID), Automation: postgres.OrZero(r.AutomationID), Proposer: envelope.Actor(r.Proposer),
		CancelledBy: postgres.OrZero(r.CancelledBy), ResolvedBy: postgres.OrZero(r.ResolvedBy), Note: postgres.OrZero(r.Note), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		EndedAt: r.EndedAt, WaitsFor: (*envelope.ActionID)(r.WaitsFor), proposedBy: r.ProposedBy, person: r.Person, bound: r.SessionBound, tools: r.Tools, origin: r.Origin,
	}
	if r.StoppedAt != nil {
		b.StoppedAt = new(int(*r.StoppedAt))
	}
	return b
}

func fillSteps(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, workflows []*Workflow) error {
	byID, ids := make(map[uuid.UUID]*Workflow, len(workflows)), make([]uuid.UUID, len(workflows))
	for i, b := range workflows {
		ids[i] = uuid.UUID(b.ID)
		byID[ids[i]] = b
	}
	rows, err := dbsqlc.New().WorkflowStepList(ctx, tx, &dbsqlc.WorkflowStepListParams{TenantID: tenant, WorkflowIds: ids})
	if err != nil {
		return err
	}
	for _, r := range rows {
		s := Step{
			State: StepState(r.State), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName}, Inputs: r.Inputs, Action: r.ActionID,
			ReversalAction: (*envelope.ActionID)(r.ReversalActionID), ReversalAttempts: int(r.ReversalAttempts), Code: postgres.OrZero(r.Code), Message: postgres.OrZero(r.Message),
		}
		if err := json.Unmarshal(r.Options, &s.options); err != nil {
			return fmt.Errorf("decode step %d of workflow %s: %w", r.Step, r.WorkflowID, err)
		}
		if len(r.Reversal) > 0 {
			s.Reversal = new(catalog.Reversal)
			if err := json.Unmarshal(r.Reversal, s.Reversal); err != nil {
				return fmt.Errorf("decode step %d of workflow %s: %w", r.Step, r.WorkflowID, err)
			}
		}
		b := byID[r.WorkflowID]
		b.Steps = append(b.Steps, s)
	}
	return nil
}

// findExisting returns the workflow with an external id, or nil.
func findExisting(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, external string) (*dbsqlc.WorkflowKnownRow, error) {
	rows, err := dbsqlc.New().WorkflowKnown(ctx, tx, &dbsqlc.WorkflowKnownParams{TenantID: tenant, ExternalID: external})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// insert writes a workflow in its first state. If its name is taken by now, that
// is errDuplicate, and the transaction cannot go on.
func insert(ctx context.Context, tx pgx.Tx, b *Workflow, digest []byte) error {
	q, id := dbsqlc.New(), uuid.UUID(b.ID)
	p := &dbsqlc.WorkflowInsertParams{
		TenantID: b.Tenant, WorkflowID: id, ExternalID: b.ExternalID, ContentDigest: digest, Atomic: b.Atomic, State: string(b.State),
		ProposedBy: b.proposedBy, Person: b.person, Proposer: string(b.Proposer), SessionID: b.Session, SessionBound: b.bound, AutomationID: b.Automation,
		Tools: b.tools, Origin: b.origin, EmployeeID: postgres.OrNull(b.Employee),
	}
	if err := violations.Fault(q.WorkflowInsert(ctx, tx, p)); err != nil {
		if postgres.Duplicate(err) {
			return errDuplicate
		}
		return err
	}
	steps := &dbsqlc.WorkflowStepInsertManyParams{TenantID: b.Tenant, WorkflowID: id, State: string(StepPlanned)}
	for i := range b.Steps {
		s := &b.Steps[i]
		encoded, err := json.Marshal(s.options)
		if err != nil {
			return fmt.Errorf("encode step %d: %w", i, err)
		}
		reversal, err := json.Marshal(s.Reversal)
		if err != nil {
			return fmt.Errorf("encode step %d: %w", i, err)
		}
		steps.Steps = append(steps.Steps, int32(i)) // at most MaxSteps
		steps.SourceIds, steps.ToolNames = append(steps.SourceIds, s.Tool.Source), append(steps.ToolNames, s.Tool.Action)
		steps.Inputs, steps.Options, steps.Reversals = append(steps.Inputs, s.Inputs), append(steps.Options, encoded), append(steps.Reversals, reversal)
	}
	return q.WorkflowStepInsertMany(ctx, tx, steps)
}

// save stores the state of a workflow and the time of its next check.
func save(ctx context.Context, tx pgx.Tx, b *Workflow, wait time.Duration) error {
	q, id := dbsqlc.New(), uuid.UUID(b.ID)
	p := &dbsqlc.WorkflowSaveParams{
		TenantID: b.Tenant, WorkflowID: id, State: string(b.State), Code: b.Code, Message: b.Message, ResolvedBy: b.ResolvedBy, Note: b.Note,
		WaitsFor: (*uuid.UUID)(b.WaitsFor), WaitSeconds: wait.Seconds(), Ended: b.State.Ended(),
	}
	if b.StoppedAt != nil {
		p.StoppedAt = new(int32(*b.StoppedAt)) // at most MaxSteps
	}
	if err := q.WorkflowSave(ctx, tx, p); err != nil {
		return err
	}
	for i := range b.Steps {
		s := &b.Steps[i]
		if !s.dirty {
			continue
		}
		step := &dbsqlc.WorkflowStepSaveParams{
			TenantID: b.Tenant, WorkflowID: id, Step: int32(i), State: string(s.State), ActionID: (*uuid.UUID)(s.Action), // at most MaxSteps
			ReversalActionID: (*uuid.UUID)(s.ReversalAction), ReversalAttempts: int32(s.ReversalAttempts), Code: s.Code, Message: s.Message,
		}
		if s.Reversal != nil {
			var err error
			if step.Reversal, err = json.Marshal(s.Reversal); err != nil {
				return fmt.Errorf("encode step %d: %w", i, err)
			}
		}
		if err := q.WorkflowStepSave(ctx, tx, step); err != nil {
			return err
		}
		s.dirty = false
	}
	return nil
}

// cancel records a request to cancel a workflow.
func cancel(ctx context.Context, tx pgx.Tx, b *Workflow, actor envelope.Actor) error {
	_, err := dbsqlc.New().WorkflowCancel(ctx, tx, &dbsqlc.WorkflowCancelParams{CancelledBy: string(actor), TenantID: b.Tenant, WorkflowID: uuid.UUID(b.ID)})
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.Conflict, "too late to cancel: the workflow is %s", b.State)
	}
	if err != nil {
		return err
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: b.Tenant, Kind: audit.WorkflowChanged, Actor: actor, Items: []audit.Item{{Subject: b.ID.String(), Code: "cancel_asked"}}})
}

// postpone delays the next check of a workflow.
func postpone(ctx context.Context, tx pgx.Tx, at workflowKey, wait time.Duration) error {
	return dbsqlc.New().WorkflowPostpone(ctx, tx, &dbsqlc.WorkflowPostponeParams{WaitSeconds: wait.Seconds(), TenantID: at.tenant, WorkflowID: uuid.UUID(at.id)})
}

func prune(ctx context.Context, tx pgx.Tx, most int) (int64, error) {
	return dbsqlc.New().WorkflowPrune(ctx, tx, int64(most))
}

// revoked reports whether the token of a submitter was taken away, or the person
// behind it disabled.
func revoked(ctx context.Context, tx pgx.Tx, by intake.Submitter) (bool, error) {
	if by.Token == uuid.Nil {
		return false, nil
	}
	return dbsqlc.New().TokenRevoked(ctx, tx, &dbsqlc.TokenRevokedParams{TenantID: uuid.UUID(by.Tenant), TokenID: by.Token})
}

// writeEvent records the state of a workflow.
func writeEvent(ctx context.Context, tx pgx.Tx, b *Workflow, actor envelope.Actor) error {
	item := audit.Item{Subject: b.ID.String(), Code: string(b.State), Note: b.Message}
	if b.ResolvedBy != "" {
		item.Note = b.Note
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: b.Tenant, Kind: audit.WorkflowChanged, Actor: actor, Items: []audit.Item{item}})
}

// readActionState reads the state of an action.
func readActionState(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id envelope.ActionID) (actionState, error) {
	views, err := outbox.Get(ctx, tx, tenant, id)
	if err != nil || len(views) == 0 {
		return actionState{gone: true}, err
	}
	v := &views[0]
	f := actionState{
		status: v.Envelope.Result.Status, approval: v.Envelope.Approval, effect: v.Effect, attempts: v.Envelope.Result.Attempts,
		args: v.Envelope.Args, result: v.Envelope.Result.Output,
	}
	e := v.Envelope.Result.Error
	switch {
	case f.approval == envelope.ApprovalExpired:
		// An earlier attempt may have left another code.
	case f.approval == envelope.ApprovalDenied && v.Mode == envelope.ModeDeny:
		f.code, f.message = CodeDenied, "policy denies it: "+v.ModeSource
	case f.approval == envelope.ApprovalDenied && (e == nil || e.Code != outbox.CodeUndone && e.Code != preflight.CodeKilled):
		f.code, f.message = CodeDenied, "denied by "+v.DecidedBy.Brief()
		if v.DecisionNote != "" {
			f.message += ": " + redact.Text(v.DecisionNote)
		}
	case e != nil:
		f.code, f.message = e.Code, e.Message
	}
	return f, nil
}

// discard takes an envelope out of the dead letters, if it is there.
func discard(ctx context.Context, tx pgx.Tx, b *Workflow, id envelope.ActionID, why string) error {
	_, err := deadletter.Discard(ctx, tx, b.Tenant, deadletter.BulkRequest{IDs: []envelope.ActionID{id}, Limit: 1, Actor: "workflow", Note: why})
	return err
}

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"workflows_tenant_id_fkey": fault.New(fault.NotFound, "no such tenant"),
}
