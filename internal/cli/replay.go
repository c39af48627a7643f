package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/client"
)

const replayHelp = `Put dead letters on the schedule again, under the same idempotency key and with
as many attempts as at first.

One whose outcome is unknown may have had its effect already; replaying it could
double that. Those are left out unless --allow-doubling is given.

Without --apply nothing changes: the command shows what it would replay.`

func (a *app) letterReplay() *cobra.Command {
	var s selection
	var doubling bool
	cmd := &cobra.Command{
		Use:   "replay [ID...]",
		Short: "Put dead letters on the schedule again",
		Long:  replayHelp,
		Example: `  countersign dlq replay --reason exhausted
  countersign dlq replay --reason exhausted --apply
  countersign dlq replay 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --allow-doubling --apply`,
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			letters, err := s.letters(ctx, c, args)
			if err != nil {
				return err
			}
			if !doubling {
				letters = a.withoutUnknown(letters)
			}
			return a.change(ctx, "replay", letters, s.apply, func(ctx context.Context, lot []envelope.ActionID) ([]envelope.ActionID, error) {
				return c.Replay(ctx, doubling, lot...)
			})
		}),
	}
	s.flags(cmd, "replay")
	cmd.Flags().BoolVar(&doubling, "allow-doubling", false, "also those that may have had their effect already")
	return cmd
}

func (a *app) withoutUnknown(letters []client.Letter) []client.Letter {
	sure := slices.DeleteFunc(slices.Clone(letters), func(l client.Letter) bool { return l.Reason == reasonUnknown })
	if left := len(letters) - len(sure); left > 0 {
		a.note("%d of unknown outcome left out: they may have happened, and replaying could double them. --allow-doubling takes them too.", left)
	}
	return sure
}

const discardHelp = `Give dead letters up. They leave the list; the ledger keeps what happened. The
note says why, for the record.

Without --apply nothing changes: the command shows what it would discard.`

func (a *app) letterDiscard() *cobra.Command {
	var s selection
	var note string
	cmd := &cobra.Command{
		Use:   "discard [ID...]",
		Short: "Give dead letters up",
		Long:  discardHelp,
		Example: `  countersign dlq discard --tool send_email --note "sent by hand"
  countersign dlq discard 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "no longer needed" --apply`,
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			if note == "" {
				return misuse("--note must say why, for the record")
			}
			letters, err := s.letters(ctx, c, args)
			if err != nil {
				return err
			}
			return a.change(ctx, "discard", letters, s.apply, func(ctx context.Context, lot []envelope.ActionID) ([]envelope.ActionID, error) {
				return c.Discard(ctx, note, lot...)
			})
		}),
	}
	s.flags(cmd, "discard")
	cmd.Flags().StringVar(&note, "note", "", "why, for the record (required)")
	return cmd
}

// changed is what a change of dead letters came to, for scripts.
type changed struct {
	Command string              `json:"command"`
	Applied bool                `json:"applied"`
	Count   int                 `json:"count"`
	IDs     []envelope.ActionID `json:"action_ids"`
}

// change shows dead letters and, if it is to be applied, does it to them in
// lots.
func (a *app) change(ctx context.Context, verb string, letters []client.Letter, apply bool, do func(context.Context, []envelope.ActionID) ([]envelope.ActionID, error)) error {
	out := changed{Command: verb, Applied: apply, IDs: letterIDs(letters)}
	if apply {
		done := []envelope.ActionID{}
		for lot := range slices.Chunk(out.IDs, lotSize) {
			some, err := do(ctx, lot)
			if err != nil {
				a.note("%s: %d of %d done before this.", verb, len(done), len(letters))
				return err
			}
			if done = append(done, some...); len(letters) > lotSize {
				a.note("%s: %d of %d", verb, len(done), len(letters))
			}
		}
		out.IDs = done
	}
	out.Count = len(out.IDs)
	if a.json {
		return a.document(out)
	}
	if !apply || len(letters) == 0 {
		if err := a.showLetters(letters); err != nil || len(letters) == 0 {
			return err
		}
		a.note("\nNothing was changed. To %s these %d, add --apply.", verb, len(letters))
		return nil
	}
	if left := len(letters) - out.Count; left > 0 {
		a.note("%d were no dead letters any more.", left)
	}
	_, err := fmt.Fprintf(a.sys.Out, "%d %sed\n", out.Count, verb)
	return err
}

// lotSize is how many dead letters are changed at once.
const lotSize = 500
