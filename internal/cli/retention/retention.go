// Package retention has the commands for how long data is kept.
package retention

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

const retentionHelp = `How long what is kept. There are two kinds:

  ledger  actions that ended, with their attempts
  events  the sealed log of what happened; its seals stay

What is older is deleted once a day (delete), or only told of by an event
(notice), which is what holds for both after 90 days until it is set. Nothing
unfinished is ever deleted: what waits, is scheduled or is a dead letter stays.`

// Command returns the command retention.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retention",
		Short: "Say how long what is kept: list, set",
		Long:  retentionHelp,
		Example: `  countersign retention list
  countersign retention set ledger --days 90 --action delete`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(retentionList(a), retentionSet(a))
	return cmd
}

func retentionList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List how long what is kept",
		Long:    "List how long what is kept and, where nothing is deleted, how much the last\ndaily look found to be older. It takes an operator's token.",
		Example: "  countersign retention list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Retention(ctx)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(client.Page[client.Retention]{Items: all})
			}
			rows := make([][]string, len(all))
			for i, r := range all {
				rows[i] = []string{r.Kind, fmt.Sprint(r.Days), r.Action, older(r), command.Local(r.CheckedAt)}
			}
			return command.Table(a.Out, []string{"KIND", "DAYS", "ACTION", "OLDER", "CHECKED"}, rows)
		}),
	}
}

// older shows how much was found, which is counted up to a bound.
func older(r client.Retention) string {
	switch {
	case r.CheckedAt == nil || r.Action == string(retention.Delete):
		return ""
	case r.Older >= retention.CountMost:
		return fmt.Sprintf("%d or more", r.Older)
	}
	return fmt.Sprint(r.Older)
}

func retentionSet(a *command.App) *cobra.Command {
	var days int
	var action, note string
	cmd := &cobra.Command{
		Use:   "set KIND",
		Short: "Set how long a kind is kept",
		Long:  "Set how long a kind is kept: the ledger, or events. It takes an administrator's\ntoken, and is on record.",
		Example: `  countersign retention set ledger --days 90 --action delete
  countersign retention set events --days 3650 --action notice --note "ten years, as agreed"`,
		Args:      command.Arguments(1, 1, "ledger or events"),
		ValidArgs: []string{string(retention.Ledger), string(retention.Events)},
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if err := checkRetention(args[0], days, action); err != nil {
				return err
			}
			if err := c.PutRetention(ctx, args[0], days, action, note); err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(map[string]any{"kind": args[0], "days": days, "action": action})
			}
			_, err := fmt.Fprintf(a.Out, "%s: %s after %d days\n", args[0], action, days)
			return err
		}),
	}
	cmd.Flags().IntVar(&days, "days", 0, "how many `days`, from 1 to 36500 (required)")
	cmd.Flags().StringVar(&action, "action", "", "what to `do` about what is older: delete or notice (required)")
	cmd.Flags().StringVar(&note, "note", "", "why, for the record")
	command.Fixed(cmd, "action", string(retention.Delete), string(retention.Notice))
	return cmd
}

// checkRetention says in the words of the command line what is wrong.
func checkRetention(kind string, days int, action string) error {
	switch {
	case kind != string(retention.Ledger) && kind != string(retention.Events):
		return command.Misuse("the kind must be ledger or events")
	case days < retention.MinDays || days > retention.MaxDays:
		return command.Misuse("--days must be from %d to %d", retention.MinDays, retention.MaxDays)
	case action == "":
		return command.Misuse("--action must be delete or notice")
	}
	return command.OneOf("action", action, string(retention.Delete), string(retention.Notice))
}
