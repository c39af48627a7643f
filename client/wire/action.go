// Package wire has the Go types of the REST API's representations: the
// contents of requests and responses, with their JSON names. Types have no
// behaviour. The server writes and reads them, and package client returns and
// accepts them.
package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Page is a part of a list. NextCursor gets the next part; nil at the end.
type Page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// Lookalike is an address or a host in arguments that may be taken for another.
type Lookalike struct {
	Pointer string `json:"pointer"`
	Value   string `json:"value"`
	Kind    string `json:"kind"`
	// Like is the known name; empty without one, or if the caller may not read it.
	Like string `json:"like,omitzero"`
	// Text is the reason in words.
	Text string `json:"text"`
}

// Action is an action with its decision.
type Action struct {
	Envelope envelope.Envelope `json:"envelope"`
	Phase    envelope.Phase    `json:"phase"`
	Effect   envelope.Effect   `json:"effect"`
	// Headline is one line about the arguments, where one action or a list is read.
	Headline string `json:"headline,omitzero"`
	// Lookalikes are the addresses and hosts in the arguments that may be taken for
	// others, where one action or a list is read.
	Lookalikes []Lookalike    `json:"lookalikes,omitempty"`
	Policy     PolicyDecision `json:"policy"`
	// Decision is nil if the action needs no approval.
	Decision *Decision `json:"decision"`
	// NextAttemptAt is the due time, while the action is scheduled.
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	// Waiting is nil where the action waits for nothing.
	Waiting *Waiting `json:"waiting"`
	// Reverts is the action that this one reverts; nil if it reverts none.
	Reverts *envelope.ActionID `json:"reverts,omitempty"`
	// Resends is the delivery whose message this action sends again; nil if it sends
	// none.
	Resends *envelope.ActionID `json:"resends,omitempty"`
	// Mail is the message that an action of triage is about, for people with the
	// scope mail:read; nil for others, and for all other actions.
	Mail *ActionMail `json:"mail,omitempty"`
	// RevertedBy is the latest reversal of the action, or nil.
	RevertedBy *Reverted `json:"reverted_by,omitempty"`
	// ArgsCut, of a summary, reports whether the arguments are longer than a
	// summary shows: they are {} then, and ArgsPreview is the beginning of their text.
	ArgsCut     *bool  `json:"args_cut,omitempty"`
	ArgsPreview string `json:"args_preview,omitzero"`
	// TraceID is the trace of the request that proposed it, and of its attempts;
	// empty if none was recorded.
	TraceID string `json:"trace_id,omitzero"`
}

// Reverted is the reversal of an action, and its phase.
type Reverted struct {
	ActionID envelope.ActionID `json:"action_id"`
	Phase    envelope.Phase    `json:"phase"`
}

