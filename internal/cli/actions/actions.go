// Package actions has the commands that propose actions and follow them:
// actions, submit, get, list and watch. It also shows actions for other
// packages of commands. It does not decide about any.
package actions

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Command returns the command actions.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("actions", listTools(a), guide(a), run(a))
}

func listTools(a *command.App) *cobra.Command {
	var f client.ToolFilter
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error { return showTools(ctx, a, c, f) })
	cmd.Flags().StringVar(&f.Query, "search", "", "search for `words`; best matches first")
	cmd.Flags().StringVar(&f.Source, "source", "", "filter by source `id`")
	return cmd
}

func showTools(ctx context.Context, a *command.App, c *client.Client, f client.ToolFilter) error {
	found, err := c.Tools(ctx, f)
	if err != nil {
		return err
	}
	var usable []wire.Tool
	for _, t := range found.Items {
		// People see more than they may use.
		if t.Enabled && t.Mode != envelope.ModeDeny {
			usable = append(usable, t)
		}
	}
	for _, src := range found.Sources {
		if src.Error != nil {
			a.Note("The tools of %s cannot be listed now: %s", command.Line(src.ID), command.Line(*src.Error))
		}
	}
	view := command.View[wire.Tool]{
		Empty: "No tools are available to you.", Head: []string{"TOOL", "A CALL", "RISK", "TITLE"},
		Row: func(t wire.Tool) []string { return []string{t.Tool, policy.ModeText(t.Mode), t.Risk, t.Title} },
	}
	if f != (client.ToolFilter{}) {
		view.Empty = "No matching tools are available to you."
	}
	return view.Show(a)(usable, nil)
}

func guide(a *command.App) *cobra.Command {
	var query string
	cmd := command.New(a, "guide", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		text, err := c.Guide(ctx, query)
		if err != nil {
			return err
		}
		return a.Result(map[string]string{"guide": text}, "%s", text)
	})
	cmd.Flags().StringVar(&query, "search", "", "search for `words`; best matches first")
	return cmd
}

// List returns the command list.
func List(a *command.App) *cobra.Command {
	var f client.ActionFilter
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return actionView().ShowPage(a)(c.Actions(ctx, f))
	})
	flags := cmd.Flags()
	command.WordsFlag(cmd, &f.Phases, "phase", "filter by `phases`, comma-separated: pending, approved, executing, completed, denied, failed, expired, skipped, undone, unknown",
		"pending", "approved", "executing", "completed", "denied", "failed", "expired", "skipped", "undone", "unknown")
	command.WordsFlag(cmd, &f.Risks, "risk", "filter by `risks`, comma-separated: low, medium, high", "low", "medium", "high")
	command.EnumFlag(cmd, &f.Status, "status", "filter by `status`: pending, sending, sent, conflict, failed, skipped or unknown",
		"pending", "sending", "sent", "conflict", "failed", "skipped", "unknown")
	command.EnumFlag(cmd, &f.Approval, "approval", "filter by `approval`: auto, required (waiting for a person), granted, denied or expired",
		"auto", "required", "granted", "denied", "expired")
	command.ToolFlag(cmd, &f.Tool)
	flags.StringVar(&f.Source, "source", "", "filter by source `id`")
	flags.StringVar(&f.Session, "session-id", "", "filter by `session`")
	flags.StringVar(&f.ExternalID, "external-id", "", "filter by external id, the `name` that you gave")
	command.AutomationFlag(cmd, &f.Automation, "filter by `automation`")
	flags.StringVar(&f.Query, "search", "", "search arguments, tools, people and sessions for `words`")
	command.IDFlag(cmd, &f.Employee, "employee-id", "filter by employee `id`")
	command.IDFlag(cmd, &f.Workflow, "workflow-id", "filter by workflow `id`")
	command.RangeFlags(cmd, &f.Since, &f.Until, "actions proposed")
	flags.BoolVar(&f.Oldest, "oldest", false, "list oldest first")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

// actionView shows actions, one a line.
func actionView() command.View[wire.Action] {
	return command.View[wire.Action]{
		Empty: "No matching actions.", Head: []string{"ID", "TOOL", "PHASE", "STATUS", "TRIES", "PROPOSED", "EXTERNAL ID"},
		Row: func(a wire.Action) []string {
			e := a.Envelope
			return []string{
				e.ActionID.String(), toolName(e.Tool), string(a.Phase), string(e.Result.Status), strconv.Itoa(e.Result.Attempts),
				command.Local(&e.Timestamps.CreatedAt), e.ExternalID,
			}
		},
	}
}

// Get returns the command get.
func Get(a *command.App) *cobra.Command {
	var wait time.Duration
	cmd := command.New(a, "get ID...", command.Arguments(1, command.Many, "one or more action ids"), func(ctx context.Context, c *client.Client, args []string) error { return runGet(ctx, a, c, args, wait) })
	command.WaitFlag(cmd, &wait, "wait until they end, for at most this `duration`")
	return cmd
}

