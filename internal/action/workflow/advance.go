package workflow

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reversal"
)

// actionState is the state of an action of a workflow.
type actionState struct {
	status   envelope.Status
	approval envelope.Approval
	effect   envelope.Effect
	attempts int
	// args are the arguments of its call.
	args json.RawMessage
	// result is the stored part of the answer.
	result        json.RawMessage
	code, message string
	// gone reports whether the envelope no longer exists.
	gone bool
}

func (f actionState) done() bool {
	return !f.gone && (f.status == envelope.StatusSent || f.status == envelope.StatusConflict)
}

func (f actionState) running() bool {
	return !f.gone && (f.status == envelope.StatusPending || f.status == envelope.StatusSending)
}

// why returns why an action ended without its effect.
func (f actionState) why() *stepError {
	switch {
	case f.gone:
		return &stepError{CodeGone, "the envelope no longer exists"}
	case f.code != "":
		return &stepError{f.code, f.message}
	case f.approval == envelope.ApprovalExpired:
		return &stepError{CodeExpired, "nobody decided about it in time"}
	}
	return &stepError{CodeDenied, "it was denied"}
}

// transitionKind is the kind of the next step of a workflow.
type transitionKind string

// The transitions.
const (
	// transitionWait: nothing, before the envelope that it waits for has ended.
	transitionWait transitionKind = "rest"
	// transitionPropose proposes the step.
	transitionPropose transitionKind = "propose"
	// transitionRevert proposes the step's reversal.
	transitionRevert transitionKind = "revert"
	// transitionCancel undoes the step's action, if possible.
	transitionCancel transitionKind = "undo"
)

// transition is the next step of a workflow.
type transition struct {
	kind transitionKind
	step int
}

// next records the steps that have ended since the last call and returns the next
// transition. It alone defines the order of transitions, and depends only on the workflow
// and the states of its actions.
func (b *Workflow) next(of func(envelope.ActionID) actionState) transition {
	for !b.State.Ended() {
		m, decided := b.forward(of)
		if b.Code != "" {
			m, decided = b.backward(of)
		}
		if decided {
			return m
		}
	}
	b.WaitsFor = nil
	return transition{kind: transitionWait}
}

// forward handles the first step that has not been done. It returns false if
// it changed a step and must be called again.
func (b *Workflow) forward(of func(envelope.ActionID) actionState) (m transition, decided bool) {
	if b.Code != "" {
		return m, false
	}
	i := b.first(StepPlanned, StepRunning)
	if i < 0 {
		b.State = StateCompleted
		return m, false
	}
	s := &b.Steps[i]
	if s.State == StepPlanned {
		b.State = StateRunning
		if b.CancelledBy != "" {
			b.stop(i, CodeCancelled, "cancelled by "+b.CancelledBy)
			return m, false
		}
		return transition{transitionPropose, i}, true
	}
	f := of(*s.Action)
	switch {
	case f.done():
		b.State = StateRunning
		s.set(StepDone, "", "")
		b.reversible(i, f)
		return m, false
	case f.running():
		b.State, b.WaitsFor = StateRunning, s.Action
		if b.CancelledBy != "" {
			return transition{transitionCancel, i}, true
		}
		return transition{kind: transitionWait}, true
	case !f.gone && f.status == envelope.StatusUnknown:
		b.State, b.WaitsFor = StateStuck, s.Action
		return transition{kind: transitionWait}, true
	}
	b.fail(i, f.why())
	return m, false
}

// reversible stops an atomic workflow with steps left at a step that turns out to
// be irreversible, since each further step would make it worse.
func (b *Workflow) reversible(i int, f actionState) {
	if !b.Atomic || i == len(b.Steps)-1 || f.effect == envelope.EffectRead || f.status == envelope.StatusConflict {
		return
	}
	if _, err := b.Steps[i].reversal(f); err != nil {
		b.stop(i, CodeIrreversible, fmt.Sprintf("step %d was done, and cannot be taken back: %s", i, err))
	}
}

