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
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// place names a batch.
type place struct {
	tenant envelope.TenantID
	id     ID
}

// nameOf is the external id of a step's envelope.
func (b *Batch) nameOf(i int) string { return "batch:" + b.ID.String() + ":" + strconv.Itoa(i) }

// nameOfReversal is the external id of the envelope that takes a step back,
// another one each time that it is asked for.
func (b *Batch) nameOfReversal(i int) string {
	name := b.nameOf(i) + ":reverse"
	if n := b.Steps[i].Tries; n > 0 {
		name += ":" + strconv.Itoa(n)
	}
	return name
}

// ready returns batches that can be moved on, the longest not looked at first,
// and whether any are under way.
func ready(ctx context.Context, tx pgx.Tx, most int) ([]place, bool, error) {
	q := dbsqlc.New()
	live, err := q.BatchLive(ctx, tx)
	if err != nil || !live {
		return nil, false, err
	}
	rows, err := q.BatchReady(ctx, tx, int64(most))
	if err != nil {
		return nil, false, err
	}
	due := make([]place, len(rows))
	for i, r := range rows {
		due[i] = place{envelope.TenantID(r.TenantID), ID(r.BatchID)}
	}
	return due, true, nil
}

// take locks a batch and reads it; it is nil if somebody else is at it.
func take(ctx context.Context, tx pgx.Tx, at place) (*Batch, error) {
	taken, err := dbsqlc.New().BatchTake(ctx, tx, &dbsqlc.BatchTakeParams{TenantID: uuid.UUID(at.tenant), BatchID: uuid.UUID(at.id)})
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	return get(ctx, tx, at)
}

// hold locks a batch, waiting for its turn, and reads it.
func hold(ctx context.Context, tx pgx.Tx, at place) (*Batch, error) {
	_, err := dbsqlc.New().BatchHold(ctx, tx, &dbsqlc.BatchHoldParams{TenantID: uuid.UUID(at.tenant), BatchID: uuid.UUID(at.id)})
	if err != nil {
		return nil, err
	}
	return get(ctx, tx, at)
}

// Get reads a batch. fault.NotFound says that there is none.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id ID) (*Batch, error) {
	return get(ctx, tx, place{tenant, id})
}

func get(ctx context.Context, tx pgx.Tx, at place) (*Batch, error) {
	rows, err := dbsqlc.New().BatchGet(ctx, tx, &dbsqlc.BatchGetParams{TenantID: uuid.UUID(at.tenant), BatchID: uuid.UUID(at.id)})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fault.New(fault.NotFound, "no batch %s", at.id)
	}
	b := fromRow(at.tenant, dbsqlc.BatchListRow(rows[0]))
	return b, fillSteps(ctx, tx, at.tenant, []*Batch{b})
}

// Filter narrows a list; its zero fields do not.
type Filter struct {
	State               State
	Session, ExternalID string
	// Troubled leaves those that wait for an operator: stuck, or with a
	// reversal that failed.
	Troubled bool
	// Before is the last id of the page before this one.
	Before ID
	Most   int
}

// List returns a page of batches, the newest first.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]*Batch, error) {
	if f.Before == (ID{}) {
		f.Before = ID(uuid.Max)
	}
	rows, err := dbsqlc.New().BatchList(ctx, tx, &dbsqlc.BatchListParams{
		TenantID: uuid.UUID(tenant), Before: uuid.UUID(f.Before), State: given(string(f.State)), SessionID: given(f.Session),
		ExternalID: given(f.ExternalID), Troubled: f.Troubled, Most: int64(f.Most),
	})
	if err != nil {
		return nil, err
	}
	all := make([]*Batch, len(rows))
	for i := range rows {
		all[i] = fromRow(tenant, rows[i])
	}
	return all, fillSteps(ctx, tx, tenant, all)
}

func fromRow(tenant envelope.TenantID, r dbsqlc.BatchListRow) *Batch {
	b := &Batch{
		ID: ID(r.BatchID), Tenant: tenant, ExternalID: r.ExternalID, Atomic: r.Atomic, State: State(r.State), Code: text(r.Code),
		Message: text(r.Message), Session: text(r.SessionID), Automation: text(r.AutomationID), Proposer: r.Proposer,
		CancelledBy: text(r.CancelledBy), ResolvedBy: text(r.ResolvedBy), Note: text(r.Note), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		EndedAt: r.EndedAt, WaitsFor: action(r.WaitsFor), proposedBy: r.ProposedBy, bound: r.SessionBound, tools: r.Tools, origin: r.Origin,
	}
	if r.StoppedAt != nil {
		b.StoppedAt = new(int(*r.StoppedAt))
	}
	if r.EmployeeID != nil {
		b.Employee = envelope.EmployeeID(*r.EmployeeID)
	}
	return b
}

