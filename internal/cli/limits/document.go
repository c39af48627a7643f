// Package limits has the commands for what bounds actions: buckets, quiet hours,
// employees' trust, pauses, breakers, and all limits as one file.
package limits

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	restlimits "github.com/countersign-dev/countersign/internal/server/rest/limits"
)

const limitsHelp = `All limits as one document, to be kept in a file beside the code: buckets, quiet
hours, employees, tools and the tenant's settings. The do-not-contact list and
pauses are not in it.

A section that the file leaves out is left alone. One that it has is made to be
exactly that: what is missing from it is removed, and buckets are retired.`

// Command returns the command limits.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Keep all limits in a file: show, check, apply",
		Long:  limitsHelp,
		Example: `  countersign limits show > limits.yaml
  countersign limits check -f limits.yaml
  countersign limits apply -f limits.yaml
  countersign limits apply -f limits.yaml --apply`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(showDocument(a), limitsCheck(a), limitsApply(a), limitsSession(a))
	return cmd
}

func showDocument(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Write all limits as a file",
		Long:    "Write all limits in YAML, or with --json in JSON. \"limits apply\" of it changes\nnothing. It takes an operator's token.",
		Example: "  countersign limits show > limits.yaml",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			doc, err := c.Limits(ctx)
			if err != nil {
				return err
			}
			return a.ShowDocument(doc)
		}),
	}
}

func limitsCheck(a *command.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a file of limits without a server",
		Long: `Check a file of limits, in YAML or JSON, without a server. What is wrong is
named as file:line:column with the field. Whether a bucket or a tool that it
names is there, only "limits apply" can tell.`,
		Example: "  countersign limits check -f limits.yaml",
		Args:    command.Arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.ReadFile(file, restlimits.CheckDocument)
			return a.Done(err, "%s is in order", file)
		},
	}
	cmd.Flags().StringVarP(&file, command.FileFlag, "f", "", "the `file`, or - for standard input (required)")
	return cmd
}

func limitsApply(a *command.App) *cobra.Command {
	var file string
	var apply bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make the limits what a file says",
		Long: `Make the limits what a file says, all of it or nothing. Without --apply it shows
what would change, and changes nothing. It takes an administrator's token.`,
		Example: "  countersign limits apply -f limits.yaml\n  countersign limits apply -f limits.yaml --apply",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			f, err := a.ReadFile(file, restlimits.CheckDocument)
			if err != nil {
				return err
			}
			changes, err := c.PutLimits(ctx, f.JSON, !apply)
			if err != nil {
				return f.Answered(err)
			}
			return a.ShowChanges(changes, apply)
		}),
	}
	cmd.Flags().StringVarP(&file, command.FileFlag, "f", "", "the `file`, or - for standard input (required)")
	cmd.Flags().BoolVar(&apply, "apply", false, "do it; without this nothing changes")
	return cmd
}

const limitsSessionHelp = `See or set how much one session of an agent may propose, on all replicas
together: how many of its actions may wait for a person at a time, and how many
it may propose in a minute that begins with the first. 0 is any number. Who
meets a limit is told when to try again (HTTP 429 with Retry-After).

An agent's token always has a session; what is proposed without one, by a person
or a program of yours, is not counted. Setting takes an administrator's token.`

func limitsSession(a *command.App) *cobra.Command {
	const pendingFlag, minuteFlag = "pending", "per-minute"
	var pending, minute int
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:     "session",
		Short:   "See or set how much one session of an agent may propose",
		Long:    limitsSessionHelp,
		Example: "  countersign limits session\n  countersign limits session --pending 25 --per-minute 0",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			settings, err := c.Settings(ctx)
			if err != nil {
				return err
			}
			flags := cmd.Flags()
			if flags.Changed(pendingFlag) {
				settings.SessionPending = &pending
			}
			if flags.Changed(minuteFlag) {
				settings.SessionMinute = &minute
			}
			if flags.Changed(pendingFlag) || flags.Changed(minuteFlag) {
				if err := c.PutSettings(ctx, settings); err != nil {
					return err
				}
			}
			return showSession(a, settings.SessionPending, settings.SessionMinute)
		}),
	}
	cmd.Flags().IntVar(&pending, pendingFlag, 0, "how many actions may wait for a person, `N`; 0 is any number")
	cmd.Flags().IntVar(&minute, minuteFlag, 0, "how many actions may be proposed in a minute, `N`; 0 is any number")
	return cmd
}

func showSession(a *command.App, pending, minute *int) error {
	if a.JSON {
		return a.WriteJSON(map[string]*int{"session_pending_max": pending, "session_minute_max": minute})
	}
	text := func(n *int) string {
		if n == nil || *n == 0 {
			return "any number"
		}
		return strconv.Itoa(*n)
	}
	if _, err := fmt.Fprintf(a.Out, "waiting for a person  %s\nproposed in a minute  %s\n", text(pending), text(minute)); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
