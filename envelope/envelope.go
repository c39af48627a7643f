// Package envelope is Countersign's contract: the fields of a proposal, the fields of an
// action that are read back, and the states of an action.
//
// [Parse] and [ParseMany] are the only way from bytes to a [Proposal]. They are strict,
// because the executed action must be exactly the approved one: an unknown field, a
// duplicate key or a character that a database cannot store is rejected with its
// pointer. [Canonical] and [Digest] define when two texts are equal. [Next] and
// [NextApproval] alone define the state transitions.
//
// The package is pure: it reads no clock, opens nothing and decides nothing about
// policy. The same contract for other languages is the JSON Schema in
// schemas/action-envelope.json; tests compare the two.
package envelope

import (
	"encoding/json"
	"time"
)

const (
	// SchemaVersion is the version of the contract. Fields are only ever added
	// under the same version.
	SchemaVersion = 1
	// TypeExec is the only type of envelope: one call of one tool.
	TypeExec = "mcp.exec"
	// MaxBytes is the largest envelope that may be submitted.
	MaxBytes = 256 << 10
	// MaxDepth bounds the nesting of objects and arrays in one envelope, itself
	// included.
	MaxDepth = 32
)

// Envelope is an action as it reads back: the proposal, the decision and the
// result.
type Envelope struct {
	// Version is SchemaVersion; left out, it means 1.
	Version int `json:"version,omitempty"`
	// ActionID is the identifier of the action everywhere.
	ActionID ActionID `json:"action_id"`
	// ExternalID is the submitter's own name for the action, unique in a
	// tenant. The same one with the same content is the same action.
	ExternalID string   `json:"external_id,omitempty"`
	TenantID   TenantID `json:"tenant_id"`
	// EmployeeID is the agent, or the person, on whose behalf it is done.
	EmployeeID EmployeeID `json:"employee_id,omitzero"`
	// Type is TypeExec.
	Type string `json:"type"`
	Tool Tool   `json:"tool"`
	// Args is the JSON object that the tool is called with.
	Args     json.RawMessage `json:"args"`
	Risk     Risk            `json:"risk"`
	Approval Approval        `json:"approval"`
	// SessionID groups the actions of an agent in one conversation.
	SessionID string `json:"session_id,omitempty"`
	// AutomationID names the automation that proposed it.
	AutomationID string      `json:"automation_id,omitempty"`
	Constraints  Constraints `json:"constraints"`
	Result       Result      `json:"result"`
	Timestamps   Timestamps  `json:"timestamps"`
}

// Tool is the name of a tool and of its source.
type Tool struct {
	// Name is the tool's name at its source.
	Name string `json:"name"`
	// Source is the identifier of the source that offers the tool. It may be
	// left out where only one source offers a tool of that name.
	Source string `json:"source,omitempty"`
	// ComposioApp is the app that the tool belongs to, for tools of Composio.
	ComposioApp string `json:"composio_app,omitempty"`
}

// Constraints bound when and how fast an action may be executed. Times are
// kept in UTC and to the microsecond.
type Constraints struct {
	// RateBucket is the bucket whose rate and concurrency limits apply.
	RateBucket string `json:"rate_bucket,omitempty"`
	// MustRunBefore is the deadline. An action that has not been started by
	// then is skipped.
	MustRunBefore time.Time `json:"must_run_before,omitzero"`
	// NotBefore is the earliest time at which the action may be started.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Urgent requests that the action ignore quiet hours. It has an effect only
	// for an employee whom policy allows it.
	Urgent bool `json:"urgent,omitempty"`
}

// IsZero reports whether there are no constraints.
func (c Constraints) IsZero() bool {
	return c.RateBucket == "" && c.MustRunBefore.IsZero() && c.NotBefore.IsZero() && !c.Urgent
}

// Result is the outcome of an action so far.
type Result struct {
	Status Status `json:"status"`
	// ProviderID is the provider's id of the thing that the action created, or nil
	// if it is unknown.
	ProviderID *string `json:"provider_id"`
	// Error is the failure of the last attempt, or nil.
	Error *Failure `json:"error"`
	// Output is the tool's answer, redacted and truncated.
	Output json.RawMessage `json:"output,omitempty"`
	// Attempts counts the calls that were made.
	Attempts int `json:"attempts"`
}

// Failure is the reason why an attempt did not succeed.
type Failure struct {
	// Code is a short stable word for programs.
	Code string `json:"code"`
	// Message is for people, and contains neither secrets nor arguments.
	Message string `json:"message"`
}

// Timestamps are the times of an action's milestones, in UTC.
type Timestamps struct {
	CreatedAt time.Time `json:"created_at"`
	// SentAt is the time of the successful call, or nil.
	SentAt *time.Time `json:"sent_at"`
	// CompletedAt is the time of the terminal status, or nil.
	CompletedAt *time.Time `json:"completed_at"`
}
