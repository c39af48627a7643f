// Package execution owns what can be told afterwards of every execution: what
// went in and what came out, who asked, from where, why it was allowed, how
// things stood before and after, and what it belongs to. An execution is an
// action, or a dry run, which nobody did. The package also owns the reads that
// take snapshots around a call. It refuses to tell what a reader is not to
// know: inputs are redacted unless they are shown to whoever proposed them.
package execution

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Status is one word for how an execution ended, or stands.
type Status string

// The statuses.
const (
	// StatusSuccess: it was done, or had been done before.
	StatusSuccess Status = "success"
	// StatusError: it was tried, failed for good, and had no effect.
	StatusError Status = "error"
	// StatusDenied: policy or a person refused it.
	StatusDenied Status = "denied"
	// StatusExpired: nobody decided in time.
	StatusExpired Status = "expired"
	// StatusSkipped: it was taken off the schedule before it began.
	StatusSkipped Status = "skipped"
	// StatusUnknown: it was sent, and nobody knows what happened.
	StatusUnknown Status = "unknown"
	// StatusPending: it waits for a person, its time or its turn.
	StatusPending Status = "pending"
	// StatusExecuting: it is being done.
	StatusExecuting Status = "executing"
	// StatusDryRun: somebody asked what would happen.
	StatusDryRun Status = "dry_run"
)

// Valid says that s is one of the constants.
func (s Status) Valid() bool {
	switch s {
	case StatusSuccess, StatusError, StatusDenied, StatusExpired, StatusSkipped, StatusUnknown, StatusPending, StatusExecuting, StatusDryRun:
		return true
	}
	return false
}

// StatusOf is the status of an action. For an approval or a status that is
// not valid it is "".
func StatusOf(a envelope.Approval, s envelope.Status) Status {
	switch a {
	case envelope.ApprovalDenied:
		return StatusDenied
	case envelope.ApprovalExpired:
		return StatusExpired
	case envelope.ApprovalRequired, envelope.ApprovalGranted, envelope.ApprovalAuto:
	}
	switch s {
	case envelope.StatusSent, envelope.StatusConflict:
		return StatusSuccess
	case envelope.StatusFailed:
		return StatusError
	case envelope.StatusSkipped:
		return StatusSkipped
	case envelope.StatusUnknown:
		return StatusUnknown
	case envelope.StatusPending:
		return StatusPending
	case envelope.StatusSending:
		return StatusExecuting
	}
	return ""
}

// means lists the approvals and the statuses of the actions that a status is
// of; an empty list is any.
func (s Status) means() (approvals []envelope.Approval, statuses []envelope.Status) {
	live := []envelope.Approval{envelope.ApprovalAuto, envelope.ApprovalGranted, envelope.ApprovalRequired}
	switch s {
	case StatusSuccess:
		return live, []envelope.Status{envelope.StatusSent, envelope.StatusConflict}
	case StatusError:
		return live, []envelope.Status{envelope.StatusFailed}
	case StatusDenied:
		return []envelope.Approval{envelope.ApprovalDenied}, nil
	case StatusExpired:
		return []envelope.Approval{envelope.ApprovalExpired}, nil
	case StatusSkipped:
		return live, []envelope.Status{envelope.StatusSkipped}
	case StatusUnknown:
		return live, []envelope.Status{envelope.StatusUnknown}
	case StatusPending:
		return live, []envelope.Status{envelope.StatusPending}
	case StatusExecuting:
		return live, []envelope.Status{envelope.StatusSending}
	case StatusDryRun:
	}
	return nil, nil
}