func fillSteps(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, batches []*Batch) error {
	byID, ids := make(map[uuid.UUID]*Batch, len(batches)), make([]uuid.UUID, len(batches))
	for i, b := range batches {
		ids[i] = uuid.UUID(b.ID)
		byID[ids[i]] = b
	}
	rows, err := dbsqlc.New().BatchStepList(ctx, tx, &dbsqlc.BatchStepListParams{TenantID: uuid.UUID(tenant), BatchIds: ids})
	if err != nil {
		return err
	}
	for _, r := range rows {
		s := Step{
			State: StepState(r.State), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName}, Inputs: r.Inputs, Action: action(r.ActionID),
			Reversal: action(r.ReversalAction), Tries: int(r.ReversalTries), Code: text(r.Code), Message: text(r.Message),
		}
		if err := json.Unmarshal(r.Terms, &s.terms); err != nil {
			return fmt.Errorf("decode step %d of batch %s: %w", r.Step, r.BatchID, err)
		}
		if len(r.Reversal) > 0 {
			s.Undo = new(Undo)
			if err := json.Unmarshal(r.Reversal, s.Undo); err != nil {
				return fmt.Errorf("decode step %d of batch %s: %w", r.Step, r.BatchID, err)
			}
		}
		b := byID[r.BatchID]
		b.Steps = append(b.Steps, s)
	}
	return nil
}

// first is a batch that has a name already.
type first struct {
	id      ID
	digest  []byte
	session string
}

// knownAs returns the batch of an external id; nil if there is none.
func knownAs(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, external string) (*first, error) {
	rows, err := dbsqlc.New().BatchKnown(ctx, tx, &dbsqlc.BatchKnownParams{TenantID: uuid.UUID(tenant), ExternalID: external})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &first{ID(rows[0].BatchID), rows[0].ContentDigest, text(rows[0].SessionID)}, nil
}

// insert writes a batch in its first state. If its name is taken by now, that
// is errTwin, and the transaction is over.
func insert(ctx context.Context, tx pgx.Tx, b *Batch, digest []byte) error {
	q, tenant, id := dbsqlc.New(), uuid.UUID(b.Tenant), uuid.UUID(b.ID)
	p := &dbsqlc.BatchInsertParams{
		TenantID: tenant, BatchID: id, ExternalID: b.ExternalID, ContentDigest: digest, Atomic: b.Atomic, State: string(b.State),
		ProposedBy: b.proposedBy, Proposer: b.Proposer, SessionID: b.Session, SessionBound: b.bound, AutomationID: b.Automation,
		Tools: b.tools, Origin: b.origin,
	}
	if b.Employee != (envelope.EmployeeID{}) {
		p.EmployeeID = new(uuid.UUID(b.Employee))
	}
	if err := violations.Fault(q.BatchInsert(ctx, tx, p)); err != nil {
		if postgres.Duplicate(err) {
			return errTwin
		}
		return err
	}
	steps := &dbsqlc.BatchStepInsertManyParams{TenantID: tenant, BatchID: id, State: string(StepPlanned)}
	for i := range b.Steps {
		s := &b.Steps[i]
		terms, err := json.Marshal(s.terms)
		if err != nil {
			return fmt.Errorf("encode step %d: %w", i, err)
		}
		undo, err := json.Marshal(s.Undo)
		if err != nil {
			return fmt.Errorf("encode step %d: %w", i, err)
		}
		steps.Steps = append(steps.Steps, int32(i)) // at most MaxSteps
		steps.SourceIds, steps.ToolNames = append(steps.SourceIds, s.Tool.Source), append(steps.ToolNames, s.Tool.Action)
		steps.Inputs, steps.Terms, steps.Reversals = append(steps.Inputs, s.Inputs), append(steps.Terms, terms), append(steps.Reversals, undo)
	}
	return q.BatchStepInsertMany(ctx, tx, steps)
}

