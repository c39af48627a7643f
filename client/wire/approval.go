package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Approval holds the options of an approval.
type Approval struct {
	Note string `json:"note,omitzero"`
	// ETag is the Decision.ETag of the action that the approver saw, sent as
	// If-Match. The server refuses if the action has another now; empty is not
	// compared, unless the action was edited.
	ETag string `json:"-"`
	// Args are sent in place of the proposed ones; nil keeps those.
	Args json.RawMessage `json:"args,omitempty"`
	// Always also approves similar actions from now on; nil does not.
	Always *Always `json:"always,omitempty"`
}

// Always lets calls with the arguments of an action through, for a limited time.
type Always struct {
	// ExpiresIn is the lifetime; zero means the server's default.
	ExpiresIn envelope.Duration `json:"expires_in,omitzero"`
	// Scope is session, employee, automation or tenant; empty is session.
	Scope string `json:"scope,omitzero"`
	// Loose are JSON Pointers to the arguments that may differ or be absent; all
	// others must be the same. The empty pointer is all of them.
	Loose []string `json:"loose,omitempty"`
	// Pins, in place of Loose, are pointers to the arguments that must be the same:
	// all others that the action has may differ.
	Pins []string `json:"pins,omitempty"`
}

// Note is the reason that a person gives for a decision.
type Note struct {
	Note string `json:"note,omitzero"`
}

// Denial holds the options of a denial.
type Denial struct {
	// Note is the reason, for the record and for the agent.
	Note string `json:"note,omitzero"`
	// ETag is as in Approval.
	ETag string `json:"-"`
}

// BulkDecision decides about several actions.
type BulkDecision struct {
	IDs  []envelope.ActionID `json:"ids"`
	Note string              `json:"note,omitzero"`
	// ETags are the versions of some of them that the decider saw. An action with
	// another version is refused, and so is an edited one that is not among these.
	ETags map[envelope.ActionID]string `json:"etags,omitempty"`
}

// Decided is the result of a decision about one action of several.
type Decided struct {
	ActionID envelope.ActionID `json:"action_id"`
	// Result is approved, voted, denied or refused.
	Result  string   `json:"result"`
	Needed  int      `json:"approvals_needed,omitzero"`
	Given   int      `json:"approvals_given,omitzero"`
	Problem *Problem `json:"problem,omitempty"`
}

// Vote is the decision of one person about an action.
type Vote struct {
	// Round goes up when the subject of the vote changes; only votes of the last one
	// count.
	Round    int               `json:"round"`
	By       envelope.Actor    `json:"by"`
	Decision envelope.Decision `json:"decision"`
	Note     string            `json:"note"`
	At       time.Time         `json:"at"`
}

// The kinds of inbox items.
const (
	InboxApproval     = "approval"
	InboxQuestion     = "question"
	InboxReview       = "review"
	InboxNotify       = "notify"
	InboxUnknown      = "unknown"
	InboxCompensation = "compensation"
)

