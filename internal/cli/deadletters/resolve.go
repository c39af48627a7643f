package deadletters

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const resolveHelp = `Say what became of actions whose outcome is unknown, once you have found out at
the provider. What happened counts as sent. What did not runs again, under the
same idempotency key and with as many attempts as at first; with --give-up it
ends as failed. The note says how you know, for the record.

Mind that a request may be on its way still, in a proxy or a queue: what is not
there yet can come.`

func letterResolve(a *command.App) *cobra.Command {
	var r client.Resolution
	var didNot bool
	cmd := &cobra.Command{
		Use:   "resolve ID...",
		Short: "Say what became of actions of unknown outcome",
		Long:  resolveHelp,
		Example: `  countersign dlq list --reason unknown
  countersign dlq resolve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --happened --note "it is in their log"
  countersign dlq resolve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --did-not --note "their support says so"`,
		Args: command.Arguments(1, command.Many, "the ids of actions"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			switch {
			case r.Happened == didNot:
				return command.Misuse("say either --happened or --did-not")
			case r.Happened && r.GiveUp:
				return command.Misuse("--give-up goes with --did-not alone")
			case r.Note == "":
				return command.Misuse("--note must say how you know, for the record")
			}
			return actions.Intended(a, actions.Each(ctx, a, args, 0, func(ctx context.Context, id envelope.ActionID) (client.Action, error) {
				return c.Resolve(ctx, id, r)
			}))
		}),
	}
	cmd.Flags().BoolVar(&r.Happened, "happened", false, "it had its effect")
	cmd.Flags().BoolVar(&didNot, "did-not", false, "it did not, and is to run again")
	cmd.Flags().BoolVar(&r.GiveUp, "give-up", false, "with --did-not: it is not to run again")
	cmd.Flags().StringVar(&r.Note, "note", "", "how you know, for the record (required)")
	return cmd
}