func runGet(ctx context.Context, a *command.App, c *client.Client, args []string, wait time.Duration) error {
	wanted, err := command.IDs(args)
	if err != nil {
		return err
	}
	until := time.Now().Add(wait)
	var failed error
	for i, id := range wanted {
		var action wire.Action
		if wait > 0 {
			action, _, err = c.Wait(ctx, id, max(time.Until(until), time.Millisecond))
		} else {
			action, err = c.Action(ctx, id)
		}
		if err != nil {
			return err
		}
		if ended(action.Phase) {
			failed = command.ErrAction
		}
		if a.JSON {
			if err := a.WriteJSON(action); err != nil {
				return err
			}
			continue
		}
		attempts, err := c.Attempts(ctx, id)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if err := ShowDetail(a, action, attempts); err != nil {
			return err
		}
	}
	return failed
}

// LookalikeText returns the addresses in arguments that may be taken for others, each
// with its place and the reason, after a headline: at most as many, and how many more
// there are.
func LookalikeText(all []wire.Lookalike, most int) string {
	var b strings.Builder
	for _, l := range all[:min(len(all), most)] {
		b.WriteString(" [! " + command.Line(l.Pointer) + ": " + command.Line(l.Value) + " " + command.Line(l.Text) + "]")
	}
	if more := len(all) - most; more > 0 {
		fmt.Fprintf(&b, " [! %d more]", more)
	}
	return b.String()
}

// ShowDetail shows an action with its decision, attempts and result.
func ShowDetail(a *command.App, act wire.Action, attempts []wire.Attempt) error {
	e := act.Envelope
	pairs := []string{
		"id", e.ActionID.String(),
		"external id", e.ExternalID,
		"tool", toolName(e.Tool),
		"headline", command.Line(act.Headline) + LookalikeText(act.Lookalikes, len(act.Lookalikes)),
		"args", string(e.Args),
		"mail", MailText(act.Mail),
	}
	if m := act.Mail; m != nil && m.Reason != nil {
		pairs = append(pairs, "why", m.Reason.Text+" ["+strings.Join(m.Reason.Codes, " ")+"]")
	}
	if d := act.Decision; d != nil && d.Edited != nil {
		pairs = append(pairs, "as proposed", string(d.Edited.ProposedArgs)+" (edited by "+d.Edited.By.Brief()+")")
	}
	pairs = append(pairs,
		"phase", string(act.Phase)+" (status "+string(e.Result.Status)+", approval "+string(e.Approval)+")",
		"policy", string(act.Policy.Mode)+": "+because(act.Policy),
		"decision", decisionText(act),
	)
	if act.Decision != nil {
		pairs = append(pairs, "etag", act.Decision.ETag)
	}
	pairs = append(pairs,
		"risk", string(e.Risk)+", effect "+string(act.Effect),
		"session", e.SessionID,
		"proposed", command.Local(&e.Timestamps.CreatedAt),
		"not before", command.Stamp(e.Constraints.NotBefore),
		"must run by", command.Stamp(e.Constraints.MustRunBefore),
		"next attempt", command.Local(act.NextAttemptAt),
	)
	if w := act.Waiting; w != nil {
		until := ""
		if w.Until != nil {
			until = ", until " + command.Local(w.Until) + " or later"
		}
		pairs = append(pairs, "waits for", w.Message+until)
	}
	pairs = append(pairs, "ended", command.Local(e.Timestamps.CompletedAt))
	if e.Result.Error != nil {
		pairs = append(pairs, "error", e.Result.Error.Code+": "+e.Result.Error.Message)
	}
	if e.Result.ProviderID != nil {
		pairs = append(pairs, "provider id", *e.Result.ProviderID)
	}
	pairs = append(pairs, "result", command.Compact(e.Result.Output))
	if act.Reverts != nil {
		pairs = append(pairs, "reverts", act.Reverts.String())
	}
	if act.Resends != nil {
		pairs = append(pairs, "resends", act.Resends.String())
	}
	if r := act.RevertedBy; r != nil {
		pairs = append(pairs, "reverted by", r.ActionID.String()+" ("+string(r.Phase)+")")
	}
	if err := a.Fields(pairs...); err != nil {
		return err
	}
	return ShowAttempts(a, attempts)
}

// MailText shows the sender and the subject of the message that an action is about;
// empty for none.
func MailText(m *wire.ActionMail) string {
	if m == nil {
		return ""
	}
	return strings.TrimSpace(m.SenderName+" <"+m.Sender+">") + ": " + m.Subject
}

// ShowAttempts shows the attempts of an action as a table.
func ShowAttempts(a *command.App, attempts []wire.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	return command.Table(a, attempts, []string{"TRY", "LEFT IT", "CODE", "AT", "TOOK", "MESSAGE"}, func(at wire.Attempt) []string {
		took := ""
		if at.StartedAt != nil {
			took = at.FinishedAt.Sub(*at.StartedAt).Round(time.Millisecond).String()
		}
		return []string{fmt.Sprint(at.Attempt), string(at.Status), at.Code, command.Local(&at.FinishedAt), took, at.Message}
	})
}

// decisionText describes the decision of people, or the time they have for it.
func decisionText(act wire.Action) string {
	d := act.Decision
	switch {
	case d == nil:
		return ""
	case d.At != nil:
		return string(act.Envelope.Approval) + " by " + d.By.Brief() + " at " + command.Local(d.At) + command.Noted(d.Note)
	case act.Phase == envelope.PhasePending && d.ExpiresAt != nil:
		if agree := voted(act); agree != "" {
			return agree + ", and more must until " + command.Local(d.ExpiresAt)
		}
		return "waits for a person until " + command.Local(d.ExpiresAt)
	}
	return ""
}
