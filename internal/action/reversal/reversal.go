// Package reversal owns reversals: the actions that take back the effects of
// completed actions, by the tool and with the arguments that the catalog
// declares. A reversal is proposed through intake, so policy, limits and
// approval apply to it as to any other action.
//
// An action has one reversal: its external id derives from the id of the
// reverted action, so that every repeated request, atomic workflows included,
// gets the same reversal. Only if a reversal ended without an effect does a new
// request make another.
//
// The package does not call tools, and never reverts an action whose outcome is
// unknown.
package reversal

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reference"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxBatch bounds the actions of one Revert, which reads all their arguments
// and answers.
const MaxBatch = 100

// Service reverts actions. It is safe for concurrent use.
type Service struct {
	db    postgres.Begins
	cache *settings.Cache
	in    *intake.Intake
}

// New returns a Service that proposes through in.
func New(db postgres.Begins, cache *settings.Cache, in *intake.Intake) *Service {
	return &Service{db: db, cache: cache, in: in}
}

// Request is the reversal of up to MaxBatch actions.
type Request struct {
	// By is the proposer of the reversals, whose name, session and tools they
	// have.
	By intake.Submitter
	// Sees reports whether By may see the actions of a session.
	Sees func(session string) bool
	// Actions are proposed for reversal in this order.
	Actions []envelope.ActionID
	// DryRun proposes nothing. The answers are those that Revert would return; ids
	// of new reversals are meaningless.
	DryRun bool
}

// Answer is the result for one action.
type Answer struct {
	// Reverted is the action. Tool is its tool, if the caller may see it.
	Reverted envelope.ActionID
	Tool     policy.Key
	// By is the tool of a reversal that is new, and Args its arguments.
	By   policy.Key
	Args json.RawMessage
	// Answer is the answer about the reversal: Known, and its Phase, if the action
	// already has one. Err is the reason why there is none: fault.NotFound for an
	// action that the caller may not see, fault.Conflict with a Pointer and a Rule
	// if the action cannot be reverted, or an error of intake.
	intake.Answer
	Phase envelope.Phase
}

// errDryRun rolls a dry run back.
var errDryRun = errors.New("dry run")

// Revert proposes reversals in one transaction and returns an answer for each
// action, in order. Concurrent requests for the same action get the same
// reversal. An error means that nothing was proposed.
func (s *Service) Revert(ctx context.Context, req Request) ([]Answer, error) {
	if len(req.Actions) > MaxBatch {
		return nil, fault.New(fault.Invalid, "at most %d actions at once", MaxBatch)
	}
	var answers []Answer
	committed := func() {}
	err := postgres.InTx(ctx, s.db, postgres.API(req.By.Tenant), func(tx pgx.Tx) (err error) {
		if answers, committed, err = s.revert(ctx, tx, &req); err == nil && req.DryRun {
			err = errDryRun
		}
		return err
	})
	switch {
	case errors.Is(err, errDryRun):
		return answers, nil
	case err != nil:
		return nil, err
	}
	committed()
	return answers, nil
}

