package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/client"
)

const approveHelp = `Let actions run that wait for a person. They are due at once; with --wait the
command answers when they have ended.

Look before you sign: "countersign get ID" shows what would be done. It takes an
operator's token, and nobody approves what they proposed themselves. The exit
code is 3 if one was approved and then failed.`

func (a *app) approve() *cobra.Command {
	var note string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "approve ID...",
		Short: "Let actions run that wait for a person",
		Long:  approveHelp,
		Example: `  countersign list --approval required
  countersign approve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "as agreed" --wait`,
		Args: arguments(1, many, "the ids of actions"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			return a.each(ctx, args, wait, func(ctx context.Context, id envelope.ActionID) (client.Action, error) {
				return c.Approve(ctx, id, note, wait)
			})
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "why, for the record and for the agent")
	waitFlag(cmd, &wait, "answer when each has ended, or after this `duration`")
	return cmd
}

const denyHelp = `Refuse actions that wait for a person. The note says why, and reaches the agent.
It takes an operator's token.`

func (a *app) deny() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     "deny ID...",
		Short:   "Refuse actions that wait for a person",
		Long:    denyHelp,
		Example: `  countersign deny 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "not before the board has met"`,
		Args:    arguments(1, many, "the ids of actions"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			return a.intended(a.each(ctx, args, 0, func(ctx context.Context, id envelope.ActionID) (client.Action, error) {
				return c.Deny(ctx, id, note)
			}))
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "why, for the record and for the agent")
	return cmd
}

const undoHelp = `Take an action back before it is sent: one that waits for a person, for its time
or for its next try. What was sent cannot be undone, and what is being sent is
too late. Agents take back what their own session proposed.`

func (a *app) undo() *cobra.Command {
	return &cobra.Command{
		Use:     "undo ID...",
		Short:   "Take actions back before they are sent",
		Long:    undoHelp,
		Example: `  countersign undo 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b`,
		Args:    arguments(1, many, "the ids of actions"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			return a.intended(a.each(ctx, args, 0, c.Undo))
		}),
	}
}

// each does something to actions, one after the other, and shows those that it
// was done to. It goes on after one that it cannot be done to, and ends with
// the first such error.
func (a *app) each(ctx context.Context, args []string, wait time.Duration, do func(context.Context, envelope.ActionID) (client.Action, error)) error {
	wanted, err := ids(args)
	if err != nil {
		return err
	}
	var done []client.Action
	var first error
	for _, id := range wanted {
		action, err := do(ctx, id)
		switch {
		case ctx.Err() != nil && err != nil:
			return err
		case err != nil && len(wanted) > 1:
			a.note("%s: %v", id, err)
			fallthrough
		case err != nil:
			if first == nil {
				first = err
			}
		default:
			done = append(done, action)
		}
	}
	var shown error
	if len(done) > 0 {
		shown = a.showOutcome(done, wait)
	}
	if first != nil {
		return first
	}
	return shown
}

// intended drops the verdict that an action ended without its effect, where
// that was the point.
func (a *app) intended(err error) error {
	if err == errEnvelope { //nolint:errorlint // it is never wrapped
		return nil
	}
	return err
}
