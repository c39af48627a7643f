package workflow

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reference"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// sweepMost bounds the workflows of one sweep, and abreast those advanced
	// concurrently.
	sweepMost   = 200
	concurrency = 4
	// advanceFor bounds the time that one may take.
	advanceFor = 10 * time.Second
	// faultPause is the pause after an error about a workflow.
	faultPause = 5 * time.Second
	// undoPause is the delay before the next attempt to undo a step that was being
	// sent at the last one.
	undoPause = time.Second
	// limitPause bounds the wait for a limit, which may be lifted sooner than
	// announced.
	limitPause = 10 * time.Second
)

// Driver moves workflows on. It is safe for concurrent use, and any number of
// processes may have one: who comes second finds the workflow taken.
type Driver struct {
	db  postgres.Begins
	in  *intake.Intake
	log *slog.Logger
}

// NewDriver returns a Driver. Its proposals go through in, which should
// wake the fleet.
func NewDriver(db postgres.Begins, in *intake.Intake, log *slog.Logger) *Driver {
	return &Driver{db: db, in: in, log: log}
}

// Sweep advances every workflow as far as possible. It returns the number of
// workflows found, and whether any are running. A workflow that fails with an
// error is logged and postponed for some seconds; the others go on.
func (d *Driver) Sweep(ctx context.Context) (moved int, live bool, err error) {
	var due []workflowKey
	err = postgres.InTx(ctx, d.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		due, live, err = ready(ctx, tx, sweepMost)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, at := range due {
		group.Go(func() error {
			d.try(ctx, at)
			return nil
		})
	}
	return len(due), live, group.Wait()
}

func (d *Driver) try(ctx context.Context, at workflowKey) {
	ctx, cancel := context.WithTimeout(ctx, advanceFor)
	defer cancel()
	err := d.advance(ctx, at)
	if err == nil || ctx.Err() != nil {
		return
	}
	d.log.ErrorContext(ctx, "workflow was not moved on", slog.String("workflow_id", at.id.String()), slog.Any("error", err))
	err = postgres.InTx(ctx, d.db, postgres.Worker(), func(tx pgx.Tx) error { return postpone(ctx, tx, at, faultPause) })
	if err != nil && ctx.Err() == nil {
		d.log.WarnContext(ctx, "workflow was not postponed", slog.String("workflow_id", at.id.String()), slog.Any("error", err))
	}
}

// advance moves a workflow on in one transaction: its proposals and that it
// did are written together.
func (d *Driver) advance(ctx context.Context, at workflowKey) error {
	var t *tick
	err := postgres.InTx(ctx, d.db, postgres.Worker(), func(tx pgx.Tx) error {
		t = nil
		b, err := take(ctx, tx, at)
		if err != nil || b == nil {
			return err
		}
		t = newTick(tx, d.in, b)
		return t.run(ctx)
	})
	if err == nil && t != nil {
		for _, tell := range t.committed {
			tell()
		}
	}
	return err
}

// tick is one transaction's work on a locked workflow.
type tick struct {
	tx  pgx.Tx
	in  *intake.Intake
	b   *Workflow
	was State
	// known are the states of the envelopes; err is the error of reading one.
	known map[envelope.ActionID]actionState
	err   error
	// committed are the functions to call after the commit.
	committed []func()
}

func newTick(tx pgx.Tx, in *intake.Intake, b *Workflow) *tick {
	return &tick{tx: tx, in: in, b: b, was: b.State, known: make(map[envelope.ActionID]actionState)}
}

// run advances the workflow until it has to wait.
func (t *tick) run(ctx context.Context) error {
	for {
		m := t.b.next(func(id envelope.ActionID) actionState { return t.state(ctx, id) })
		if t.err != nil {
			return t.err
		}
		var wait time.Duration
		var err error
		switch m.kind {
		case transitionWait:
			return t.pause(ctx, 0)
		case transitionPropose:
			wait, err = t.propose(ctx, m.step)
		case transitionRevert:
			wait, err = t.revert(ctx, m.step)
		case transitionCancel:
			wait, err = t.cancel(ctx, m.step)
		}
		if err != nil {
			return err
		}
		if wait > 0 {
			t.b.WaitsFor = nil
			return t.pause(ctx, wait)
		}
	}
}

// pause stores the state of the workflow.
func (t *tick) pause(ctx context.Context, wait time.Duration) error {
	if err := save(ctx, t.tx, t.b, wait); err != nil {
		return err
	}
	if t.b.State == t.was {
		return nil
	}
	return writeEvent(ctx, t.tx, t.b, "workflow")
}

// state reads the state of an action. A failed step of an atomic workflow is
// first removed from the dead letters: its workflow continues without it, and a
// replay would repeat the reverted effects.
func (t *tick) state(ctx context.Context, id envelope.ActionID) actionState {
	if f, ok := t.known[id]; ok {
		return f
	}
	f, err := readActionState(ctx, t.tx, t.b.Tenant, id)
	if err == nil && t.b.Atomic && t.b.Code == "" && f.status == envelope.StatusFailed {
		if err = discard(ctx, t.tx, t.b, id, "its atomic workflow goes on without it"); err == nil {
			f, err = readActionState(ctx, t.tx, t.b.Tenant, id)
		}
	}
	if err != nil {
		t.err = errors.Join(t.err, err)
		return actionState{status: envelope.StatusPending}
	}
	t.known[id] = f
	return f
}

// submitter returns the proposer of the workflow.
func (t *tick) submitter() intake.Submitter {
	by := intake.Submitter{Tenant: t.b.Tenant, Tools: t.b.tools, Origin: t.b.origin, Workflow: uuid.UUID(t.b.ID)}
	by.Name, by.Token, by.Operator = t.b.Proposer.Parts()
	if t.b.proposedBy != nil {
		by.Token = *t.b.proposedBy
	}
	if t.b.person != nil {
		by.Person = *t.b.person
	}
	if t.b.bound {
		by.Session = t.b.Session
	}
	return by
}

// propose proposes a step. It returns the time to wait if a limit refuses it.
func (t *tick) propose(ctx context.Context, i int) (time.Duration, error) {
	s, by := &t.b.Steps[i], t.submitter()
	gone, err := revoked(ctx, t.tx, by)
	if err != nil {
		return 0, err
	}
	if gone {
		t.b.stop(i, CodeTokenRevoked, "the token that proposed it was revoked, or who holds it disabled")
		return 0, nil
	}
	args, err := fillInputs(s.Inputs, func(step int) reference.Value {
		return reference.Answered(t.state(ctx, *t.b.Steps[step].Action).result)
	})
	if err != nil {
		t.b.fail(i, asStepError(err))
		return 0, t.err
	}
	action, wait, why, err := t.accept(ctx, by, &envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: t.b.nameOf(i), Tool: envelope.Tool{Name: s.Tool.Action, Source: s.Tool.Source}, Args: args,
		Risk: s.options.Risk, Approval: s.options.Approval, Constraints: s.options.Constraints,
		EmployeeID: t.b.Employee, SessionID: t.b.Session, AutomationID: t.b.Automation,
	})
	switch {
	case err != nil || wait > 0:
		return wait, err
	case why != nil:
		t.b.fail(i, why)
	default:
		s.Action = &action
		s.set(StepRunning, "", "")
	}
	return 0, nil
}

