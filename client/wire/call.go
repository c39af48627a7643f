package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Call is a call of a tool.
type Call struct {
	// Inputs are the tool's arguments, a JSON object; empty stands for {}.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// ExternalID is the caller's own name for the call, which makes it safe to
	// repeat.
	ExternalID string `json:"external_id,omitzero"`
	// DryRun requests a prediction instead of a call.
	DryRun bool `json:"dry_run,omitzero"`
	// Wait is the time to wait for the end. If it is nil, the server waits half a
	// minute for a call that may run, and not at all for one that a person must
	// approve.
	Wait *envelope.Duration `json:"wait,omitempty"`
	// Plan is from a dry run of the same call.
	Plan         string                `json:"plan,omitzero"`
	AutomationID string                `json:"automation_id,omitzero"`
	EmployeeID   *envelope.EmployeeID  `json:"employee_id,omitempty"`
	SessionID    string                `json:"session_id,omitzero"`
	Risk         envelope.Risk         `json:"risk,omitzero"`
	Approval     envelope.Approval     `json:"approval,omitzero"`
	Constraints  *envelope.Constraints `json:"constraints,omitempty"`
}

// ExecutionStatus is the outcome, or the state, of an execution.
type ExecutionStatus string

// The statuses of executions.
const (
	// ExecutionSuccess: the call succeeded, or its effect existed already.
	ExecutionSuccess ExecutionStatus = "success"
	// ExecutionError: the call failed for good and had no effect.
	ExecutionError ExecutionStatus = "error"
	// ExecutionDenied: policy or a person denied the action.
	ExecutionDenied ExecutionStatus = "denied"
	// ExecutionExpired: the action was not approved in time.
	ExecutionExpired ExecutionStatus = "expired"
	// ExecutionSkipped: the action was unscheduled before its first attempt.
	ExecutionSkipped ExecutionStatus = "skipped"
	// ExecutionUnknown: the call was sent, and its outcome is unknown.
	ExecutionUnknown ExecutionStatus = "unknown"
	// ExecutionPending: the action waits for approval or until it is due.
	ExecutionPending ExecutionStatus = "pending"
	// ExecutionExecuting: a worker has the action.
	ExecutionExecuting ExecutionStatus = "executing"
	// ExecutionDryRun: the execution is a dry run.
	ExecutionDryRun ExecutionStatus = "dry_run"
)

// Invocation is the result of a call.
type Invocation struct {
	ID     envelope.ActionID `json:"execution_id"`
	Status ExecutionStatus   `json:"status"`
	Phase  envelope.Phase    `json:"phase,omitzero"`
	Tool   string            `json:"tool"`
	// Known reports whether the call had been made before, under the same name.
	Known bool `json:"known"`
	// Outputs are the tool's answer; nil without one.
	Outputs  json.RawMessage   `json:"outputs"`
	Error    *envelope.Failure `json:"error"`
	Attempts int               `json:"attempts"`
	// StartedAt, FinishedAt and DurationMS are those of the last attempt of any
	// outcome; nil without one, and until the call has ended.
	StartedAt  *time.Time     `json:"started_at"`
	FinishedAt *time.Time     `json:"finished_at"`
	DurationMS *int64         `json:"duration_ms"`
	Policy     PolicyDecision `json:"policy"`
	Decision   *Decision      `json:"decision"`
	Waiting    *Waiting       `json:"waiting"`
	// DryRun is set if the call was a dry run.
	DryRun *DryRun `json:"dry_run,omitempty"`
}

// Prediction is the answer of the preflight checks about a proposal, and when the
// call is made.
type Prediction struct {
	// Result is run, wait, ask, skip or deny.
	Result string `json:"result"`
	// At is the time of the prediction, by the database's clock.
	At time.Time `json:"at"`
	// GoesOutAt is the earliest time of the call; if a person must approve the
	// action, not before the approval. It is nil if there is no call, or if only
	// an operator can end the wait.
	GoesOutAt *time.Time `json:"goes_out_at"`
	// Gates are the checks, in the order in which they are made.
	Gates  []GateResult   `json:"gates"`
	Bucket BucketForecast `json:"bucket"`
}

// DryRun is the preview of a call.
type DryRun struct {
	Prediction

	// Call is the call that would be made.
	Call PlannedCall `json:"call"`
	// KnownID is the action that has this name already, with this content.
	KnownID *envelope.ActionID `json:"known_action_id"`
	// Plan proves, with a later call, that the call is this one.
	Plan      string    `json:"plan"`
	PlanUntil time.Time `json:"plan_expires_at"`
}

// GateResult is the result of one check before a call is sent.
type GateResult struct {
	Gate string `json:"gate"`
	// Result is pass, wait or skip.
	Result  string `json:"result"`
	Code    string `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
	// Until is the end of the wait; nil if unknown.
	Until *time.Time `json:"until"`
}

// BucketForecast is the state of the bucket that a call would be in.
type BucketForecast struct {
	Name string `json:"name"`
	// Permits is the number of calls that may be made now; nil for any number.
	Permits *int64 `json:"permits"`
	// OpensAt is the time of the next permit; nil for now.
	OpensAt *time.Time `json:"opens_at"`
	// Due counts the actions that are due before it, up to 100,000.
	Due int64 `json:"due"`
}

// PlannedCall is a call that would be made to a source.
type PlannedCall struct {
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args"`
	Effect     envelope.Effect `json:"effect"`
	Repeatable bool            `json:"repeatable"`
	// Reversible reports whether nothing stays of the call, or there is a way to
	// revert it.
	Reversible bool `json:"reversible"`
}

