package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/visible"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// cursorInbox begins the names of the inbox in cursors: each order is a list of
// its own.
const cursorInbox = "inbox"

// Inbox handles GET /api/v1/inbox. It lists the items that wait for a person.
func Inbox(c *request.Call) error {
	preview := 0
	if c.Summary() {
		preview = visible.PreviewBytes
	}
	page, err := inboxPage(c, preview)
	return c.Result(page, err)
}

// inboxPage returns a page of the inbox, with so many bytes of the arguments; 0 is
// all of them.
func inboxPage(c *request.Call, preview int) (page wire.Page[wire.InboxItem], err error) {
	limit, err := c.Limit()
	if err != nil {
		return page, err
	}
	filter, err := inboxFilter(c)
	if err != nil {
		return page, err
	}
	q := approval.InboxQuery{
		InboxFilter: filter, Order: approval.InboxOrder(c.Query.Get("order")), Most: limit + 1, Preview: preview,
		Show: func(external string, args json.RawMessage) json.RawMessage {
			return access.ArgsOf(c.By, external, args)
		},
	}
	list := inboxList(q.Order)
	if q.After, err = inboxPlace(list, c.Query.Get("cursor")); err != nil {
		return page, err
	}
	all, err := c.Approval.Inbox(c.R.Context(), actions.Decider(c), q)
	if err != nil {
		return page, err
	}
	page.Items = request.Map(all[:min(len(all), limit)], inboxItemsFor(c))
	if slices.ContainsFunc(all, func(it approval.InboxItem) bool { return it.Triage }) {
		if err := actions.AddMail(c, page.Items, func(it *wire.InboxItem) (envelope.ActionID, **wire.ActionMail) { return it.ActionID, &it.Mail }); err != nil {
			return page, err
		}
	}
	if len(all) > limit {
		page.NextCursor = new(inboxCursor(list, all[limit-1].Place()))
	}
	return page, nil
}

// InboxCounts handles GET /api/v1/inbox/counts. It counts the items that wait
// for a person.
func InboxCounts(c *request.Call) error {
	filter, err := inboxFilter(c)
	if err != nil {
		return err
	}
	counts, err := c.Approval.InboxCounts(c.R.Context(), c.By.Tenant, filter, time.Now())
	if err != nil {
		return err
	}
	counts.LostLogins = slices.DeleteFunc(counts.LostLogins, func(id string) bool { return !policy.CoversSource(c.By.Tools, id) })
	counts.NeededScopes = slices.DeleteFunc(counts.NeededScopes, func(of wire.SourceScopes) bool { return !policy.CoversSource(c.By.Tools, of.Source) })
	return c.JSON(http.StatusOK, counts)
}

// Acknowledge handles POST /api/v1/inbox/acknowledge. It acknowledges actions of
// triage that ran without a person.
func Acknowledge(c *request.Call, body wire.InboxNotices) error {
	n, err := acknowledge(c, body.IDs...)
	return c.Result(wire.InboxNoticed{Acknowledged: n}, err)
}

// acknowledge returns how many of the actions nobody had acknowledged.
func acknowledge(c *request.Call, ids ...envelope.ActionID) (int, error) {
	return request.Read(c, func(ctx context.Context, tx pgx.Tx) (int, error) {
		n, err := approval.Acknowledge(ctx, tx, c.By.Tenant, ids)
		if err != nil || n == 0 {
			return 0, err
		}
		c.Detail = map[string]any{"ids": ids, "acknowledged": n}
		return n, c.RecordChange(ctx, tx, "notices of triage acknowledged")
	})
}

// inboxFilter reads the filter from the query.
func inboxFilter(c *request.Call) (f approval.InboxFilter, err error) {
	q := c.Query
	f.Session, f.Automation = q.Get("session"), q.Get("automation")
	if text := q.Get("person"); text != "" {
		if f.Person, err = uuid.Parse(text); err != nil {
			return f, request.Invalid("/query/person", envelope.RuleFormat, "is not an id")
		}
	}
	f.Kinds, f.Risks = request.Several[approval.InboxKind](c, "kind"), request.Several[envelope.Risk](c, "risk")
	if text := q.Get("escalated"); text != "" {
		f.Escalated = new(text == "true")
	}
	if f.Source, f.Tool, err = request.SelectTools(q.Get("source"), q.Get("tool"), "/query/tool"); err != nil {
		return f, err
	}
	if f.Cohort = q.Get("cohort"); f.Cohort != "" && !access.ReadsMail(c.By) {
		return f, fault.Coded(wire.CodeScope, fault.Denied, "the filter cohort needs the scope %s, and a token for all tools", identity.MailRead)
	}
	if f.Words, err = access.Words(c.By, q.Get("q")); err != nil {
		return f, err
	}
	f.ExpiresBefore, err = c.QueryTime("expires_before")
	return f, err
}

