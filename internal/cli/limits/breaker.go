package limits

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const breakerHelp = `A source that fails again and again is left alone for a while: its breaker is
open. Its actions wait, and the wait counts as no attempt. Then one call is let
through to try (half-open); if it succeeds, the breaker closes.`

// Breakers returns the command breaker.
func Breakers(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "breaker",
		Short:   "See which sources are left alone: list, reset",
		Long:    breakerHelp,
		Example: "  countersign breaker list\n  countersign breaker reset mail",
		Args:    cobra.ArbitraryArgs,
		RunE:    command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(breakerList(a), &cobra.Command{
		Use:     "reset SOURCE",
		Short:   "Let calls to a source through at once",
		Long:    "Let calls to a source through at once. Do it when you know that it works again;\nif it does not, the breaker opens anew. It takes an operator's token.",
		Example: "  countersign breaker reset mail",
		Args:    command.Arguments(1, 1, "the id of a source"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.ResetBreaker(ctx, args[0]), "reset the breaker of %s", args[0])
		}),
	})
	return cmd
}

func breakerList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the sources that failed",
		Long:    "List the sources that failed, and how the fleet stands to them. A source that\nnever failed is not listed. With --json it is one object a line.",
		Example: "  countersign breaker list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Breakers(ctx)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			if len(all) == 0 {
				a.Note("No source has failed so far that it had to be left alone.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, b := range all {
				rows[i] = []string{b.Source, b.State, b.Cause, command.Local(&b.Since), command.Local(&b.OpenUntil), strconv.Itoa(b.Trips)}
			}
			return command.Table(a.Out, []string{"SOURCE", "STATE", "CAUSE", "SINCE", "UNTIL", "TRIPS"}, rows)
		}),
	}
}
