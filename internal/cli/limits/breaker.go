package limits

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Breakers returns the command breaker.
func Breakers(a *command.App) *cobra.Command {
	return command.NewGroup("breaker", "See which sources are not called for now: list, reset",
		`A source that fails again and again is not called for a while: its circuit
breaker is open. Its actions wait, and the wait counts as no attempt. Then one
call is let through to try (half-open); if it succeeds, the breaker closes.`,
		"  countersign breaker list\n  countersign breaker reset mail",
		command.NewList(a, command.Help{
			Short:   "List the sources that failed",
			Long:    "List the sources that failed, with the state of their breakers. A source that\nnever failed is not listed. With --json it is one object a line.",
			Example: "  countersign breaker list",
		}, command.View[wire.Breaker]{
			Empty: "No breaker has opened so far.", Head: []string{"SOURCE", "STATE", "CAUSE", "SINCE", "UNTIL", "TRIPS"},
			Row: func(b wire.Breaker) []string {
				return []string{b.Source, b.State, b.Cause, command.Local(&b.Since), command.Local(&b.OpenUntil), strconv.Itoa(b.Trips)}
			},
		}, func(ctx context.Context, c *client.Client) ([]wire.Breaker, error) { return c.Breakers(ctx) }),
		command.NewChange(a, "reset SOURCE", command.Help{
			Short:   "Let calls to a source through at once",
			Long:    "Let calls to a source through at once. Do it when you know that it works again;\nif it does not, the breaker opens anew. It takes an operator's token.",
			Example: "  countersign breaker reset mail",
		}, "the id of a source", "reset the breaker of %s", func(ctx context.Context, c *client.Client, source string) error { return c.ResetBreaker(ctx, source) }))
}
