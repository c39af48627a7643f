package workflow

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Service takes workflows and people's decisions about them. It is safe for
// concurrent use.
type Service struct {
	db    postgres.Begins
	cache *settings.Cache
	wake  func()
}

// NewService returns a Service. wake is called after a commit that lets a driver move
// a workflow on; it must not block, and may be lost.
func NewService(db postgres.Begins, cache *settings.Cache, wake func()) *Service {
	return &Service{db: db, cache: cache, wake: wake}
}

// Submit checks a workflow as far as possible before anything runs, and stores
// it; a driver does the rest. The same external id with the same content is the
// same workflow, in any state, and known is then true; with other content the
// error is fault.Conflict. For an invalid request it is an
// *envelope.InvalidError whose pointers begin with /steps.
func (d *Service) Submit(ctx context.Context, by intake.Submitter, r Request) (id ID, known bool, err error) {
	digest, err := bind(&r, by)
	if err != nil {
		return id, false, err
	}
	for range 2 {
		err = d.inTx(ctx, by, func(ctx context.Context, tx pgx.Tx) error {
			id, known, err = d.submit(ctx, tx, by, &r, digest)
			return err
		})
		// Another transaction stored the same name meanwhile: it is known now.
		if !errors.Is(err, errDuplicate) {
			break
		}
	}
	if err == nil && !known {
		d.wake()
	}
	return id, known, err
}

// inTx runs fn in a transaction in which nothing waits for a slot.
func (d *Service) inTx(ctx context.Context, by intake.Submitter, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return slot.Briefly(slot.For(ctx, by.Tenant.String()), 0, func(ctx context.Context) error {
		return postgres.InTx(ctx, d.db, postgres.API(by.Tenant), func(tx pgx.Tx) error { return fn(ctx, tx) })
	})
}

// errDuplicate is the error for a workflow whose name another transaction
// stored concurrently.
var errDuplicate = fault.New(fault.Busy, "another request is submitting the same workflow; try again")

func (d *Service) submit(ctx context.Context, tx pgx.Tx, by intake.Submitter, r *Request, digest []byte) (ID, bool, error) {
	first, err := findExisting(ctx, tx, by.Tenant, r.ExternalID)
	if err != nil {
		return ID{}, false, err
	}
	switch {
	case first == nil:
	case !by.Sees(postgres.OrZero(first.ProposedBy), postgres.OrZero(first.SessionID)):
		return ID{}, false, intake.ErrTaken()
	case !bytes.Equal(first.ContentDigest, digest):
		return ID{}, false, fault.Coded(wire.CodeExternalIDTaken, fault.Conflict, "a workflow with this external_id exists with other content: %s", first.WorkflowID)
	default:
		return ID(first.WorkflowID), true, postgres.AwaitStandbys(ctx, tx)
	}
	steps, err := d.check(ctx, tx, by, r)
	if err != nil {
		return ID{}, false, err
	}
	b := newWorkflow(by, r, steps)
	if err := insert(ctx, tx, b, digest); err != nil {
		return ID{}, false, err
	}
	return b.ID, false, writeEvent(ctx, tx, b, by.Actor())
}

// Preview checks a workflow as Submit does, and writes nothing.
func (d *Service) Preview(ctx context.Context, by intake.Submitter, r Request) ([]PlannedStep, error) {
	if _, err := bind(&r, by); err != nil {
		return nil, err
	}
	var steps []PlannedStep
	err := d.inTx(ctx, by, func(ctx context.Context, tx pgx.Tx) (err error) {
		steps, err = d.check(ctx, tx, by, &r)
		return err
	})
	return steps, err
}