// revert proposes the reversal of a step. It is Countersign's own proposal, on
// behalf of the workflow's proposer, so that they do not approve it
// themselves; neither their tools nor their limits apply to it.
func (t *tick) revert(ctx context.Context, i int) (time.Duration, error) {
	s := &t.b.Steps[i]
	p, failed := s.reversal(t.state(ctx, *s.Action))
	if failed != nil {
		s.set(StepRevertFailed, failed.code, failed.message)
		return 0, t.err
	}
	p.EmployeeID, p.SessionID = t.b.Employee, t.b.Session
	by := t.submitter()
	by.Session, by.Tools, by.Name, by.Reserved = "", nil, "workflow", true
	action, wait, why, err := t.accept(ctx, by, p)
	switch {
	case err != nil || wait > 0:
		return wait, err
	case why != nil:
		s.set(StepRevertFailed, why.code, why.message)
	default:
		s.ReversalAction = &action
		s.set(StepReverting, "", "")
	}
	return 0, nil
}

// accept submits a proposal to intake. It returns the time to wait if the
// proposal cannot be accepted now, or the reason if it cannot be accepted at
// all. A known envelope is not this workflow's: its own are stored in the same
// transaction as their ids.
func (t *tick) accept(ctx context.Context, by intake.Submitter, p *envelope.Proposal) (id envelope.ActionID, wait time.Duration, why *stepError, err error) {
	if err := p.Validate(); err != nil {
		return id, 0, &stepError{CodeRefused, textOf(err)}, nil
	}
	answers, committed, err := t.in.AcceptTx(ctx, t.tx, by, []*envelope.Proposal{p}, true)
	if err != nil {
		return id, 0, nil, err
	}
	t.committed = append(t.committed, committed)
	a := answers[0]
	switch kind := fault.KindOf(a.Err); {
	case kind == fault.Limited, kind == fault.Busy:
		wait = undoPause
		if limited, ok := errors.AsType[*fault.Error](a.Err); ok {
			wait = min(max(limited.After, undoPause), limitPause)
		}
		return id, wait, nil, nil
	case a.Err != nil && kind == "":
		return id, 0, nil, a.Err
	case a.Err != nil:
		return id, 0, &stepError{CodeRefused, textOf(a.Err)}, nil
	case a.Known:
		return id, 0, &stepError{CodeNameTaken, "another envelope has the same name " + p.ExternalID}, nil
	}
	return a.Action, 0, nil, nil
}

// cancel undoes the action of a step. A call in flight either ends or goes
// back to the schedule, where a later call of cancel finds it.
func (t *tick) cancel(ctx context.Context, i int) (time.Duration, error) {
	id := *t.b.Steps[i].Action
	delete(t.known, id)
	err := outbox.Undo(ctx, t.tx, t.b.Tenant, id, envelope.Actor(t.b.CancelledBy))
	switch {
	case errors.Is(err, fault.Conflict):
		return undoPause, nil
	case errors.Is(err, fault.NotFound):
		return 0, nil
	}
	return 0, err
}