func (s *Service) revert(ctx context.Context, tx pgx.Tx, req *Request) ([]Answer, func(), error) {
	calls, err := read(ctx, tx, req.By.Tenant, req.Actions)
	if err != nil {
		return nil, nil, err
	}
	snap, err := s.cache.Current(ctx, tx, req.By.Tenant)
	if err != nil {
		return nil, nil, err
	}
	answers := make([]Answer, len(req.Actions))
	var proposals []*envelope.Proposal
	var at []int
	asked := make(map[envelope.ActionID]int, len(req.Actions))
	for i, id := range req.Actions {
		c, known := calls[id]
		if !known || !req.Sees(c.view.Envelope.SessionID) {
			answers[i] = Answer{Reverted: id, Answer: intake.Answer{Err: fault.New(fault.NotFound, "no action %s", id)}}
			continue
		}
		if _, again := asked[id]; again {
			continue
		}
		asked[id] = i
		var p *envelope.Proposal
		if answers[i], p = c.answer(snap, req.By); p != nil {
			proposals, at = append(proposals, p), append(at, i)
		}
	}
	committed := func() {}
	if len(proposals) > 0 {
		by := req.By
		// Reserved is needed for the names and the automation of reversals. They name
		// no session, and an employee only if the caller may name it.
		by.Reserved = true
		var accepted []intake.Answer
		if accepted, committed, err = s.in.AcceptTx(ctx, tx, by, proposals, true); err != nil {
			return nil, nil, err
		}
		for n, a := range accepted {
			a.Err = below(a.Err)
			answers[at[n]].Answer, answers[at[n]].Phase = a, envelope.PhaseOf(a.Approval, envelope.StatusPending, "")
		}
	}
	for i, id := range req.Actions {
		if first, ok := asked[id]; ok {
			answers[i] = answers[first]
		}
	}
	return answers, committed, nil
}

// below moves the pointers of an error of intake below /reversal.
func below(err error) error {
	var found check.Problems
	if other := found.Below("/reversal", err); other != nil {
		return other
	}
	return found.Err()
}

// call is the current state of an action to revert.
type call struct {
	view outbox.View
	// workflow is the atomic workflow of which it is a step, if that has not
	// ended.
	workflow uuid.UUID
	// last is its last reversal, and try the number of that; zero for none.
	last     envelope.ActionID
	try      int
	phase    envelope.Phase
	attempts int
	// dead reports whether the last reversal is a dead letter.
	dead bool
}

// answer returns the answer about an action that has a reversal or cannot have
// one, or the proposal of a new one.
func (c *call) answer(snap *settings.Settings, by intake.Submitter) (Answer, *envelope.Proposal) {
	e := &c.view.Envelope
	a := Answer{Reverted: e.ActionID, Tool: policy.Key{Source: e.Tool.Source, Action: e.Tool.Name}}
	if a.Err = c.refuseKind(); a.Err != nil {
		return a, nil
	}
	if c.try > 0 && !c.again() {
		if a.Err = c.refuseAgain(); a.Err == nil {
			a.Action, a.Known, a.Phase = c.last, true, c.phase
		}
		return a, nil
	}
	if a.Err = c.refuse(); a.Err != nil {
		return a, nil
	}
	tool, ok := snap.Tool(a.Tool)
	if !ok || tool.Reversal == nil {
		a.Err = refusal("/tool", "no_reversal", "the catalog declares no reversal for %s; countersign tools describe %s --reverse-by declares it", a.Tool, a.Tool)
		return a, nil
	}
	p, err := Propose(tool.Reversal, Call{Action: e.ActionID, Args: e.Args, Result: e.Result.Output}, c.try+1)
	if broken, ok := errors.AsType[*reference.Error](err); ok {
		err = refusal("/"+string(broken.Ref.Root)+broken.Ref.Path.String(), broken.Code, "its reversal %s needs %s", tool.Reversal.Tool, broken.Message)
	}
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		a.Err = below(err)
		return a, nil
	}
	p.EmployeeID = employee(by, e.EmployeeID)
	a.By, a.Args = tool.Reversal.Tool, p.Args
	return a, p
}

// employee returns the employee of a reversal: that of the reverted action if
// the proposer may name it, and otherwise none.
func employee(by intake.Submitter, reverted envelope.EmployeeID) envelope.EmployeeID {
	if by.Employee != (envelope.EmployeeID{}) || by.Names.CheckEmployee(reverted) != nil {
		return envelope.EmployeeID{}
	}
	return reverted
}

