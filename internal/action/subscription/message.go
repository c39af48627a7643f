package subscription

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Test is the type of a message that shows that messages arrive.
const Test = "countersign.test"

// transition is the data of a message about a transition.
type transition struct {
	EventID     string            `json:"event_id"`
	Kind        audit.Kind        `json:"kind"`
	ActionID    envelope.ActionID `json:"action_id,omitzero"`
	Integration string            `json:"integration,omitzero"`
	Action      string            `json:"action,omitzero"`
	RiskLevel   envelope.Risk     `json:"risk_level,omitzero"`
	SessionID   string            `json:"session_id,omitzero"`
	Status      envelope.Status   `json:"status,omitzero"`
	Approval    envelope.Approval `json:"approval,omitzero"`
	Attempt     int               `json:"attempt,omitzero"`
	Code        string            `json:"code,omitzero"`
	Subject     string            `json:"subject,omitzero"`
	Note        string            `json:"note,omitzero"`
	Detail      json.RawMessage   `json:"detail,omitempty"`
	Actor       envelope.Actor    `json:"actor"`
}

// message is an item of an event that a subscription receives.
type message struct {
	name     string
	position audit.Position
	item     int
	kind     audit.Kind
	actor    string
	at       time.Time
	it       audit.Item
	// view is the action of the item, or nil.
	view *outbox.View
}

// id returns the position of the item among the events, as event streams show it.
func (t *message) id() string { return fmt.Sprintf("%s-%d", t.position, t.item) }

// data returns the data of the message.
func (t *message) data() (any, error) {
	if t.view != nil && t.name != string(t.kind) {
		return NewInvocationData(t.name, envelope.Actor(t.actor), t.it, *t.view), nil
	}
	d := transition{
		EventID: t.id(), Kind: t.kind, ActionID: t.it.Action, Status: t.it.Status, Approval: t.it.Approval, Attempt: t.it.Attempt,
		Code: t.it.Code, Subject: t.it.Subject, Note: redact.Text(t.it.Note), Actor: envelope.Actor(t.actor),
	}
	if len(t.it.Detail) > 0 {
		detail, err := json.Marshal(t.it.Detail)
		if err != nil {
			return nil, err
		}
		d.Detail = redact.JSONTruncated(detail, maxParams)
	}
	if t.view != nil {
		e := &t.view.Envelope
		d.Integration, d.Action, d.RiskLevel, d.SessionID = e.Tool.Source, e.Tool.Name, e.Risk, e.SessionID
	}
	return d, nil
}

// body is the body of a webhook.
type body struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// deliver proposes the delivery of a message to a webhook.
func (s *Subscription) deliver(t *message) (*envelope.Proposal, error) {
	data, err := t.data()
	if err != nil {
		return nil, err
	}
	return s.propose(webhook.ToolDeliver, s.external(t.id()), body{t.name, t.at.UTC(), data})
}

// external returns the external id of a message, by which it is proposed once.
func (s *Subscription) external(of string) string { return "message:" + s.ID.String() + ":" + of }

// propose returns a proposal of a subscription.
func (s *Subscription) propose(tool, external string, args any) (*envelope.Proposal, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return &envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: external, Tool: envelope.Tool{Name: tool, Source: s.Source}, Args: raw,
		AutomationID: settings.SubscriptionAutomation(s.ID), Constraints: envelope.Constraints{RateBucket: s.Bucket},
	}, nil
}

// TestMessage returns the proposal of a message that shows that messages arrive.
// It has no external id, so that each is sent.
func (s *Subscription) TestMessage(kind string, by envelope.Actor, at time.Time) (*envelope.Proposal, error) {
	if kind == catalog.KindSlack {
		return s.paragraph("Messages of Countersign for the subscription "+s.Name+" arrive here. "+by.Brief()+" sent this one as a test.", "")
	}
	return s.propose(webhook.ToolDeliver, "", body{Test, at.UTC(), map[string]string{"subscription": s.Name, "sent_by": string(by)}})
}

// The events of an invocation, which summarise the transitions of an action for
// agents and inboxes.
const (
	// ApprovalRequest: approval is required.
	ApprovalRequest = "action_approval_request"
	// ApprovalResult: the action was decided, or the time to decide ended.
	ApprovalResult = "action_approval_result"
	// Completed: the action has ended.
	Completed = "action_completed"
)

// InvocationKind returns the invocation event that corresponds to an item of an
// event, or empty.
func InvocationKind(kind audit.Kind, it audit.Item) string {
	switch kind {
	case audit.Proposed:
		switch it.Approval {
		case envelope.ApprovalRequired:
			return ApprovalRequest
		case envelope.ApprovalDenied:
			return Completed
		}
	case audit.ReturnedToApproval:
		return ApprovalRequest
	case audit.Decided:
		return ApprovalResult
	case audit.Settled, audit.Resolved, audit.Undone, audit.Killed:
		if envelope.Terminal(it.Status) {
			return Completed
		}
	}
	return ""
}

const (
	// maxParams and maxResult bound the arguments and results in a message, in
	// bytes.
	maxParams = 16 << 10
	maxResult = 16 << 10
)

// InvocationData is the data of an event of an invocation.
type InvocationData struct {
	InvocationID envelope.ActionID `json:"invocation_id"`
	// Integration and Action are the source and the name of the tool.
	Integration string        `json:"integration"`
	Action      string        `json:"action"`
	RiskLevel   envelope.Risk `json:"risk_level"`
	SessionID   string        `json:"session_id,omitzero"`
	// Params are the arguments of a request, redacted and truncated.
	Params    json.RawMessage `json:"params,omitempty"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
	// Status is granted, denied or expired for a decision, and else the phase
	// in which the action ended.
	Status    string            `json:"status,omitzero"`
	Result    json.RawMessage   `json:"result,omitempty"`
	Error     *envelope.Failure `json:"error,omitempty"`
	DecidedBy envelope.Actor    `json:"decided_by,omitzero"`
	Note      string            `json:"note,omitzero"`
}

// NewInvocationData returns the data of an invocation event with a name from
// InvocationKind.
func NewInvocationData(name string, actor envelope.Actor, it audit.Item, v outbox.View) InvocationData {
	e := &v.Envelope
	d := InvocationData{
		InvocationID: e.ActionID, Integration: e.Tool.Source, Action: e.Tool.Name, RiskLevel: e.Risk, SessionID: e.SessionID,
	}
	switch name {
	case ApprovalRequest:
		d.Params = redact.JSONTruncated(e.Args, maxParams)
		if v.ApprovalExpiresAt != nil {
			d.ExpiresAt = new(v.ApprovalExpiresAt.UTC())
		}
	case ApprovalResult:
		d.Status, d.DecidedBy, d.Note = string(it.Approval), actor, redact.Text(it.Note)
	case Completed:
		d.Status = string(envelope.PhaseOf(e.Approval, it.Status, it.Code))
		// If the action was replayed since, its earlier end is not known.
		if e.Result.Status == it.Status {
			if len(e.Result.Output) > 0 && string(e.Result.Output) != "null" {
				d.Result = redact.JSONTruncated(e.Result.Output, maxResult)
			}
			d.Error = e.Result.Error
		}
	}
	return d
}