// save writes down how a batch stands, and that nobody need look at it before
// some time has passed.
func save(ctx context.Context, tx pgx.Tx, b *Batch, wait time.Duration) error {
	q, tenant, id := dbsqlc.New(), uuid.UUID(b.Tenant), uuid.UUID(b.ID)
	p := &dbsqlc.BatchSaveParams{
		TenantID: tenant, BatchID: id, State: string(b.State), Code: b.Code, Message: b.Message, ResolvedBy: b.ResolvedBy, Note: b.Note,
		WaitsFor: bare(b.WaitsFor), WaitSeconds: wait.Seconds(), Ended: b.State.Ended(),
	}
	if b.StoppedAt != nil {
		p.StoppedAt = new(int32(*b.StoppedAt)) // at most MaxSteps
	}
	if err := q.BatchSave(ctx, tx, p); err != nil {
		return err
	}
	for i := range b.Steps {
		s := &b.Steps[i]
		if !s.dirty {
			continue
		}
		step := &dbsqlc.BatchStepSaveParams{
			TenantID: tenant, BatchID: id, Step: int32(i), State: string(s.State), ActionID: bare(s.Action), // at most MaxSteps
			ReversalAction: bare(s.Reversal), ReversalTries: int32(s.Tries), Code: s.Code, Message: s.Message,
		}
		if s.Undo != nil {
			var err error
			if step.Reversal, err = json.Marshal(s.Undo); err != nil {
				return fmt.Errorf("encode step %d: %w", i, err)
			}
		}
		if err := q.BatchStepSave(ctx, tx, step); err != nil {
			return err
		}
		s.dirty = false
	}
	return nil
}

// cancel notes that somebody wants no more of a batch.
func cancel(ctx context.Context, tx pgx.Tx, b *Batch, actor string) error {
	_, err := dbsqlc.New().BatchCancel(ctx, tx, &dbsqlc.BatchCancelParams{CancelledBy: actor, TenantID: uuid.UUID(b.Tenant), BatchID: uuid.UUID(b.ID)})
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.Conflict, "too late to cancel: the batch is %s", b.State)
	}
	if err != nil {
		return err
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: b.Tenant, Kind: audit.Batched, Actor: actor, Items: []audit.Item{{Subject: b.ID.String(), Code: "cancel_asked"}}})
}

// postpone has nobody look at a batch for some time.
func postpone(ctx context.Context, tx pgx.Tx, at place, wait time.Duration) error {
	return dbsqlc.New().BatchPostpone(ctx, tx, &dbsqlc.BatchPostponeParams{WaitSeconds: wait.Seconds(), TenantID: uuid.UUID(at.tenant), BatchID: uuid.UUID(at.id)})
}

func prune(ctx context.Context, tx pgx.Tx, most int) (int64, error) {
	return dbsqlc.New().BatchPrune(ctx, tx, int64(most))
}

// revoked says that the token of a submitter was taken away, or the person
// behind it disabled.
func revoked(ctx context.Context, tx pgx.Tx, by intake.Submitter) (bool, error) {
	if by.Token == uuid.Nil {
		return false, nil
	}
	return dbsqlc.New().TokenRevoked(ctx, tx, &dbsqlc.TokenRevokedParams{TenantID: uuid.UUID(by.Tenant), TokenID: by.Token})
}

// note writes into the log where a batch stands now.
func note(ctx context.Context, tx pgx.Tx, b *Batch, actor string) error {
	item := audit.Item{Subject: b.ID.String(), Code: string(b.State), Note: b.Message}
	if b.ResolvedBy != "" {
		item.Note = b.Note
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: b.Tenant, Kind: audit.Batched, Actor: actor, Items: []audit.Item{item}})
}

// factOf reads how an envelope stands.
func factOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id envelope.ActionID) (fact, error) {
	views, err := outbox.Get(ctx, tx, tenant, id)
	if err != nil || len(views) == 0 {
		return fact{gone: true}, err
	}
	v := &views[0]
	f := fact{
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
		f.code, f.message = CodeDenied, "denied by "+v.DecidedBy
		if v.DecisionNote != "" {
			f.message += ": " + redact.Text(v.DecisionNote)
		}
	case e != nil:
		f.code, f.message = e.Code, e.Message
	}
	return f, nil
}

// discard takes an envelope out of the dead letters, if it is there.
func discard(ctx context.Context, tx pgx.Tx, b *Batch, id envelope.ActionID, why string) error {
	_, err := deadletter.Discard(ctx, tx, b.Tenant, deadletter.BulkRequest{IDs: []envelope.ActionID{id}, Limit: 1, Actor: "batch", Note: why})
	return err
}

func action(id *uuid.UUID) *envelope.ActionID {
	if id == nil {
		return nil
	}
	return new(envelope.ActionID(*id))
}

func bare(id *envelope.ActionID) *uuid.UUID {
	if id == nil {
		return nil
	}
	return new(uuid.UUID(*id))
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