// again reports whether the last reversal ended without an effect and cannot be
// retried itself. One that was skipped after an attempt may have been replayed,
// and the attempt may have had its effect.
func (c *call) again() bool {
	switch c.phase {
	case envelope.PhaseDenied, envelope.PhaseExpired, envelope.PhaseSkipped, envelope.PhaseUndone:
		return c.attempts == 0
	case envelope.PhaseFailed:
		return !c.dead
	case envelope.PhasePending, envelope.PhaseApproved, envelope.PhaseExecuting, envelope.PhaseCompleted, envelope.PhaseUnknown:
	}
	return false
}

// refuseAgain returns the reason why a last reversal without an effect
// prevents another.
func (c *call) refuseAgain() error {
	switch c.phase {
	case envelope.PhaseFailed:
		return refusal("/reverted_by", "dead_letter", "its reversal %s failed: replay it (countersign dlq replay), or discard it and revert again", c.last)
	case envelope.PhaseDenied, envelope.PhaseExpired, envelope.PhaseSkipped, envelope.PhaseUndone:
		return refusal("/reverted_by", "sent_before", "its reversal %s is %s, and was sent before; check its effect, and propose the remaining changes", c.last, c.phase)
	case envelope.PhasePending, envelope.PhaseApproved, envelope.PhaseExecuting, envelope.PhaseCompleted, envelope.PhaseUnknown:
	}
	return nil
}

// refuseKind returns an error for actions that can never be reverted.
func (c *call) refuseKind() error {
	e := &c.view.Envelope
	switch {
	case Reverts(e.ExternalID) != nil:
		return refusal("/reverts", "reversal", "it is a reversal itself; to have the first effect again, propose that action again")
	case c.view.Effect == envelope.EffectRead:
		return refusal("/effect", "read", "it only read, and has no effect to revert")
	}
	return nil
}

// refuse returns an error for actions that cannot be reverted in their current
// state.
func (c *call) refuse() error {
	if c.workflow != uuid.Nil {
		return refusal("/workflow_id", "workflow", "it is a step of the atomic workflow %s, which has not ended and may revert it itself; cancel the workflow instead (countersign workflow cancel)", c.workflow)
	}
	switch phase := c.view.Phase; phase {
	case envelope.PhaseCompleted:
		if c.view.Envelope.Result.Status == envelope.StatusConflict {
			return refusal("/envelope/result/status", "already_present", "its effect already existed, so the effect may belong to another call")
		}
		return nil
	case envelope.PhaseUnknown:
		return refusal("/phase", "unknown", "it is unknown whether it happened; first resolve it (countersign dlq resolve)")
	case envelope.PhasePending, envelope.PhaseApproved:
		return refusal("/phase", "not_sent", "it is %s, and has not been sent; undo it instead (countersign undo)", phase)
	case envelope.PhaseExecuting:
		return refusal("/phase", "not_ended", "it is being sent; wait until it ends")
	case envelope.PhaseDenied, envelope.PhaseFailed, envelope.PhaseExpired, envelope.PhaseSkipped, envelope.PhaseUndone:
		return refusal("/phase", "no_effect", "it is %s, and had no effect", phase)
	}
	return nil
}

// refusal returns why an action cannot be reverted. The pointer is into the
// action as the API shows it, or into the inputs or outputs of its call.
func refusal(pointer, rule, format string, args ...any) error {
	return fault.At(pointer, rule, fault.Conflict, format, args...)
}

// Filter selects actions. A zero field selects all.
type Filter struct {
	Workflow uuid.UUID
	Session  string
	// Source and Tool select by the name of the source and the tool.
	Source, Tool string
	// Since and Until bound when the actions were proposed: from Since on, before
	// Until.
	Since, Until time.Time
	// Before is the last action of the previous page, and Limit the size of a
	// page.
	Before envelope.ActionID
	Limit  int
}

// Check returns an error that names the invalid field of a filter, which is at a
// pointer.
func (f Filter) Check(at string) error {
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return check.Invalid(at+"/until", check.RuleOrder, "must be later than since")
	}
	return nil
}
