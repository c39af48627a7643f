package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

const getHelp = `Show actions: what was asked, what policy and people said, every attempt, and
the result. With --wait it answers when they have ended.

The exit code is 3 if one of them was denied, expired or failed.`

func (a *app) get() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "get ID...",
		Short: "Show actions with all that happened to them",
		Long:  getHelp,
		Example: `  countersign get 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b
  countersign get 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --wait=2m --json | jq .envelope.result`,
		Args: arguments(1, many, "the ids of actions"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error { return a.runGet(ctx, c, args, wait) }),
	}
	waitFlag(cmd, &wait, "answer when they have ended, or after this `duration`")
	return cmd
}

func (a *app) runGet(ctx context.Context, c *client.Client, args []string, wait time.Duration) error {
	wanted, err := ids(args)
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
			failed = errEnvelope
		}
		if a.json {
			if err := a.document(action); err != nil {
				return err
			}
			continue
		}
		attempts, err := c.Attempts(ctx, id)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(a.sys.Out)
		}
		if err := a.showStory(action, attempts); err != nil {
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

// showStory shows one action with all that happened to it.
func (a *app) showStory(act client.Action, attempts []client.Attempt) error {
	e := act.Envelope
	t := tabwriter.NewWriter(a.sys.Out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, safe(value))
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
		row("seen", act.Decision.Seen)
	}
	row("risk", string(e.Risk)+", effect "+string(act.Effect))
	row("session", e.SessionID)
	row("proposed", local(&e.Timestamps.CreatedAt))
	row("not before", stamp(e.Constraints.NotBefore))
	row("must run by", stamp(e.Constraints.MustRunBefore))
	row("next attempt", local(act.NextAttemptAt))
	if w := act.Waiting; w != nil {
		row("waits for", w.Message+until(w.Until))
	}
	row("ended", local(e.Timestamps.CompletedAt))
	if e.Result.Error != nil {
		row("error", e.Result.Error.Code+": "+e.Result.Error.Message)
	}
	if e.Result.ProviderID != nil {
		row("provider id", *e.Result.ProviderID)
	}
	row("result", compact(e.Result.Output))
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return a.showAttempts(attempts)
}

func (a *app) showAttempts(attempts []client.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	rows := make([][]string, len(attempts))
	for i, at := range attempts {
		took := ""
		if at.StartedAt != nil {
			took = at.FinishedAt.Sub(*at.StartedAt).Round(time.Millisecond).String()
		}
		rows[i] = []string{fmt.Sprint(at.Attempt), string(at.Status), at.Code, local(&at.FinishedAt), took, at.Message}
	}
	fmt.Fprintln(a.sys.Out)
	return table(a.sys.Out, []string{"TRY", "LEFT IT", "CODE", "AT", "TOOK", "MESSAGE"}, rows)
}

// decided says what people did, or until when they may.
func decided(act client.Action) string {
	d := act.Decision
	switch {
	case d == nil:
		return ""
	case d.At != nil:
		return string(act.Envelope.Approval) + " by " + d.By + " at " + local(d.At) + noted(d.Note)
	case act.Phase == envelope.PhasePending && d.ExpiresAt != nil:
		if agree := voted(act); agree != "" {
			return agree + ", and more must until " + local(d.ExpiresAt)
		}
		return "waits for a person until " + local(d.ExpiresAt)
	}
	return ""
}

func until(t *time.Time) string {
	if t == nil {
		return ""
	}
	return ", until " + local(t) + " or later"
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return local(&t)
}

// compact writes JSON without the spaces.
func compact(raw json.RawMessage) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if len(raw) == 0 || encoder.Encode(raw) != nil {
		return string(raw)
	}
	return strings.TrimSpace(b.String())
}