// bind gives the request the session and the employee of its submitter, and
// returns its digest.
func bind(r *Request, by intake.Submitter) ([]byte, error) {
	if err := by.CheckExternalID(r.ExternalID); err != nil {
		return nil, err
	}
	var found check.Problems
	if by.Session != "" && r.Session != "" && r.Session != by.Session {
		found.Add("/session_id", "session", "is not the session of this token; omit it")
	}
	if by.Employee != (envelope.EmployeeID{}) && r.Employee != (envelope.EmployeeID{}) && r.Employee != by.Employee {
		found.Add("/employee_id", "employee", "is not the employee of this token; omit it")
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	if by.Session != "" {
		r.Session = by.Session
	} else if err := by.CheckSession(r.Session); err != nil {
		return nil, err
	}
	if by.Employee != (envelope.EmployeeID{}) {
		r.Employee = by.Employee
	} else if err := by.CheckEmployee(r.Employee); err != nil {
		return nil, err
	}
	return r.digest()
}

func (d *Service) check(ctx context.Context, tx pgx.Tx, by intake.Submitter, r *Request) ([]PlannedStep, error) {
	snap, state, err := d.cache.CurrentAndState(ctx, tx, by.Tenant)
	if err != nil {
		return nil, err
	}
	if err := intake.CheckAgentSession(ctx, tx, by, r.Session); err != nil {
		return nil, err
	}
	steps, err := plan(ctx, snap, by, r, state.Now)
	if err != nil {
		return nil, err
	}
	return steps, decide(ctx, tx, snap, by, r, steps, state.Now)
}

// newWorkflow makes the first state of a workflow.
func newWorkflow(by intake.Submitter, r *Request, steps []PlannedStep) *Workflow {
	b := &Workflow{
		ID: ID(uuid.Must(uuid.NewV7())), Tenant: by.Tenant, ExternalID: r.ExternalID, Atomic: r.Atomic, State: StateRunning,
		Session: r.Session, Employee: r.Employee, Automation: r.Automation, Proposer: by.Actor(), Steps: make([]Step, len(steps)),
		bound: by.Session != "", tools: by.Tools, origin: by.Origin,
	}
	if by.Token != uuid.Nil {
		b.proposedBy = &by.Token
	}
	if by.Person != uuid.Nil {
		b.person = &by.Person
	}
	for i := range steps {
		p := r.proposal(i)
		b.Steps[i] = Step{
			State: StepPlanned, Tool: steps[i].Tool, Inputs: p.Args, Reversal: steps[i].Reversal,
			options: options{Risk: p.Risk, Approval: p.Approval, Constraints: p.Constraints},
		}
	}
	return b
}

// Cancel has a workflow go no further: the step that runs is undone if nothing
// of it has been sent, and otherwise runs to its end. Of an atomic workflow
// its effects are then reverted. Cancelling twice is as good as once.
// fault.Conflict means that it has stopped already.
func (d *Service) Cancel(ctx context.Context, tenant envelope.TenantID, id ID, actor envelope.Actor) error {
	return d.change(ctx, tenant, id, func(tx pgx.Tx, b *Workflow) error {
		if b.Code != "" || b.State.Ended() {
			return fault.New(fault.Conflict, "too late to cancel: the workflow is %s", b.State)
		}
		return cancel(ctx, tx, b, actor)
	})
}

// Retry proposes the failed reversal again, by the current catalog.
// fault.Conflict means that no reversal has failed.
func (d *Service) Retry(ctx context.Context, tenant envelope.TenantID, id ID, actor, why string) error {
	return d.change(ctx, tenant, id, func(tx pgx.Tx, b *Workflow) error {
		s, err := b.failedReversal(ctx, tx)
		if err != nil {
			return err
		}
		snap, err := d.cache.Current(ctx, tx, tenant)
		if err != nil {
			return err
		}
		if tool, ok := snap.Tool(s.Tool); ok && tool.Reversal != nil {
			s.Reversal = tool.Reversal
		}
		s.ReversalAction, s.ReversalAttempts = nil, s.ReversalAttempts+1
		s.set(StepDone, "", "")
		return b.resolve(ctx, tx, StateReverting, actor, why)
	})
}

// Resolve records that a person has handled the failed reversal. The steps
// before it are then reverted; with abandon everything is left as it is, which
// also ends a stuck workflow. fault.Conflict means that there is nothing to
// resolve.
func (d *Service) Resolve(ctx context.Context, tenant envelope.TenantID, id ID, actor, why string, abandon bool) error {
	return d.change(ctx, tenant, id, func(tx pgx.Tx, b *Workflow) error {
		if b.State == StateStuck && abandon {
			return b.resolve(ctx, tx, StateResolved, actor, why)
		}
		s, err := b.failedReversal(ctx, tx)
		if err != nil {
			return err
		}
		s.set(StepResolved, s.Code, s.Message)
		if abandon {
			return b.resolve(ctx, tx, StateResolved, actor, why)
		}
		return b.resolve(ctx, tx, StateReverting, actor, why)
	})
}

// change takes a workflow for a change by a person.
func (d *Service) change(ctx context.Context, tenant envelope.TenantID, id ID, fn func(tx pgx.Tx, b *Workflow) error) error {
	err := postgres.InTx(ctx, d.db, postgres.API(tenant), func(tx pgx.Tx) error {
		b, err := hold(ctx, tx, workflowKey{tenant, id})
		if err != nil {
			return err
		}
		return fn(tx, b)
	})
	if err == nil {
		d.wake()
	}
	return err
}

// failedReversal returns the step whose reversal failed. It removes the dead letter
// of the reversal, which must not have been replayed.
func (b *Workflow) failedReversal(ctx context.Context, tx pgx.Tx) (*Step, error) {
	at := b.last(StepRevertFailed)
	switch {
	case b.State == StateStuck && b.WaitsFor != nil:
		return nil, fault.New(fault.Conflict, "the workflow is stuck: first resolve the action %s (countersign dlq resolve), or abandon the workflow", *b.WaitsFor)
	case b.State != StateCompensationFailed || at < 0:
		return nil, fault.New(fault.Conflict, "no reversal has failed: the workflow is %s", b.State)
	}
	s := &b.Steps[at]
	if s.ReversalAction == nil {
		return s, nil
	}
	if err := discard(ctx, tx, b, *s.ReversalAction, "a person has seen to it"); err != nil {
		return nil, err
	}
	f, err := readActionState(ctx, tx, b.Tenant, *s.ReversalAction)
	if err == nil && (f.done() || f.running()) {
		err = fault.New(fault.Conflict, "the reversal was replayed meanwhile: the action %s is %s", *s.ReversalAction, f.status)
	}
	return s, err
}

// resolve stores a person's resolution of the workflow: StateReverting has a
// driver continue it, StateResolved ends it as it is.
func (b *Workflow) resolve(ctx context.Context, tx pgx.Tx, to State, actor, why string) error {
	b.State, b.WaitsFor, b.ResolvedBy, b.Note = to, nil, actor, why
	if to == StateResolved {
		b.skipPlanned()
	}
	if err := save(ctx, tx, b, 0); err != nil {
		return err
	}
	return writeEvent(ctx, tx, b, envelope.Actor(actor))
}

// Prune deletes workflows that ended before their tenants' retention of the
// execution log, and returns their number.
func Prune(ctx context.Context, db postgres.Begins) (int64, error) {
	const most = 1000
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (int64, error) {
		return prune(ctx, tx, most)
	})
}
