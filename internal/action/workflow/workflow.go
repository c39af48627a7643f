// Package workflow owns sequences of calls: references from later calls to the
// answers of earlier ones, the choice of the next call and, in an atomic
// workflow, the reversal of completed ones. A due step is proposed through
// intake like any other envelope, so policy, approval and limits apply to it, as
// do resolution and replay. A workflow advances in transactions that propose the
// next step and record its id, so that a process that dies leaves no step half
// done, and any number of processes may drive the same workflows.
//
// Effects elsewhere cannot be rolled back: an atomic workflow runs the reversals
// that its tools declare, and reports the one that fails.
//
// The package does not call tools, does not guess the outcome of a step whose
// outcome is unknown, and does not continue past one.
package workflow

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// MaxSteps bounds the steps of a workflow.
const MaxSteps = 100

// ID names a workflow. It is a UUIDv7.
type ID uuid.UUID

// String writes the id as UUIDs are written.
func (id ID) String() string { return uuid.UUID(id).String() }

// MarshalText writes the id as UUIDs are written.
func (id ID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText parses the output of MarshalText.
func (id *ID) UnmarshalText(text []byte) error { return (*uuid.UUID)(id).UnmarshalText(text) }

// State is the state of a workflow.
type State string

// The states.
const (
	// StateRunning: its steps are run, or waited for.
	StateRunning State = "running"
	// StateReverting: the effects are being reverted.
	StateReverting State = "reverting"
	// StateStuck: the outcome of the call that it waits for is unknown; it
	// continues when a person or a read has resolved it.
	StateStuck State = "stuck"
	// StateCompensationFailed: a completed step could not be reverted, and a
	// person has to handle it.
	StateCompensationFailed State = "compensation_failed"
	// StateCompleted: every step was done.
	StateCompleted State = "completed"
	// StateFailed: a step failed, and the steps after it were not begun. Earlier
	// effects remain.
	StateFailed State = "failed"
	// StateCancelled: a person stopped it. Its effects stay.
	StateCancelled State = "cancelled"
	// StateReverted: all effects were reverted.
	StateReverted State = "reverted"
	// StateResolved: a person ended it as it stood.
	StateResolved State = "resolved"
)

// Ended reports whether nothing more happens to a workflow.
func (s State) Ended() bool {
	switch s {
	case StateCompleted, StateFailed, StateCancelled, StateReverted, StateResolved:
		return true
	case StateRunning, StateReverting, StateStuck, StateCompensationFailed:
	}
	return false
}

// StepState is the progress of a step, up to its reversal.
type StepState string

// The states of a step.
const (
	// StepPlanned: it is not due yet.
	StepPlanned StepState = "planned"
	// StepRunning: it was proposed, and has not ended.
	StepRunning StepState = "running"
	// StepDone: it had its effect.
	StepDone StepState = "done"
	// StepFailed: it ended without its effect, or could not be proposed.
	StepFailed StepState = "failed"
	// StepSkipped: it was never begun.
	StepSkipped StepState = "skipped"
	// StepKept: it was done, and there is nothing to take back: it only read,
	// or found its effect there already.
	StepKept StepState = "kept"
	// StepReverting: its reversal was proposed, and has not ended.
	StepReverting StepState = "reverting"
	// StepReverted: its reversal was done.
	StepReverted StepState = "reverted"
	// StepRevertFailed: it was done, and could not be reverted.
	StepRevertFailed StepState = "revert_failed"
	// StepResolved: a person has seen to it.
	StepResolved StepState = "resolved"
)

// The codes for which a workflow stops, or a step or its reversal fails, in
// addition to those of envelopes and of references.
const (
	// CodeStepFailed: a step ended without its effect.
	CodeStepFailed = "step_failed"
	// CodeCancelled: the workflow was cancelled.
	CodeCancelled = "cancelled"
	// CodeTokenRevoked: the token that proposed the workflow was revoked.
	CodeTokenRevoked = "token_revoked"
	// CodeIrreversible: a step of an atomic workflow was done and cannot be
	// reverted.
	CodeIrreversible = "irreversible"
	// CodeRefused: the proposal was not accepted; the message is the reason.
	CodeRefused = "proposal_refused"
	// CodeNameTaken: another submitter has an envelope of the step's name.
	CodeNameTaken = "name_taken"
	// CodeGone: the envelope no longer exists.
	CodeGone = "envelope_gone"
	// CodeNoReversal: no reversal of the step is declared.
	CodeNoReversal = "no_reversal"
	// CodeAlreadyPresent: the effect existed already, perhaps from an attempt of
	// the step, so it is unknown whether this workflow owns the effect.
	CodeAlreadyPresent = "already_present"
	// CodeDenied: policy or a person denied the envelope.
	CodeDenied = "denied"
	// CodeExpired: the envelope was not decided in time.
	CodeExpired = "expired"
)

// Workflow is the stored state of a workflow.
type Workflow struct {
	ID         ID
	Tenant     envelope.TenantID
	ExternalID string
	Atomic     bool
	State      State
	// Code is, in one word, and Message in a line, the reason why it goes no further;
	// both are empty while it goes on and when it completed. StoppedAt is the
	// step at which that was.
	Code, Message string
	StoppedAt     *int
	Session       string
	Employee      envelope.EmployeeID
	Automation    string
	// Proposer is the submitter.
	Proposer envelope.Actor
	// CancelledBy is the actor who cancelled it, ResolvedBy the one who resolved a
	// failed reversal, and Note their note.
	CancelledBy, ResolvedBy, Note string
	// WaitsFor is the envelope whose end advances it; nil for none.
	WaitsFor             *envelope.ActionID
	CreatedAt, UpdatedAt time.Time
	EndedAt              *time.Time
	Steps                []Step

	proposedBy *uuid.UUID
	person     *uuid.UUID
	bound      bool
	tools      []string
	origin     json.RawMessage
}

// Step is one call of a workflow.
type Step struct {
	State StepState
	Tool  policy.Key
	// Inputs are as they were given, with references.
	Inputs json.RawMessage
	// Action is its envelope, and ReversalAction the one that reverts it; nil if
	// there is none yet.
	Action, ReversalAction *envelope.ActionID
	// Reversal is the declared reversal, or nil.
	Reversal *catalog.Reversal
	// ReversalAttempts counts the retries of the reversal.
	ReversalAttempts int
	// Code and Message are the reason why it, or its reversal, failed.
	Code, Message string

	options options
	dirty   bool
}

// options are the members of a step's proposal without its tool and inputs.
type options struct {
	Risk        envelope.Risk        `json:"risk,omitzero"`
	Approval    envelope.Approval    `json:"approval,omitzero"`
	Constraints envelope.Constraints `json:"constraints,omitzero"`
}

// Actions are the envelopes of the workflow, in order of its steps and each
// followed by its reversal.
func (b *Workflow) Actions() []envelope.ActionID {
	var all []envelope.ActionID
	for i := range b.Steps {
		for _, id := range []*envelope.ActionID{b.Steps[i].Action, b.Steps[i].ReversalAction} {
			if id != nil {
				all = append(all, *id)
			}
		}
	}
	return all
}
