package approvals

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// cursorInbox is the name of the inbox in cursors.
const cursorInbox = "inbox"

// inboxItem is something that waits for a person, as the API shows it.
type inboxItem struct {
	Kind       approval.InboxKind  `json:"kind"`
	Action     envelope.ActionID   `json:"action_id"`
	Tool       string              `json:"tool"`
	Args       json.RawMessage     `json:"args"`
	Risk       envelope.Risk       `json:"risk"`
	Session    string              `json:"session_id,omitzero"`
	Automation string              `json:"automation_id,omitzero"`
	Employee   envelope.EmployeeID `json:"employee_id,omitzero"`
	Since      time.Time           `json:"since"`
	ExpiresAt  *time.Time          `json:"expires_at"`
	Needed     int                 `json:"approvals_needed"`
	Given      int                 `json:"approvals_given"`
	ApprovedBy []string            `json:"approved_by"`
	EditedBy   string              `json:"edited_by,omitzero"`
	Escalated  bool                `json:"escalated"`
	Policy     string              `json:"policy,omitzero"`
	Note       string              `json:"note,omitzero"`
	Drift      string              `json:"drift,omitzero"`
	ETag       string              `json:"etag,omitzero"`
	Code       string              `json:"code,omitzero"`
	Message    string              `json:"message,omitzero"`
	Workflow   uuid.UUID           `json:"workflow_id,omitzero"`
}

func inboxItemFrom(it approval.InboxItem) inboxItem {
	shown := inboxItem{
		Kind: it.Kind, Action: it.Action, Tool: it.Tool.String(), Args: it.Args, Risk: it.Risk,
		Session: it.Session, Automation: it.Automation, Employee: it.Employee, Since: it.Since.UTC(),
		Needed: it.Needed, Given: it.Given, ApprovedBy: append([]string{}, it.ApprovedBy...), EditedBy: it.EditedBy, Escalated: it.Escalated,
		Policy: it.Policy, Note: it.Note, Drift: it.Drift, ETag: it.ETag, Code: it.Code, Message: it.Message, Workflow: it.Workflow,
	}
	if !it.ExpiresAt.IsZero() {
		shown.ExpiresAt = new(it.ExpiresAt.UTC())
	}
	return shown
}

// GET /api/v1/inbox lists what waits for a person.
func Inbox(c *request.Call) error {
	after, limit, err := c.Page(cursorInbox)
	if err != nil {
		return err
	}
	all, err := c.Approval.Inbox(c.R.Context(), c.By.Tenant, after, limit+1)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, request.PageOf(all, limit, cursorInbox, inboxItemFrom,
		func(it approval.InboxItem) envelope.ActionID { return it.Action }))
}
