package subscription

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/redact"
)

// The events of an invocation, which summarise the transitions of an action for
// agents and inboxes.
const (
	// ApprovalRequest says that approval is required.
	ApprovalRequest = "action_approval_request"
	// ApprovalResult says what was decided, or that the time to decide ended.
	ApprovalResult = "action_approval_result"
	// Completed says that the action has ended.
	Completed = "action_completed"
)

// InvocationKind returns the event of an invocation that an item of an event
// is; empty if there is none.
func InvocationKind(kind audit.Kind, it audit.Item) string {
	switch kind {
	case audit.Proposed:
		switch it.Approval {
		case envelope.ApprovalRequired:
			return ApprovalRequest
		case envelope.ApprovalDenied:
			return Completed
		case envelope.ApprovalAuto, envelope.ApprovalGranted, envelope.ApprovalExpired:
		}
	case audit.ReturnedToApproval:
		return ApprovalRequest
	case audit.Decided:
		return ApprovalResult
	case audit.Settled, audit.Resolved, audit.Undone, audit.Killed:
		if envelope.Terminal(it.Status) {
			return Completed
		}
	case audit.Voted, audit.Edited, audit.Expiring, audit.Escalated, audit.Replayed, audit.Discarded, audit.Configured,
		audit.RetentionReported, audit.Pruned, audit.WorkflowChanged:
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
	DecidedBy string            `json:"decided_by,omitzero"`
	Note      string            `json:"note,omitzero"`
}

// NewInvocationData returns the data of an event of an invocation, whose name
// InvocationKind returned.
func NewInvocationData(name string, actor string, it audit.Item, v outbox.View) InvocationData {
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
