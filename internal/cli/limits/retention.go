package limits

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

// Retention returns the command retention.
func Retention(a *command.App) *cobra.Command {
	return command.NewGroup("retention", command.NewList(a, command.View[wire.Retention]{
		Head: []string{"KIND", "PERIOD", "ACTION", "OLDER", "CHECKED"},
		Row: func(r wire.Retention) []string {
			return []string{r.Kind, r.Period.String(), r.Action, olderText(r), command.Local(r.CheckedAt)}
		},
	}, (*client.Client).Retention),
		set(a))
}

// olderText shows how much was found, which is counted up to a bound.
func olderText(r wire.Retention) string {
	switch {
	case r.CheckedAt == nil || r.Action == string(retention.Delete):
		return ""
	case r.Older >= retention.CountMost:
		return fmt.Sprintf("%d or more", r.Older)
	}
	return fmt.Sprint(r.Older)
}

func set(a *command.App) *cobra.Command {
	var r wire.Retention
	kinds := []string{string(retention.Actions), string(retention.Events)}
	cmd := &cobra.Command{
		Use:       "set KIND",
		Args:      command.Arguments(1, 1, "actions or events"),
		ValidArgs: kinds,
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			r.Kind = args[0]
			switch {
			case r.Kind != kinds[0] && r.Kind != kinds[1]:
				return command.Misuse("the kind must be actions or events")
			case r.Period <= 0 || time.Duration(r.Period) > retention.MaxDays*24*time.Hour:
				return command.Misuse("--period must be a number of days, from 1d to %dd", retention.MaxDays)
			case r.Action == "":
				return command.Misuse("--action must be delete or report")
			}
			if err := c.PutRetention(ctx, r); err != nil {
				return err
			}
			return a.Result(map[string]any{"kind": r.Kind, "period": r.Period, "action": r.Action}, "%s: %s after %s\n", r.Kind, r.Action, r.Period)
		}),
	}
	command.DurationFlag(cmd, &r.Period, "period", "retention period in `days`, such as 90d (required)")
	command.EnumFlag(cmd, &r.Action, "action", "`action` for older data: delete or report (required)", string(retention.Delete), string(retention.Report))
	cmd.Flags().StringVar(&r.Note, "note", "", "reason, for the audit log")
	return cmd
}
