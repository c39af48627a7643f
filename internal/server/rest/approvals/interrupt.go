package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/visible"
)

// Interrupts handles GET /api/v1/inbox/interrupts. It lists the inbox in the schema
// of LangGraph's Agent Inbox.
func Interrupts(c *request.Call) error {
	page, err := inboxPage(c, 0)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.Page[wire.Interrupt]{Items: request.Map(page.Items, interruptFrom), NextCursor: page.NextCursor})
}

// interruptFrom converts an item of the inbox.
func interruptFrom(it wire.InboxItem) wire.Interrupt {
	decides := it.MayDecide && approval.InboxKind(it.Kind).Decided()
	shown := wire.Interrupt{
		ActionID: it.ActionID, Kind: it.Kind, Description: describe(it),
		Request: wire.ActionRequest{Action: it.Tool, Args: it.Args},
		Config:  wire.InterruptConfig{Accept: decides, Edit: decides, Respond: decides, Ignore: decides || it.MayDecide && it.Kind == wire.InboxNotify},
	}
	// From here on an approval fails, and a denial does not.
	switch it.WhyNot {
	case wire.CodeToolGone, wire.CodeDrift, wire.CodePolicyDenied, wire.CodeOwnEdit, wire.CodeVoted, wire.CodeUnreadable:
		shown.Config.Respond, shown.Config.Ignore = true, true
	}
	if approval.InboxKind(it.Kind).Decided() {
		shown.ETag = it.ETag
	}
	return shown
}

// describe returns the description of an item, in Markdown. Texts of senders,
// agents and sources are escaped: they neither link nor load anything.
func describe(it wire.InboxItem) string {
	var lines []string
	add := func(format string, args ...any) {
		for i, arg := range args {
			args[i] = escapeMarkdown(fmt.Sprint(arg))
		}
		lines = append(lines, fmt.Sprintf(format, args...))
	}
	switch approval.InboxKind(it.Kind) {
	case approval.InboxApproval:
		add("%s waits for approval.", cmp.Or(it.Title, it.Tool))
	case approval.InboxQuestion:
		add("%s waits for approval: triage is unsure of the message.", cmp.Or(it.Title, it.Tool))
	case approval.InboxReview:
		add("%s waits for approval: triage wrote the text.", cmp.Or(it.Title, it.Tool))
	case approval.InboxNotify:
		add("%s ran without a person. Ignore it to acknowledge it.", cmp.Or(it.Title, it.Tool))
	case approval.InboxUnknown:
		add("%s has an unknown outcome. Find out whether it happened, and run: countersign dlq resolve %s", cmp.Or(it.Title, it.Tool), it.ActionID)
	case approval.InboxCompensation:
		add("%s could not be reversed: countersign workflow show %s", cmp.Or(it.Title, it.Tool), it.WorkflowID)
	}
	if m := it.Mail; m != nil {
		add("From: %s %s", m.SenderName, m.Sender)
		add("Subject: %s", m.Subject)
		if m.Reason != nil {
			add("%s (%s)", m.Reason.Text, strings.Join(m.Reason.Codes, ", "))
		}
	}
	if it.ProposedBy != "" {
		add("Proposed by %s.", it.ProposedBy.Brief())
	}
	if it.EditedBy != "" {
		add("Edited by %s.", it.EditedBy.Brief())
	}
	add("Risk: %s.", it.Risk)
	if it.Needed > 1 {
		add("%d of %d approvals given.", it.Given, it.Needed)
	}
	if !it.Reversible {
		add("It cannot be reverted.")
	}
	if it.ExpiresAt != nil {
		add("It expires at %s.", it.ExpiresAt.Format(time.RFC3339))
	}
	for _, text := range []string{it.Note, it.Drift, it.Message} {
		if text != "" {
			add("%s", text)
		}
	}
	if it.WhyNot != "" {
		add("You cannot approve it: %s.", it.WhyNot)
	}
	return strings.Join(lines, "\n\n")
}

// escapeMarkdown returns a text of which Markdown shows every character, in one
// line. Escaped punctuation also prevents bare addresses from becoming links.
func escapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(visible.Text(text)), " ") {
		if r < 0x80 && strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Respond handles POST /api/v1/actions/{id}/respond. It decides by a response of
// LangGraph's Agent Inbox, about the version of the action that the interrupt had.
func Respond(c *request.Call, id envelope.ActionID) error {
	in, at, err := humanResponse(c.Body)
	if err != nil {
		return err
	}
	by, ifMatch := actions.Decider(c), c.IfMatch()
	if ifMatch == "" {
		if in.kind == wire.ResponseIgnore && c.By.Tools == nil {
			if n, err := acknowledge(c, id); err != nil || n > 0 {
				return actionOr(c, id, err)
			}
		}
		return fault.New(fault.Unconditional, "send the etag of the interrupt in If-Match")
	}
	switch in.kind {
	case wire.ResponseIgnore:
		err = c.Approval.Deny(c.R.Context(), by, id, approval.Denial{IfMatch: ifMatch})
	case wire.ResponseText:
		err = c.Approval.Deny(c.R.Context(), by, id, approval.Denial{IfMatch: ifMatch, Note: in.text})
	default:
		err = approveRevised(c, id, ifMatch, in)
	}
	return actionOr(c, id, request.Below(at+"/args", err))
}

// approveRevised approves an action, with the arguments of an edit if the response is
// one. Where a review rule excludes editors from approving, the edit waits for another
// person.
func approveRevised(c *request.Call, id envelope.ActionID, ifMatch string, in response) error {
	var edited json.RawMessage
	_, err := c.Approval.Approve(c.R.Context(), actions.Decider(c), id, approval.Approval{IfMatch: ifMatch, Revise: func(ctx context.Context, tx pgx.Tx, tool *catalog.Tool, now json.RawMessage) (args json.RawMessage, err error) {
		if args, err = revise(ctx, in, tool, now); err == nil && args != nil {
			edited, err = args, c.CheckEdit(ctx, tx, c.By.Tenant, id, args)
		}
		return args, err
	}})
	if own, ok := errors.AsType[*fault.Error](err); ok && own.Code == string(wire.CodeOwnEdit) && edited != nil {
		return c.Approval.Edit(c.R.Context(), actions.Decider(c), id, approval.Edit{Args: edited, IfMatch: ifMatch})
	}
	return err
}

// actionOr answers with an action, or returns the error.
func actionOr(c *request.Call, id envelope.ActionID, err error) error {
	if err != nil {
		return err
	}
	return actions.Show(c, id)
}