// fail ends a step, and the remaining steps of the workflow with it.
func (b *Workflow) fail(i int, why *stepError) {
	b.Steps[i].set(StepFailed, why.code, why.message)
	if b.CancelledBy != "" {
		b.stop(i, CodeCancelled, "cancelled by "+b.CancelledBy)
		return
	}
	b.stop(i, CodeStepFailed, fmt.Sprintf("step %d: %s", i, why.code))
}

// stop ends the workflow at a step, or begins to revert it.
func (b *Workflow) stop(at int, code, message string) {
	b.Code, b.Message, b.StoppedAt = code, message, &at
	b.skipPlanned()
	switch {
	case b.Atomic:
		b.State = StateReverting
	case code == CodeCancelled:
		b.State = StateCancelled
	default:
		b.State = StateFailed
	}
}

// skipPlanned ends the steps that were not begun.
func (b *Workflow) skipPlanned() {
	for i := range b.Steps {
		if b.Steps[i].State == StepPlanned {
			b.Steps[i].set(StepSkipped, "", "")
		}
	}
}

// backward handles the last step that has been done and not reverted.
func (b *Workflow) backward(of func(envelope.ActionID) actionState) (m transition, decided bool) {
	if b.State.Ended() {
		return m, false
	}
	i := b.last(StepDone, StepReverting, StepRevertFailed)
	if i < 0 {
		b.State = StateReverted
		return m, false
	}
	s := &b.Steps[i]
	switch {
	case s.State == StepDone:
		return b.beginRevert(i, of(*s.Action))
	case s.ReversalAction == nil:
		b.State, b.WaitsFor = StateCompensationFailed, nil
		return transition{kind: transitionWait}, true
	}
	f := of(*s.ReversalAction)
	switch {
	case f.done():
		s.set(StepReverted, "", "")
		b.State = StateReverting
		return m, false
	case f.running():
		s.set(StepReverting, "", "")
		b.State, b.WaitsFor = StateReverting, s.ReversalAction
	case !f.gone && f.status == envelope.StatusUnknown:
		s.set(StepReverting, "", "")
		b.State, b.WaitsFor = StateStuck, s.ReversalAction
	default:
		why := f.why()
		s.set(StepRevertFailed, why.code, why.message)
		b.State, b.WaitsFor = StateCompensationFailed, s.ReversalAction
	}
	return transition{kind: transitionWait}, true
}

// beginRevert decides the transition for a completed step.
func (b *Workflow) beginRevert(i int, f actionState) (m transition, decided bool) {
	s := &b.Steps[i]
	b.State = StateReverting
	asked := s.ReversalAttempts > 0
	switch _, err := s.reversal(f); {
	case f.effect == envelope.EffectRead, f.status == envelope.StatusConflict && f.attempts <= 1 && !asked:
		s.set(StepKept, "", "")
	case f.status == envelope.StatusConflict && !asked:
		s.set(StepRevertFailed, CodeAlreadyPresent, "it found its effect there already, perhaps from an earlier attempt of its own: retry takes it back, resolve leaves it")
	case err != nil:
		s.set(StepRevertFailed, err.code, err.message)
	default:
		return transition{transitionRevert, i}, true
	}
	return m, false
}

// reversal returns the proposal of the step's reversal.
func (s *Step) reversal(f actionState) (*envelope.Proposal, *stepError) {
	if f.gone {
		return nil, &stepError{CodeGone, "the envelope no longer exists, so its reversal is unknown"}
	}
	if s.Reversal == nil {
		return nil, &stepError{CodeNoReversal, "its tool declares no reversal"}
	}
	p, err := reversal.Propose(s.Reversal, reversal.Call{Action: *s.Action, Args: f.args, Result: f.result}, s.ReversalAttempts+1)
	if err != nil {
		return nil, asStepError(err)
	}
	return p, nil
}

// set sets the state of a step.
func (s *Step) set(to StepState, code, message string) {
	s.State, s.Code, s.Message, s.dirty = to, code, message, true
}

func (b *Workflow) first(states ...StepState) int {
	return slices.IndexFunc(b.Steps, func(s Step) bool { return slices.Contains(states, s.State) })
}

func (b *Workflow) last(states ...StepState) int {
	for i, s := range slices.Backward(b.Steps) {
		if slices.Contains(states, s.State) {
			return i
		}
	}
	return -1
}