// Execution is one of them, as far as a line in a list tells.
type Execution struct {
	// ID is that of the action, or the dry run's own.
	ID     envelope.ActionID `json:"execution_id"`
	Tenant envelope.TenantID `json:"tenant_id"`
	Status Status            `json:"status"`
	// Phase is empty for a dry run.
	Phase envelope.Phase `json:"phase,omitzero"`
	Tool  policy.Key     `json:"tool"`
	// Inputs are the effective arguments. Redacted says that what looks like a
	// credential was taken out of them, or of Proposed.
	Inputs   json.RawMessage `json:"inputs"`
	Redacted bool            `json:"inputs_redacted"`
	// Proposed are the arguments as they were proposed, if somebody edited them
	// before approving, and EditedBy is who did.
	Proposed json.RawMessage `json:"proposed_inputs,omitempty"`
	EditedBy string          `json:"edited_by,omitzero"`
	// Outputs are as executor.Outputs gives them, redacted and cut to size.
	Outputs json.RawMessage   `json:"outputs"`
	Error   *envelope.Failure `json:"error"`
	// ProviderID is the source's own name for what was made.
	ProviderID *string `json:"provider_id"`
	Attempts   int     `json:"attempts"`
	// ProposedAt is when it was asked for. StartedAt, FinishedAt and Duration
	// are of its last call; nil without one.
	ProposedAt time.Time       `json:"proposed_at"`
	StartedAt  *time.Time      `json:"started_at"`
	FinishedAt *time.Time      `json:"finished_at"`
	DurationMS *int64          `json:"duration_ms"`
	Risk       envelope.Risk   `json:"risk"`
	Effect     envelope.Effect `json:"effect"`
	// User is whose token it came with; nil when it came from inside.
	User       *User                `json:"user"`
	Employee   *envelope.EmployeeID `json:"employee_id"`
	Session    string               `json:"session_id,omitzero"`
	Automation string               `json:"automation_id,omitzero"`
	ExternalID string               `json:"external_id,omitzero"`
	Workflow   *uuid.UUID           `json:"workflow_id"`
	// Context is the request that it came with; nil where nobody noted it.
	Context *Origin        `json:"context"`
	Policy  PolicyDecision `json:"policy"`
	// Decision is a person's, or the end of the wait for one.
	Decision *Decision `json:"decision"`
	// Outlook is what a dry run found; nil for an action.
	Preview json.RawMessage `json:"preview,omitempty"`
}

// User is a token and its name.
type User struct {
	Token uuid.UUID `json:"token_id"`
	Name  string    `json:"name"`
}

// Verdict is what policy said when it was proposed.
type PolicyDecision struct {
	Mode   envelope.Mode   `json:"mode"`
	Source string          `json:"source"`
	Trace  json.RawMessage `json:"trace"`
}

// Decision is what became of the wait for a person.
type Decision struct {
	Approval envelope.Approval `json:"approval"`
	At       *time.Time        `json:"at"`
	By       string            `json:"by"`
	Note     string            `json:"note"`
}

// Related is another execution that one belongs with.
type Related struct {
	ID         envelope.ActionID `json:"execution_id"`
	Relation   Relation          `json:"relation"`
	Tool       policy.Key        `json:"tool"`
	ExternalID string            `json:"external_id,omitzero"`
	ProposedAt time.Time         `json:"proposed_at"`
}

// Relation says how two executions belong together.
type Relation string

// The relations.
const (
	// RelationBatch: it is a step of the same batch.
	RelationWorkflow Relation = "workflow"
	// RelationReversal: it undoes this one.
	RelationReversal Relation = "reversal"
	// RelationReverses: this one undoes it.
	RelationReverses Relation = "reverses"
	// RelationRepeat: it is the same call of the same agent, made another time.
	RelationRepeat Relation = "repeat"
	// RelationDryRun: it is a dry run of the same call.
	RelationDryRun Relation = "dry_run"
)

// For returns the execution as somebody may see it: whoever proposed it sees
// the inputs as they are, others without what looks like a credential.
func (e Execution) For(token uuid.UUID) Execution {
	if e.User == nil || e.User.Token != token {
		inputs, proposed := e.Inputs, e.Proposed
		e.Inputs = redact.JSON(inputs)
		if proposed != nil {
			e.Proposed = redact.JSON(proposed)
		}
		e.Redacted = string(e.Inputs) != string(inputs) || string(e.Proposed) != string(proposed)
	}
	return e
}
