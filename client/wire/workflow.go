package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Workflow is several calls in order, in their current state.
type Workflow struct {
	ID         uuid.UUID `json:"workflow_id"`
	ExternalID string    `json:"external_id"`
	Atomic     bool      `json:"atomic"`
	// State is running, reverting, stuck, compensation_failed, completed,
	// failed, cancelled, reverted or resolved.
	State string `json:"state"`
	// Code and Message are the reason why the workflow stopped.
	Code    string `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
	// StoppedAt is the step at which the workflow stopped; nil while it runs.
	StoppedAt *int `json:"stopped_at"`
	// WaitsFor is the action whose end continues the workflow; nil for none.
	WaitsFor    *envelope.ActionID  `json:"waits_for"`
	ProposedBy  envelope.Actor      `json:"proposed_by"`
	SessionID   string              `json:"session_id,omitzero"`
	EmployeeID  envelope.EmployeeID `json:"employee_id,omitzero"`
	Automation  string              `json:"automation_id,omitzero"`
	CancelledBy envelope.Actor      `json:"cancelled_by,omitzero"`
	ResolvedBy  envelope.Actor      `json:"resolved_by,omitzero"`
	Note        string              `json:"note,omitzero"`
	CreatedAt   time.Time           `json:"created_at"`
	UpdatedAt   time.Time           `json:"updated_at"`
	EndedAt     *time.Time          `json:"ended_at"`
	Steps       []WorkflowStep      `json:"steps"`
}

// WorkflowStep is one call of a workflow.
type WorkflowStep struct {
	Step   int             `json:"step"`
	Tool   string          `json:"tool"`
	Inputs json.RawMessage `json:"inputs"`
	// State is planned, running, done, failed, skipped, kept, reverting,
	// reverted, revert_failed or resolved.
	State    string             `json:"state"`
	ActionID *envelope.ActionID `json:"action_id"`
	// Outputs are the stored answer; lists leave it out.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	Code    string          `json:"code,omitzero"`
	Message string          `json:"message,omitzero"`
	// Reversal is the declared reversal, or nil.
	Reversal *StepReversal `json:"reversal"`
}

// StepReversal is the reversal of a step, and its action.
type StepReversal struct {
	Tool     string             `json:"tool"`
	ActionID *envelope.ActionID `json:"action_id"`
}

// WorkflowPlan is the result of a dry run of a workflow.
type WorkflowPlan struct {
	DryRun bool          `json:"dry_run"`
	Atomic bool          `json:"atomic"`
	Steps  []PlannedStep `json:"steps"`
}

// PlannedStep is a step of a workflow that was only checked.
type PlannedStep struct {
	Step       int           `json:"step"`
	Tool       string        `json:"tool"`
	Mode       envelope.Mode `json:"mode"`
	ModeSource string        `json:"mode_source"`
	References []string      `json:"references"`
	Reversal   *StepReversal `json:"reversal"`
}

// WorkflowResolution records that a person has dealt with a reversal that failed.
type WorkflowResolution struct {
	Note string `json:"note"`
	// Abandon ends the workflow without further reversals.
	Abandon bool `json:"abandon,omitzero"`
}
