// Package workflow owns several calls in order: that later ones may refer to what
// earlier ones answered, which of them is next and, in an atomic workflow, how
// what was done is reverted. A step that is due is proposed through intake like any other envelope, and policy, people and
// limits hold for it too; so do its resolution and replay.
//
// A workflow moves on in transactions that propose the next step and note that
// they did, so that a process which dies leaves nothing half done, and any
// number of processes may drive the same workflows. What has happened elsewhere
// cannot be rolled back: an atomic workflow runs the reversals that its tools
// declare, and says so where one of them fails.
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

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) error { return (*uuid.UUID)(id).UnmarshalText(text) }

// State is where a workflow stands.
type State string

// The states.
const (
	// StateRunning: its steps are run, or waited for.
	StateRunning State = "running"
	// StateReverting: the effects are being reverted.
	StateReverting State = "reverting"
	// StateStuck: nobody knows what became of the call that it waits for, and
	// it goes on when somebody has said.
	StateStuck State = "stuck"
	// StateCompensationFailed: something that was done could not be taken
	// back, and a person has to look at it.
	StateCompensationFailed State = "compensation_failed"
	// StateCompleted: every step was done.
	StateCompleted State = "completed"
	// StateFailed: a step failed, and those after it were not begun. What came
	// before stays done.
	StateFailed State = "failed"
	// StateCancelled: a person stopped it. Its effects stay.
	StateCancelled State = "cancelled"
	// StateReverted: it is as if none of it had been done.
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

// StepState is where a step stands.
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

// The codes that say why a workflow goes no further, or a step or its reversal
// did not succeed, beside those that envelopes carry and those
// of references.
const (
	// CodeStepFailed: a step ended without its effect.
	CodeStepFailed = "step_failed"
	// CodeCancelled: somebody wanted no more of the workflow.
	CodeCancelled = "cancelled"
	// CodeTokenRevoked: the token that proposed the workflow was revoked.
	CodeTokenRevoked = "token_revoked"
	// CodeIrreversible: a step of an atomic workflow was done, and turned out to
	// be one that cannot be taken back.
	CodeIrreversible = "irreversible"
	// CodeRefused: the proposal was not accepted; the message is the reason.
	CodeRefused = "proposal_refused"
	// CodeNameTaken: somebody else has an envelope of the step's name.
	CodeNameTaken = "name_taken"
	// CodeGone: the envelope is not there any more.
	CodeGone = "envelope_gone"
	// CodeNoReversal: no reversal of the step is declared.
	CodeNoReversal = "no_reversal"
	// CodeAlreadyPresent: the step found its effect there, perhaps from an attempt
	// of its own, so that nobody knows whether it is its to take back.
	CodeAlreadyPresent = "already_present"
	// CodeDenied: policy or a person denied the envelope.
	CodeDenied = "denied"
	// CodeExpired: nobody decided about the envelope in time.
	CodeExpired = "expired"
)

// Workflow is a workflow as it stands.
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
	// Proposer is who submitted it.
	Proposer envelope.Actor
	// CancelledBy is who wanted no more of it, ResolvedBy who ended what could
	// not be taken back, and Note what they said.
	CancelledBy, ResolvedBy, Note string
	// WaitsFor is the envelope whose end moves it on; nil for none.
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
	// Action is its envelope, and Reversal the one that takes it back; nil
	// while there is none.
	Action, ReversalAction *envelope.ActionID
	// Reversal is how it is reverted; nil if none is declared.
	Reversal *catalog.Reversal
	// ReversalAttempts counts how often the reversal was asked for again.
	ReversalAttempts int
	// Code and Message say why it, or its reversal, did not succeed.
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
