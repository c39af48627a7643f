package approvals

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Reviews returns the command review.
func Reviews(a *command.App) *cobra.Command {
	return command.NewGroup("review", command.NewList(a, command.View[wire.ReviewRule]{
		Empty: "There are none: one person is enough.",
		Head:  []string{"KEY", "FROM RISK", "APPROVALS", "WAIT", "WARN", "ESCALATE", "SET BY"},
		Row: func(r wire.ReviewRule) []string {
			return []string{r.Tool, string(r.Risk), strconv.Itoa(r.Approvals), timeText(r.Wait), timeText(r.Warn), timeText(r.Escalate), r.UpdatedBy}
		},
	}, (*client.Client).Reviews),
		reviewSet(a), reviewDelete(a))
}

// timeText shows a time of a rule; one that is left to other rules is empty.
func timeText(d *envelope.Duration) string {
	switch {
	case d == nil:
		return ""
	case *d == 0:
		return "never"
	}
	return d.String()
}

func reviewSet(a *command.App) *cobra.Command {
	var approvals int
	var risk envelope.Risk
	var wait, warn, escalate envelope.Duration
	cmd := command.New(a, "set KEY", command.Arguments(1, 1, "a key, such as mail:send or mail:*"), nil)
	command.RiskFlag(cmd, &risk, "for actions of this `risk` or a higher one: low (all), medium or high")
	command.PositiveFlag(cmd, &approvals, "approvals", "so many `people` must agree")
	command.DurationFlag(cmd, &wait, "wait", "wait for a decision for this `time`")
	command.DurationFlag(cmd, &warn, "warn", "warn this `time` before the end of the wait")
	command.DurationFlag(cmd, &escalate, "escalate", "escalate after this `time` of the wait")
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		all, err := c.Reviews(ctx)
		if err != nil {
			return err
		}
		r := wire.ReviewRule{Tool: args[0], Risk: cmp.Or(risk, envelope.RiskLow), Approvals: 1}
		if i := slices.IndexFunc(all, func(was wire.ReviewRule) bool { return was.Tool == r.Tool && was.Risk == r.Risk }); i >= 0 {
			r = all[i]
		}
		r.Approvals = cmp.Or(approvals, r.Approvals)
		for name, field := range map[string]struct {
			set *envelope.Duration
			to  **envelope.Duration
		}{"wait": {&wait, &r.Wait}, "warn": {&warn, &r.Warn}, "escalate": {&escalate, &r.Escalate}} {
			if flag := cmd.Flags().Lookup(name); flag.Changed {
				if *field.to = nil; flag.Value.String() != "" {
					*field.to = field.set
				}
			}
		}
		return a.Done(c.PutReview(ctx, r), "set the review of %s from risk %s on", r.Tool, r.Risk)
	})
	return cmd
}

func reviewDelete(a *command.App) *cobra.Command {
	var risk envelope.Risk
	cmd := command.NewChange(a, "delete KEY", "the key of a rule", "removed the review of %s", func(c *client.Client, ctx context.Context, key string) error {
		return c.DeleteReview(ctx, key, risk)
	})
	command.RiskFlag(cmd, &risk, "the rule's `risk`: low unless told otherwise")
	return cmd
}
