package deadletters

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const replayHelp = `Put dead letters on the schedule again, under the same idempotency key and with
as many attempts as at first. Ids, --from and filters narrow the choice; all
that are given must hold.

One whose outcome is unknown may have had its effect already; replaying it could
double that. Those are left out unless --allow-doubling is given.

With --rate so many become due in a second. Ctrl-C stops after the lot in
flight: what was not replayed yet stays a dead letter. Run the command again to
take up the rest, which goes on behind what is scheduled already.

Without --apply nothing changes: the command shows what it would replay.`

// maxRate is the highest rate that the API takes.
const maxRate = 10000

func letterReplay(a *command.App) *cobra.Command {
	var s selection
	var how client.Replaying
	cmd := &cobra.Command{
		Use:   "replay [ID...]",
		Short: "Put dead letters on the schedule again",
		Long:  replayHelp,
		Example: `  countersign dlq replay --reason exhausted --tool send_email
  countersign dlq replay --reason exhausted --tool send_email --rate 50 --apply
  countersign dlq replay --from dead.jsonl --apply
  countersign dlq replay 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --allow-doubling --apply`,
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			// Written so that it refuses what is no number, too.
			if inRange := how.PerSecond >= 0.001 && how.PerSecond <= maxRate; how.PerSecond != 0 && !inRange {
				return command.Misuse("--rate must be from 0.001 to %d a second", maxRate)
			}
			named, f, err := letters(a, &s, args)
			if err != nil {
				return err
			}
			ch := letterChange{app: a, verb: "replay", named: named, typed: len(args) > 0, filter: f, apply: s.apply, rate: how.PerSecond}
			ch.do = func(ctx context.Context, lot client.Lot) (client.LotDone, error) { return c.Replay(ctx, lot, how) }
			ch.all = func(ctx context.Context, lot client.Lot) (client.LotDone, error) {
				how := how
				how.Doubling = true
				return c.Replay(ctx, lot, how)
			}
			return ch.run(ctx)
		}),
	}
	s.flags(cmd, "replay")
	cmd.Flags().BoolVar(&how.Doubling, "allow-doubling", false, "also those that may have had their effect already")
	cmd.Flags().Float64Var(&how.PerSecond, "rate", 0, "how many become due in a second (default all at once)")
	cmd.Flags().StringVar(&how.Note, "note", "", "why, for the record")
	return cmd
}

const discardHelp = `Give dead letters up. They leave the list; the ledger keeps what happened. The
note says why, for the record. Ids, --from and filters narrow the choice; all
that are given must hold.

Without --apply nothing changes: the command shows what it would discard.`

func letterDiscard(a *command.App) *cobra.Command {
	var s selection
	var note string
	cmd := &cobra.Command{
		Use:   "discard [ID...]",
		Short: "Give dead letters up",
		Long:  discardHelp,
		Example: `  countersign dlq discard --tool send_email --note "sent by hand"
  countersign dlq discard 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "no longer needed" --apply`,
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if note == "" {
				return command.Misuse("--note must say why, for the record")
			}
			named, f, err := letters(a, &s, args)
			if err != nil {
				return err
			}
			ch := letterChange{app: a, verb: "discard", named: named, typed: len(args) > 0, filter: f, apply: s.apply}
			ch.do = func(ctx context.Context, lot client.Lot) (client.LotDone, error) { return c.Discard(ctx, lot, note) }
			return ch.run(ctx)
		}),
	}
	s.flags(cmd, "discard")
	cmd.Flags().StringVar(&note, "note", "", "why, for the record (required)")
	return cmd
}