// RevertFilter selects actions. A zero field selects all.
type RevertFilter struct {
	WorkflowID uuid.UUID `json:"workflow_id,omitzero"`
	SessionID  string    `json:"session_id,omitzero"`
	// Tool is a tool or a pattern, as source:name, where either may be *.
	Tool string `json:"tool,omitzero"`
	// Since and Until bound when the actions were proposed: from Since on, before
	// Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// RevertRequest reverts several actions: at most 100 by id, or those of a filter,
// newest first.
type RevertRequest struct {
	ActionIDs []envelope.ActionID `json:"action_ids,omitempty"`
	Filter    *RevertFilter       `json:"filter,omitempty"`
	// Limit bounds the actions of one request, at most 100; zero means 100.
	Limit int `json:"limit,omitzero"`
	// Cursor is the NextCursor of the request before, with the same filter.
	Cursor string `json:"cursor,omitzero"`
	// DryRun proposes nothing.
	DryRun bool `json:"dry_run,omitzero"`
}

// RevertResult is the result of a RevertRequest. NextCursor gets the next part;
// nil at the end.
type RevertResult struct {
	DryRun     bool         `json:"dry_run"`
	Items      []RevertItem `json:"items"`
	NextCursor *string      `json:"next_cursor"`
}

// RevertItem is the result for one action.
type RevertItem struct {
	ActionID envelope.ActionID `json:"action_id"`
	Tool     string            `json:"tool,omitzero"`
	// Result is accepted, known, denied or refused.
	Result string `json:"result"`
	// RevertedBy is the reversal; nil if it is refused, or if a dry run would
	// make it. ReverseTool is the tool of a new one, and Phase that of the
	// reversal.
	RevertedBy  *envelope.ActionID `json:"reverted_by,omitempty"`
	ReverseTool string             `json:"reverse_tool,omitzero"`
	// ReverseArgs are the arguments of a new one.
	ReverseArgs json.RawMessage `json:"reverse_args,omitempty"`
	Phase       envelope.Phase  `json:"phase,omitzero"`
	Problem     *Problem        `json:"problem,omitempty"`
}

// Waiting is the reason for which an action waits.
type Waiting struct {
	// For is one word, such as approval; Message is a line for people.
	For     string `json:"for"`
	Message string `json:"message"`
	// Until is the earliest end of the wait; nil if unknown.
	Until *time.Time `json:"until"`
}

// Forecast is the expected result if an action were approved now.
type Forecast struct {
	// GoesOutAt is the expected time of the call; nil if never, or if unknown.
	GoesOutAt *time.Time `json:"goes_out_at"`
	// Allowed reports whether it would be sent at all.
	Allowed bool `json:"allowed"`
	// ApprovalsLeft is the number of other people who must still agree after an
	// approval by the caller.
	ApprovalsLeft int `json:"approvals_left"`
	// Gates are the checks that hold it, or end it.
	Gates []Waiting `json:"gates"`
	// Problem is the reason why it would not be sent; nil if it would.
	Problem *Problem `json:"problem,omitempty"`
}

// PolicyDecision is the decision of policy about a proposal.
type PolicyDecision struct {
	Mode envelope.Mode `json:"mode"`
	// Source is the layer that set the mode, and those that made it stricter.
	Source string       `json:"source"`
	Trace  []PolicyStep `json:"trace"`
}

// PolicyStep is the decision of one layer of policy.
type PolicyStep struct {
	Layer string `json:"layer"`
	// Said is the layer's mode; empty if the layer decided nothing.
	Said envelope.Mode `json:"said,omitzero"`
	// Rule is the id of the rule about arguments or of the grant, and Tool the
	// pattern of the rule that decided.
	Rule string `json:"rule,omitzero"`
	Tool string `json:"tool,omitzero"`
	// Detail is the reason, in a few words.
	Detail string `json:"detail,omitzero"`
	// Version is that of the rule.
	Version string `json:"version,omitzero"`
}

// Decision is that of a person, or the wait for one.
type Decision struct {
	ExpiresAt *time.Time     `json:"expires_at"`
	At        *time.Time     `json:"at"`
	By        envelope.Actor `json:"by"`
	Note      string         `json:"note"`
	// Needed and Given count the people who must agree, and do.
	Needed int `json:"approvals_needed"`
	Given  int `json:"approvals_given"`
	// ETag identifies the version that is decided about, for a decision that is bound to
	// it; empty where there is nothing to decide.
	ETag string `json:"etag,omitzero"`
	// Edited is nil where the envelope is as proposed.
	Edited *Edited `json:"edited,omitempty"`
}

// Edited is the change of a proposal by people.
type Edited struct {
	By           envelope.Actor  `json:"by"`
	ProposedArgs json.RawMessage `json:"proposed_args"`
	Edits        []Edit          `json:"edits"`
}

// Edit is one change of a proposal.
type Edit struct {
	By envelope.Actor `json:"by"`
	At time.Time      `json:"at"`
	// Pointers are JSON Pointers to the changed arguments.
	Pointers []string `json:"pointers"`
	Note     string   `json:"note,omitzero"`
}

// Attempt is one try at calling a tool.
type Attempt struct {
	Attempt    int             `json:"attempt"`
	Status     envelope.Status `json:"status"`
	Code       string          `json:"code,omitzero"`
	Message    string          `json:"message,omitzero"`
	Result     json.RawMessage `json:"result,omitempty"`
	ProviderID string          `json:"provider_id,omitzero"`
	Worker     string          `json:"worker,omitzero"`
	StartedAt  *time.Time      `json:"started_at"`
	FinishedAt time.Time       `json:"finished_at"`
}

// The results of a proposal in a batch.
const (
	ResultAccepted = "accepted"
	ResultKnown    = "known"
	ResultDenied   = "denied"
	ResultRefused  = "refused"
)

// BatchItem is the result of one proposal of a batch.
type BatchItem struct {
	Index int `json:"index"`
	// Result is accepted, known, denied or refused.
	Result   string             `json:"result"`
	ActionID *envelope.ActionID `json:"action_id,omitempty"`
	Phase    envelope.Phase     `json:"phase,omitzero"`
	Problem  *Problem           `json:"problem,omitempty"`
}

// Problem is an answer that is not a success (RFC 9457).
type Problem struct {
	// Type is a stable URN.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitzero"`
	// Code is a stable word for the problem, more exact than Type.
	Code ProblemCode `json:"code,omitzero"`
	// Instance is the request's id, as in the server's log.
	Instance string `json:"instance,omitzero"`
	// Errors lists the fields of the request that are wrong.
	Errors []envelope.FieldError `json:"errors,omitempty"`
	// Action is the recorded action, if policy denied a proposal.
	Action *Action `json:"action,omitempty"`
	// Execution is the recorded call of a tool that had no effect.
	Execution *Invocation `json:"execution,omitempty"`
}

// Event is an event of one action or, for the kind configured, a change of
// configuration.
type Event struct {
	// ID is the event's place in the stream, to resume after.
	ID       string            `json:"id,omitzero"`
	ActionID envelope.ActionID `json:"action_id,omitzero"`
	// Tool is the tool of the action, as source:name.
	Tool string `json:"tool,omitzero"`
	// Kind is proposed, decided, settled, undone, returned_to_approval, replayed, discarded,
	// resolved, killed or configured.
	Kind     string            `json:"kind"`
	Status   envelope.Status   `json:"status,omitzero"`
	Approval envelope.Approval `json:"approval,omitzero"`
	Phase    envelope.Phase    `json:"phase,omitzero"`
	Code     string            `json:"code,omitzero"`
	Attempt  int               `json:"attempt,omitzero"`
	Subject  string            `json:"subject,omitzero"`
	// Note is the reason that the actor gave.
	Note string `json:"note,omitzero"`
	// Detail is the changed settings, for the kind configured.
	Detail map[string]any `json:"detail,omitempty"`
	Actor  envelope.Actor `json:"actor"`
	At     time.Time      `json:"at"`
}