// InboxItem is something that waits for a person.
type InboxItem struct {
	// Kind is approval, question (triage is unsure of the message), review (a text
	// that triage wrote), unknown (the outcome of a call must be found out),
	// compensation (a step of the workflow WorkflowID could not be reversed) or notify
	// (triage did it without a person).
	Kind     string            `json:"kind"`
	ActionID envelope.ActionID `json:"action_id"`
	Tool     string            `json:"tool"`
	// Title is the tool's own; empty if it has none.
	Title string `json:"title,omitzero"`
	// Args are nil in a summary, which has the beginning of their text in
	// ArgsPreview; ArgsCut reports whether that is not all.
	Args        json.RawMessage `json:"args,omitempty"`
	ArgsPreview *string         `json:"args_preview,omitempty"`
	ArgsCut     *bool           `json:"args_cut,omitempty"`
	Risk        envelope.Risk   `json:"risk"`
	Effect      envelope.Effect `json:"effect"`
	// ProposedBy is empty for Countersign itself.
	ProposedBy envelope.Actor `json:"proposed_by,omitzero"`
	// Recipients are the recipients in the arguments, by the tool's pointers.
	// RecipientsCut reports whether there are more.
	Recipients    []string `json:"recipients"`
	RecipientsCut bool     `json:"recipients_cut,omitzero"`
	// Headline is one line about the arguments: to whom, how much, from where and to
	// where, or the names of all of them where these do not fit.
	Headline string `json:"headline"`
	// Lookalikes are the addresses and hosts in the arguments that may be taken for
	// others.
	Lookalikes    []Lookalike `json:"lookalikes,omitempty"`
	RateBucket    string      `json:"rate_bucket"`
	MustRunBefore *time.Time  `json:"must_run_before"`
	// MayDecide reports whether an approval (or, of the other kinds, an answer) by
	// the caller would count now, and WhyNot why it would not, in one word.
	MayDecide    bool                `json:"may_decide"`
	WhyNot       ProblemCode         `json:"why_not,omitzero"`
	SessionID    string              `json:"session_id,omitzero"`
	AutomationID string              `json:"automation_id,omitzero"`
	EmployeeID   envelope.EmployeeID `json:"employee_id,omitzero"`
	WorkflowID   uuid.UUID           `json:"workflow_id,omitzero"`
	Since        time.Time           `json:"since"`
	ExpiresAt    *time.Time          `json:"expires_at"`
	Needed       int                 `json:"approvals_needed"`
	Given        int                 `json:"approvals_given"`
	ApprovedBy   []envelope.Actor    `json:"approved_by"`
	EditedBy     envelope.Actor      `json:"edited_by,omitzero"`
	Escalated    bool                `json:"escalated"`
	// Reversible reports whether nothing stays of the action, or there is a way to
	// revert it.
	Reversible bool   `json:"reversible"`
	Policy     string `json:"policy,omitzero"`
	Note       string `json:"note,omitzero"`
	Drift      string `json:"drift,omitzero"`
	// Mail is the message that an action of triage is about, for people with the
	// scope mail:read.
	Mail *ActionMail `json:"mail,omitempty"`
	// ETag is for Approval.ETag.
	ETag    string `json:"etag,omitzero"`
	Code    string `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
}

// Interrupt is an item of the inbox in the schema of LangGraph's Agent Inbox, with
// the id and the version that a response names.
type Interrupt struct {
	ActionID envelope.ActionID `json:"action_id"`
	// ETag is sent as If-Match with a response; empty where there is nothing to
	// decide.
	ETag string `json:"etag,omitzero"`
	// Kind is as in InboxItem.
	Kind    string          `json:"kind"`
	Request ActionRequest   `json:"action_request"`
	Config  InterruptConfig `json:"config"`
	// Description is Markdown, in which texts of others are escaped.
	Description string `json:"description"`
}

// ActionRequest is a tool, as source:name, with the arguments of a call.
type ActionRequest struct {
	Action string          `json:"action"`
	Args   json.RawMessage `json:"args"`
}

// InterruptConfig reports which responses to an Interrupt count.
type InterruptConfig struct {
	Ignore  bool `json:"allow_ignore"`
	Respond bool `json:"allow_respond"`
	Edit    bool `json:"allow_edit"`
	Accept  bool `json:"allow_accept"`
}

// The types of a HumanResponse.
const (
	ResponseAccept = "accept"
	ResponseIgnore = "ignore"
	ResponseText   = "response"
	ResponseEdit   = "edit"
)

// HumanResponse is a response to an Interrupt, in the schema of LangGraph's Agent
// Inbox.
type HumanResponse struct {
	// Type is accept (approve), edit (approve with other arguments), response (deny,
	// with a text for the agent) or ignore (deny, or acknowledge a notice).
	Type string `json:"type"`
	// Args are a text for a response, an ActionRequest for an edit, and null or the
	// ActionRequest of the interrupt for the others. Its values may be written as
	// texts.
	Args json.RawMessage `json:"args"`
}

// InboxCounts counts the items of the inbox. Each number is counted up to a
// bound; Capped reports whether one reached it.
type InboxCounts struct {
	Total  int         `json:"total"`
	Capped bool        `json:"capped"`
	ByKind InboxByKind `json:"by_kind"`
	// Escalated counts the escalated items, and Expiring those that expire within
	// the hour.
	Escalated int `json:"escalated"`
	Expiring  int `json:"expiring"`
	// Tools are the tools with the most items, the most first.
	Tools []ToolCount `json:"tools"`
	// Sessions and People are the ones with the most items, the most first.
	Sessions []SessionCount `json:"sessions"`
	People   []PersonCount  `json:"people"`
	// LostLogins are the sources that somebody has to log in to again, whatever the
	// filter.
	LostLogins []string `json:"lost_logins"`
	// NeededScopes are the scopes that logins of sources lack.
	NeededScopes []SourceScopes `json:"needed_scopes"`
}

// SourceScopes are scopes that a source demands, and its login lacks.
type SourceScopes struct {
	Source string   `json:"source_id"`
	Scopes []string `json:"scopes"`
}

// InboxByKind counts the items of each kind.
type InboxByKind struct {
	Approval int `json:"approval"`
	Question int `json:"question"`
	Review   int `json:"review"`
	// Notify is not part of the total, unless the filter asks for the kind.
	Notify       int `json:"notify"`
	Unknown      int `json:"unknown"`
	Compensation int `json:"compensation"`
}

// InboxNotices are actions of triage that ran without a person.
type InboxNotices struct {
	IDs []envelope.ActionID `json:"ids"`
}

// InboxNoticed counts notices that were acknowledged.
type InboxNoticed struct {
	Acknowledged int `json:"acknowledged"`
}

// ToolCount counts the items of one tool.
type ToolCount struct {
	Tool  string `json:"tool"`
	Count int    `json:"count"`
}

// SessionCount counts the items of one session.
type SessionCount struct {
	Session string `json:"session_id"`
	Count   int    `json:"count"`
}

// PersonCount counts the items that one person proposed, or a token of nobody. Name
// is empty if it is unknown.
type PersonCount struct {
	Person uuid.UUID `json:"person_id"`
	Name   string    `json:"name"`
	Count  int       `json:"count"`
}

// ReviewRule is the number of approvals for the actions that a key matches,
// from a risk on, with the times. A nil time is left to other rules.
type ReviewRule struct {
	Tool      string             `json:"tool,omitzero"`
	Risk      envelope.Risk      `json:"risk,omitzero"`
	Approvals int                `json:"approvals,omitzero"`
	Wait      *envelope.Duration `json:"wait,omitempty"`
	Warn      *envelope.Duration `json:"warn,omitempty"`
	Escalate  *envelope.Duration `json:"escalate,omitempty"`
	// Edits is another where the editor of the arguments does not approve them.
	Edits string `json:"edits,omitzero"`
	// UpdatedBy and UpdatedAt are not sent.
	UpdatedBy envelope.Actor `json:"updated_by,omitzero"`
	UpdatedAt time.Time      `json:"updated_at,omitzero"`
	// ETag identifies the rule as it was read, for a change that is based on it.
	ETag string `json:"etag,omitzero"`
}
