package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Inbox returns the command inbox.
func Inbox(a *command.App) *cobra.Command {
	var f client.InboxFilter
	var counts bool
	var format string
	var cmd *cobra.Command
	cmd = command.New(a, "inbox", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		if counts {
			if flags := cmd.Flags(); flags.Changed("format") || flags.Changed("order") || flags.Changed("limit") || flags.Changed("cursor") {
				return command.Misuse("--counts cannot be combined with --format, --order, --limit or --cursor")
			}
			return command.Show(a, showCounts)(c.InboxCounts(ctx, f))
		}
		if format == formatAgentInbox {
			return interrupts(ctx, a, c, f)
		}
		page, err := c.Inbox(ctx, f)
		if err != nil {
			return err
		}
		now := time.Now()
		return command.View[wire.InboxItem]{
			Empty: "Nothing waits for a person.", Head: []string{"ID", "TOOL", "RISK", "SINCE", "LEFT", "WAITS FOR", "MAIL", "HEADLINE"},
			Row: func(it wire.InboxItem) []string {
				return []string{
					it.ActionID.String(), it.Tool, string(it.Risk), command.Local(&it.Since), timeLeft(it.ExpiresAt, now),
					waitsText(it), actions.MailText(it.Mail), command.Line(it.Headline) + actions.LookalikeText(it.Lookalikes, mostMarks),
				}
			},
			Whole: true,
		}.ShowPage(a)(page, nil)
	})
	inboxFlags(cmd, &f)
	command.EnumFlag(cmd, &format, "format", "print `table`, or agent-inbox: a JSON list in the schema of LangGraph's Agent Inbox", "table", formatAgentInbox)
	cmd.Flags().BoolVar(&counts, "counts", false, "print counts by kind and tool instead; each count stops at 5,000")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

// mostMarks is the number of look-alikes that a line of the inbox shows.
const mostMarks = 3

// formatAgentInbox is the format of LangGraph's Agent Inbox.
const formatAgentInbox = "agent-inbox"

// interrupts prints a page of the inbox as a list of HumanInterrupt.
func interrupts(ctx context.Context, a *command.App, c *client.Client, f client.InboxFilter) error {
	page, err := c.Interrupts(ctx, f)
	if err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.Note("For more results, add --cursor %s", *page.NextCursor)
	}
	return a.WriteJSON(page.Items)
}

// Respond returns the command respond.
func Respond(a *command.App) *cobra.Command {
	var text json.RawMessage
	var etag string
	cmd := command.New(a, "respond ID", command.Arguments(1, 1, "an action id"), func(ctx context.Context, c *client.Client, args []string) error {
		if len(text) == 0 {
			return command.Misuse("--response is required")
		}
		in, err := humanResponse(text)
		if err != nil {
			return err
		}
		return actions.Intended(actions.Each(ctx, a, args, 0, func(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			return c.Respond(ctx, id, etag, in)
		}))
	})
	a.JSONFlag(cmd, &text, "response", "the response of Agent Inbox as `json` or @FILE")
	etagFlag(cmd, &etag)
	return cmd
}

// humanResponse parses a response, or a list of one.
func humanResponse(text json.RawMessage) (in wire.HumanResponse, err error) {
	var list []wire.HumanResponse
	if json.Unmarshal(text, &list) != nil {
		return in, json.Unmarshal(text, &in)
	}
	if len(list) != 1 {
		return in, command.Misuse("--response holds %d responses; give one", len(list))
	}
	return list[0], nil
}

// inboxFlags adds the flags of the inbox's filter and order.
func inboxFlags(cmd *cobra.Command, f *client.InboxFilter) {
	flags := cmd.Flags()
	command.ToolFlag(cmd, &f.Tool)
	flags.StringVar(&f.Source, "source", "", "filter by source `id`")
	flags.StringVar(&f.Session, "session-id", "", "filter by `session`")
	command.AutomationFlag(cmd, &f.Automation, "filter by `automation`")
	flags.StringVar(&f.Person, "person", "", "filter by the `id` of the person, or of the token of nobody, who proposed")
	flags.StringVar(&f.Query, "search", "", "search arguments, tools, people and sessions for `words`")
	command.WordsFlag(cmd, &f.Kinds, "kind", "filter by kinds, comma-separated: approval, question, review, unknown, compensation, notify (only if named)",
		wire.InboxApproval, wire.InboxQuestion, wire.InboxReview, wire.InboxUnknown, wire.InboxCompensation, wire.InboxNotify)
	cohortFlag(cmd, &f.Cohort, "filter by `cohort` of the mail, such as newsletters; needs the scope mail:read")
	command.WordsFlag(cmd, &f.Risks, "risk", "filter by risks, comma-separated: low, medium, high", "low", "medium", "high")
	command.Flag(cmd, "escalated", "bool", "show only escalated items; --escalated=false shows the others", func(text string) error {
		escalated, err := strconv.ParseBool(text)
		f.Escalated = &escalated
		return err
	}).NoOptDefVal = "true"
	command.FutureFlag(cmd, &f.ExpiresBefore, "expires-before", "filter by expiry: before this `time`")
	command.EnumFlag(cmd, &f.Order, "order", "sort `order`: oldest, newest, expiry, risk, session or tool (default oldest)", "oldest", "newest", "expiry", "risk", "session", "tool")
}

