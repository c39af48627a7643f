package approvals

import (
	"net/http"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// cursorInbox is the name of the inbox in cursors.
const cursorInbox = "inbox"

func inboxItemFrom(it approval.InboxItem) wire.InboxItem {
	shown := wire.InboxItem{
		Kind: string(it.Kind), ActionID: it.Action, Tool: it.Tool.String(), Args: it.Args, Risk: it.Risk,
		SessionID: it.Session, AutomationID: it.Automation, EmployeeID: it.Employee, Since: it.Since.UTC(),
		Needed: it.Needed, Given: it.Given, ApprovedBy: append([]envelope.Actor{}, it.ApprovedBy...), EditedBy: it.EditedBy, Escalated: it.Escalated, Reversible: it.Reversible,
		Policy: it.Policy, Note: it.Note, Drift: it.Drift, ETag: it.ETag, Code: it.Code, Message: it.Message, WorkflowID: it.Workflow,
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
	shown := func(it approval.InboxItem) wire.InboxItem {
		it.Args = access.Args(c.By, it.Args)
		return inboxItemFrom(it)
	}
	all, err := c.Approval.Inbox(c.R.Context(), c.By.Tenant, after, limit+1)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, request.PageOf(all, limit, cursorInbox, shown,
		func(it approval.InboxItem) envelope.ActionID { return it.Action }))
}