// inboxItemsFor returns a function that converts an item for the caller.
func inboxItemsFor(c *request.Call) func(approval.InboxItem) wire.InboxItem {
	refused := make(map[approval.InboxKind]wire.ProblemCode)
	for kind, operation := range map[approval.InboxKind]string{
		approval.InboxApproval: "approveAction", approval.InboxQuestion: "approveAction", approval.InboxReview: "approveAction",
		approval.InboxNotify: "acknowledgeInbox", approval.InboxUnknown: "resolveDeadLetter", approval.InboxCompensation: "resolveWorkflow",
	} {
		if err := c.Routes.Admit(c.By, operation); err != nil {
			refused[kind] = request.ProblemOf(err).Code
		}
	}
	return func(it approval.InboxItem) wire.InboxItem {
		if code := refused[it.Kind]; code != "" {
			it.Refused = code
		}
		shown := inboxItemFrom(it)
		shown.Lookalikes = access.Lookalikes(c.By, it.Lookalikes)
		return shown
	}
}

func inboxItemFrom(it approval.InboxItem) wire.InboxItem {
	shown := wire.InboxItem{
		Kind: string(it.Kind), ActionID: it.Action, Tool: it.Tool.String(), Title: it.Title, Args: it.Args, Risk: it.Risk, Effect: it.Effect,
		ProposedBy: it.ProposedBy, Recipients: append([]string{}, it.Recipients...), RecipientsCut: it.RecipientsCut, Headline: it.Headline, RateBucket: it.Bucket,
		MayDecide: it.Refused == "", WhyNot: it.Refused,
		SessionID: it.Session, AutomationID: it.Automation, EmployeeID: it.Employee, Since: it.Since.UTC(),
		Needed: it.Needed, Given: it.Given, ApprovedBy: append([]envelope.Actor{}, it.ApprovedBy...), EditedBy: it.EditedBy, Escalated: it.Escalated, Reversible: it.Reversible,
		Policy: it.Policy, Note: it.Note, Drift: it.Drift, ETag: it.ETag, Code: it.Code, Message: it.Message, WorkflowID: it.Workflow,
	}
	if it.Args == nil {
		shown.ArgsPreview, shown.ArgsCut = &it.Preview, &it.Cut
	}
	if !it.ExpiresAt.IsZero() {
		shown.ExpiresAt = new(it.ExpiresAt.UTC())
	}
	if !it.MustRunBefore.IsZero() {
		shown.MustRunBefore = new(it.MustRunBefore.UTC())
	}
	return shown
}

// inboxList returns the name of the inbox in an order, in cursors.
func inboxList(order approval.InboxOrder) string {
	if order == "" || order == approval.InboxOldest {
		return cursorInbox
	}
	return cursorInbox + "-" + string(order)
}

// inboxCursor returns the cursor of the place of an item.
func inboxCursor(list string, p approval.InboxPlace) string {
	expires := ""
	if !p.ExpiresAt.IsZero() {
		expires = strconv.FormatInt(p.ExpiresAt.UnixMicro(), 10)
	}
	text := fmt.Sprintf("%s %s %s", p.Action, p.Risk, expires)
	switch list {
	case inboxList(approval.InboxSession):
		text += " " + p.Session
	case inboxList(approval.InboxTool):
		text += " " + p.Tool.String()
	}
	return request.WriteTextCursor(list, text)
}

// inboxPlace returns the place of a cursor that inboxCursor returned; nil for "",
// the beginning.
func inboxPlace(list, cursor string) (*approval.InboxPlace, error) {
	if cursor == "" {
		return nil, nil
	}
	text, err := request.ParseTextCursor(list, cursor, "/query/cursor")
	if err != nil {
		return nil, err
	}
	wrong := request.Invalid("/query/cursor", envelope.RuleFormat, "is not a cursor of this list; send next_cursor unchanged, or omit it to start over")
	// The group is the session or the tool; the other orders need none.
	parts := append(strings.SplitN(text, " ", 4), "")
	var p approval.InboxPlace
	if len(parts) < 4 || p.Action.UnmarshalText([]byte(parts[0])) != nil || !envelope.Risk(parts[1]).Valid() {
		return nil, wrong
	}
	p.Risk = envelope.Risk(parts[1])
	if parts[2] != "" {
		micros, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return nil, wrong
		}
		p.ExpiresAt = time.UnixMicro(micros)
	}
	group := parts[3]
	if !utf8.ValidString(group) || strings.ContainsRune(group, 0) {
		return nil, wrong
	}
	p.Session = group
	p.Tool.Source, p.Tool.Action, _ = strings.Cut(group, ":")
	return &p, nil
}