// cohortFlag adds the flag of a cohort.
func cohortFlag(cmd *cobra.Command, cohort *string, about string) {
	command.EnumFlag(cmd, cohort, "cohort", about,
		"vip", "first_contact", "newsletters", "social", "transactional", "intra_org", "cross_org", "default")
}

// Acknowledge returns the command acknowledge.
func Acknowledge(a *command.App) *cobra.Command {
	return command.New(a, "acknowledge ID...", command.Arguments(1, command.Many, "one or more action ids"), func(ctx context.Context, c *client.Client, args []string) error {
		ids, err := command.IDs(args)
		if err != nil {
			return err
		}
		n, err := c.Acknowledge(ctx, ids)
		return a.Done(err, "acknowledged %d of %d", n, len(ids))
	})
}

// showCounts shows how much waits for a person.
func showCounts(a *command.App, counts wire.InboxCounts) error {
	for _, id := range counts.LostLogins {
		a.Note("The source %s has lost its login: countersign source login %s", command.Line(id), command.Quoted(id))
	}
	for _, of := range counts.NeededScopes {
		a.Note("The login of source %s lacks the scopes %s: countersign source login %s", command.Line(of.Source), command.Safe(strings.Join(of.Scopes, " ")), command.Quoted(of.Source))
	}
	if n := counts.ByKind.Notify; n > 0 {
		a.Note("Triage did %d by itself: countersign inbox --kind notify", n)
	}
	if counts.Total == 0 {
		return a.Print("Nothing waits for a person.\n")
	}
	atLeast := ""
	if counts.Capped {
		atLeast = "at least "
	}
	err := a.Print("%s%d wait: %d for approval, %d questions, %d reviews, %d with an unknown outcome, %d failed reversals. %d escalated, %d expire within the hour.\n",
		atLeast, counts.Total, counts.ByKind.Approval, counts.ByKind.Question, counts.ByKind.Review, counts.ByKind.Unknown, counts.ByKind.Compensation, counts.Escalated, counts.Expiring)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, t := range counts.Tools {
		rows = append(rows, []string{"tool", t.Tool, "", strconv.Itoa(t.Count)})
	}
	for _, s := range counts.Sessions {
		rows = append(rows, []string{"session", s.Session, "", strconv.Itoa(s.Count)})
	}
	for _, p := range counts.People {
		rows = append(rows, []string{"person", p.Person.String(), p.Name, strconv.Itoa(p.Count)})
	}
	return command.View[[]string]{
		Head: []string{"OF", "VALUE", "NAME", "WAITING"}, Row: func(row []string) []string { return row },
	}.Show(a)(rows, nil)
}

// waitsText describes the reason why an item is in the inbox.
func waitsText(it wire.InboxItem) string {
	switch it.Kind {
	case wire.InboxCompensation:
		return "a failed reversal: countersign workflow show " + it.WorkflowID.String()
	case wire.InboxUnknown:
		return "somebody to find out whether it happened: countersign dlq resolve"
	case wire.InboxNotify:
		return "nothing; triage did it: countersign acknowledge"
	}
	parts := []string{it.Kind}
	if it.Needed > 1 {
		parts[0] = fmt.Sprintf("%d of %d approvals", it.Needed-it.Given, it.Needed)
	}
	if it.EditedBy != "" {
		parts = append(parts, "edited by "+it.EditedBy.Brief())
	}
	if it.Escalated {
		parts = append(parts, "escalated")
	}
	if !it.Reversible {
		parts = append(parts, "cannot be reverted")
	}
	for _, text := range []string{it.Drift, it.Note} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// timeLeft shows how much of the time to decide is left.
func timeLeft(until *time.Time, now time.Time) string {
	if until == nil {
		return ""
	}
	return max(0, until.Sub(now)).Round(time.Second).String()
}
