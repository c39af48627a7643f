package triage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func export(a *command.App) *cobra.Command {
	return command.New(a, "export ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		return command.Export(a, func(cursor string) (wire.Page[json.RawMessage], error) {
			return c.ExportTriageAccount(ctx, args[0], 200, cursor)
		})
	})
}

func purge(a *command.App) *cobra.Command {
	var dryRun, yes bool
	var wait time.Duration
	cmd := command.New(a, "purge ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		counted, err := c.PurgeTriageAccount(ctx, args[0], wire.TriagePurgeRequest{DryRun: true})
		if err != nil {
			return err
		}
		if !a.JSON || dryRun {
			if err := command.Show(a, showPurge)(counted, nil); err != nil || dryRun {
				return err
			}
		}
		if !yes {
			if err := a.Confirm("Erase this? It cannot be undone."); err != nil {
				return err
			}
		}
		return erase(ctx, a, c, args[0], wait)
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "count what would be erased, and change nothing")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "skip the confirmation prompt")
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "maximum `duration` to wait for pending actions to end; 0 does not wait")
	return cmd
}

// erase repeats the request until nothing is left, and shows the sum. It stops
// between two sets when ctx ends.
func erase(ctx context.Context, a *command.App, c *client.Client, name string, wait time.Duration) error {
	sum, until := wire.TriagePurge{Account: name}, time.Now().Add(wait)
	var failed error
	for !sum.Done && failed == nil {
		set, err := c.PurgeTriageAccount(context.WithoutCancel(ctx), name, wire.TriagePurgeRequest{})
		sum.Rows, sum.Open, sum.Done = sum.Rows.Plus(set.Rows), set.Open, set.Done
		switch {
		case err != nil:
			failed = err
		case set.Done:
		case ctx.Err() != nil:
			failed = fmt.Errorf("stopped; run the command again to continue: %w", ctx.Err())
		case set.Open > 0 && time.Now().After(until):
			failed = fmt.Errorf("%d messages are kept, because actions about them have not ended; end them with `countersign kill --automation triage/%s`, and run the command again", set.Open, name)
		case set.Open > 0:
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
		}
	}
	if failed != nil && sum.Rows == (wire.TriageRows{}) {
		return failed
	}
	if err := command.Show(a, func(a *command.App, p wire.TriagePurge) error {
		return a.Print("erased %d messages, %d senders, %d corrections, %d proposals and %d other rows of %s\n", p.Rows.Messages, p.Rows.Senders, p.Rows.Corrections, p.Rows.Proposals,
			p.Rows.Sum()-p.Rows.Messages-p.Rows.Senders-p.Rows.Corrections-p.Rows.Proposals, name)
	})(sum, nil); err != nil {
		return err
	}
	return failed
}

func showPurge(a *command.App, p wire.TriagePurge) error {
	pairs := []string{"account", p.Account}
	for _, row := range p.Rows.Tables() {
		pairs = append(pairs, row.Table, fmt.Sprint(row.Rows))
	}
	if err := a.Fields(pairs...); err != nil {
		return err
	}
	a.Note("\nThe account and its settings stay; `countersign triage accounts delete %s` erases them too.", p.Account)
	a.Note("The record keeps %d actions, which `triage undo` then no longer finds; %d of them have text of mail (drafts).", p.Recorded, p.RecordedTexts)
	if p.Open > 0 {
		a.Note("Actions about %d messages have not ended; these messages are kept until then.", p.Open)
	}
	return nil
}
