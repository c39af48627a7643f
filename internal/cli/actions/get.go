package actions

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const getHelp = `Show actions: what was asked, what policy and people said, every attempt, and
the result. With --wait it answers when they have ended.

The exit code is 3 if one of them was denied, expired or failed.`

// Get returns the command get.
func Get(a *command.App) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "get ID...",
		Short: "Show actions with all that happened to them",
		Long:  getHelp,
		Example: `  countersign get 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b
  countersign get 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --wait=2m --json | jq .envelope.result`,
		Args: command.Arguments(1, command.Many, "the ids of actions"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error { return runGet(ctx, a, c, args, wait) }),
	}
	command.WaitFlag(cmd, &wait, "answer when they have ended, or after this `duration`")
	return cmd
}

func runGet(ctx context.Context, a *command.App, c *client.Client, args []string, wait time.Duration) error {
	wanted, err := command.Ids(args)
	if err != nil {
		return err
	}
	until := time.Now().Add(wait)
	var failed error
	for i, id := range wanted {
		action, err := read(ctx, c, id, wait > 0, until)
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
		if err := ShowStory(a, action, attempts); err != nil {
			return err
		}
	}
	return failed
}

func read(ctx context.Context, c *client.Client, id envelope.ActionID, waits bool, until time.Time) (client.Action, error) {
	if !waits {
		return c.Action(ctx, id)
	}
	action, _, err := c.Wait(ctx, id, max(time.Until(until), time.Millisecond))
	return action, err
}

// ShowStory shows one action with all that happened to it.
func ShowStory(a *command.App, act client.Action, attempts []client.Attempt) error {
	e := act.Envelope
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, command.Safe(value))
		}
	}
	row("id", e.ActionID.String())
	row("external id", e.ExternalID)
	row("tool", toolName(e.Tool))
	row("args", string(e.Args))
	if d := act.Decision; d != nil && d.Edited != nil {
		row("as proposed", string(d.Edited.ProposedArgs)+" (edited by "+d.Edited.By+")")
	}
	row("phase", string(act.Phase)+" (status "+string(e.Result.Status)+", approval "+string(e.Approval)+")")
	row("policy", string(act.Policy.Mode)+": "+because(act.Policy))
	row("decision", decided(act))
	if act.Decision != nil {
		row("etag", act.Decision.ETag)
	}
	row("risk", string(e.Risk)+", effect "+string(act.Effect))
	row("session", e.SessionID)
	row("proposed", command.Local(&e.Timestamps.CreatedAt))
	row("not before", command.Stamp(e.Constraints.NotBefore))
	row("must run by", command.Stamp(e.Constraints.MustRunBefore))
	row("next attempt", command.Local(act.NextAttemptAt))
	if w := act.Waiting; w != nil {
		row("waits for", w.Message+until(w.Until))
	}
	row("ended", command.Local(e.Timestamps.CompletedAt))
	if e.Result.Error != nil {
		row("error", e.Result.Error.Code+": "+e.Result.Error.Message)
	}
	if e.Result.ProviderID != nil {
		row("provider id", *e.Result.ProviderID)
	}
	row("result", command.Compact(e.Result.Output))
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return ShowAttempts(a, attempts)
}

// ShowAttempts shows the attempts of an action as a table.
func ShowAttempts(a *command.App, attempts []client.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	rows := make([][]string, len(attempts))
	for i, at := range attempts {
		took := ""
		if at.StartedAt != nil {
			took = at.FinishedAt.Sub(*at.StartedAt).Round(time.Millisecond).String()
		}
		rows[i] = []string{fmt.Sprint(at.Attempt), string(at.Status), at.Code, command.Local(&at.FinishedAt), took, at.Message}
	}
	fmt.Fprintln(a.Out)
	return command.Table(a.Out, []string{"TRY", "LEFT IT", "CODE", "AT", "TOOK", "MESSAGE"}, rows)
}

// decided says what people did, or until when they may.
func decided(act client.Action) string {
	d := act.Decision
	switch {
	case d == nil:
		return ""
	case d.At != nil:
		return string(act.Envelope.Approval) + " by " + d.By + " at " + command.Local(d.At) + command.Noted(d.Note)
	case act.Phase == envelope.PhasePending && d.ExpiresAt != nil:
		if agree := voted(act); agree != "" {
			return agree + ", and more must until " + command.Local(d.ExpiresAt)
		}
		return "waits for a person until " + command.Local(d.ExpiresAt)
	}
	return ""
}

func until(t *time.Time) string {
	if t == nil {
		return ""
	}
	return ", until " + command.Local(t) + " or later"
}