// Execution is an entry of the log of executions.
type Execution struct {
	// ID is that of the action, or the dry run's own.
	ID     envelope.ActionID `json:"execution_id"`
	Tenant envelope.TenantID `json:"tenant_id"`
	Status ExecutionStatus   `json:"status"`
	// Phase is empty for a dry run.
	Phase envelope.Phase `json:"phase,omitzero"`
	Tool  string         `json:"tool"`
	// Inputs are the effective arguments. Redacted reports whether values that
	// look like credentials were removed from them, or from Proposed.
	Inputs   json.RawMessage `json:"inputs"`
	Redacted bool            `json:"inputs_redacted"`
	// Proposed are the arguments as proposed, if EditedBy edited them.
	Proposed json.RawMessage `json:"proposed_inputs,omitempty"`
	EditedBy envelope.Actor  `json:"edited_by,omitzero"`
	// Outputs are the answer, redacted and cut to size.
	Outputs json.RawMessage   `json:"outputs"`
	Error   *envelope.Failure `json:"error"`
	// ProviderID is the source's own name for the created thing.
	ProviderID *string `json:"provider_id"`
	Attempts   int     `json:"attempts"`
	// StartedAt, FinishedAt and DurationMS are of the last attempt; nil without
	// one.
	ProposedAt time.Time       `json:"proposed_at"`
	StartedAt  *time.Time      `json:"started_at"`
	FinishedAt *time.Time      `json:"finished_at"`
	DurationMS *int64          `json:"duration_ms"`
	Risk       envelope.Risk   `json:"risk"`
	Effect     envelope.Effect `json:"effect"`
	// User is the token that proposed the action; nil for the system.
	User       *TokenName           `json:"user"`
	Employee   *envelope.EmployeeID `json:"employee_id"`
	Session    string               `json:"session_id,omitzero"`
	Automation string               `json:"automation_id,omitzero"`
	ExternalID string               `json:"external_id,omitzero"`
	WorkflowID *uuid.UUID           `json:"workflow_id"`
	// Context is the request that proposed the action; nil if not recorded.
	Context  *Origin            `json:"context"`
	Policy   PolicyDecision     `json:"policy"`
	Decision *ExecutionDecision `json:"decision"`
	// Preview is the result of a dry run; nil for an action.
	Preview json.RawMessage `json:"preview,omitempty"`
	// ArgsCut and ArgsPreview are the parts of a summary, as in Action, for
	// Inputs.
	ArgsCut     *bool  `json:"args_cut,omitempty"`
	ArgsPreview string `json:"args_preview,omitzero"`
}

// ExecutionDecision is a person's decision, or the end of the wait for one.
type ExecutionDecision struct {
	Approval envelope.Approval `json:"approval"`
	At       *time.Time        `json:"at"`
	By       envelope.Actor    `json:"by"`
	Note     string            `json:"note"`
}

// TokenName is the id of a token, that of its person, and its name.
type TokenName struct {
	ID         uuid.UUID  `json:"token_id"`
	OperatorID *uuid.UUID `json:"operator_id,omitempty"`
	Name       string     `json:"name"`
}

// Origin is the request that proposed an action.
type Origin struct {
	// IP is the client's, past the proxies that are trusted.
	IP string `json:"ip,omitzero"`
	// UserAgent is the client's own name, cut to 200 bytes.
	UserAgent string `json:"user_agent,omitzero"`
	// Via is api, mcp, ui, webhook, sql, workflow or system.
	Via       string `json:"via"`
	RequestID string `json:"request_id,omitzero"`
}

// ExecutionDetail is the complete record of an execution.
type ExecutionDetail struct {
	Execution

	// AttemptLog is every attempt, and every end without one, oldest first.
	AttemptLog []Attempt  `json:"attempt_log"`
	Snapshots  []Snapshot `json:"snapshots"`
	Related    []Relation `json:"related"`
}

// Snapshot is the answer of a read before or after a call.
type Snapshot struct {
	Attempt int `json:"attempt"`
	// Stage is before or after.
	Stage string    `json:"stage"`
	At    time.Time `json:"at"`
	// Tool is the read, at the call's own source.
	Tool string `json:"tool"`
	// Code is the reason for a missing result, in one word.
	Code   string          `json:"code,omitzero"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Relation is another execution that belongs with one.
type Relation struct {
	ID envelope.ActionID `json:"execution_id"`
	// Relation is workflow (a step of the same one), reversal (it reverts this
	// one), reverses (this one reverts it), resend (it sends the message of
	// this one again), resends (this one sends its message again), repeat (another call of the same
	// agent with the same content) or dry_run (of the same call).
	Relation   string    `json:"relation"`
	Tool       string    `json:"tool"`
	ExternalID string    `json:"external_id,omitzero"`
	ProposedAt time.Time `json:"proposed_at"`
}
