package approvals

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const reviewHelp = `Review rules say how people look at actions that wait for them: how many must
agree, for how long they are waited for, and when they are reminded. Each is for
the tools that a key covers (mail:send, mail:*, *:send or *), and for actions of
a risk or a higher one.

Of all rules that cover an action the largest number of people holds. Each time
comes from the most particular rule that sets it. Nobody counts twice, and one
who denies is enough.

To look takes an operator's token, to set rules an administrator's.`

// Reviews returns the command review.
func Reviews(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Set how many people must approve, and in what time: list, set, delete",
		Long:  reviewHelp,
		Example: `  countersign review list
  countersign review set 'payments:*' --approvals 2 --wait 1d --warn 1h
  countersign review delete 'payments:*'`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(reviewList(a), reviewSet(a), reviewDelete(a))
	return cmd
}

func reviewList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the review rules",
		Long:    "List the review rules. With --json it is one object a line.",
		Example: "  countersign review list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Reviews(ctx)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			rows := make([][]string, len(all))
			for i, r := range all {
				rows[i] = []string{r.Key, string(r.Risk), strconv.Itoa(r.Approvals), timeText(r.Wait), timeText(r.Warn), timeText(r.Escalate), r.UpdatedBy}
			}
			return command.Table(a.Out, []string{"KEY", "FROM RISK", "APPROVALS", "WAIT", "WARN", "ESCALATE", "SET BY"}, rows)
		}),
	}
}

// timeText shows a time of a rule; what it leaves to others is empty.
func timeText(d *envelope.Duration) string {
	switch {
	case d == nil:
		return ""
	case *d == 0:
		return "never"
	}
	return d.String()
}

const reviewSetHelp = `Set how people look at the actions that a key covers, from a risk on. What no
flag says stays as it is; in a new rule one person is enough, and the times are
left to other rules, as an empty one does. Times are such as 90s, 15m, 2h or 1d.

  --approvals 2   so many people must agree, at most 5
  --wait 1d       a decision is waited for that long, at most 30 days
  --warn 1h       so long before the end of that, an event warns; 0s is never
  --escalate 2h   after that long, an event says that more should know`

func reviewSet(a *command.App) *cobra.Command {
	var approvals int
	var risk, wait, warn, escalate string
	cmd := &cobra.Command{
		Use:   "set KEY",
		Short: "Set a review rule",
		Long:  reviewSetHelp,
		Example: `  countersign review set 'payments:*' --approvals 2 --wait 1d --warn 1h
  countersign review set '*' --risk high --approvals 2 --escalate 30m`,
		Args: command.Arguments(1, 1, "a key, such as mail:send or mail:*"),
	}
	flags := cmd.Flags()
	flags.StringVar(&risk, "risk", "", "for actions of this `risk` or a higher one: low (all), medium or high")
	flags.IntVar(&approvals, "approvals", 1, "so many `people` must agree")
	flags.StringVar(&wait, "wait", "", "wait for a decision for this `time`")
	flags.StringVar(&warn, "warn", "", "warn this `time` before the end of the wait")
	flags.StringVar(&escalate, "escalate", "", "escalate after this `time` of the wait")
	command.Fixed(cmd, "risk", "low", "medium", "high")
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		if err := command.OneOf("risk", risk, "low", "medium", "high"); err != nil {
			return err
		}
		times := make(map[string]*envelope.Duration)
		for flag, text := range map[string]string{"wait": wait, "warn": warn, "escalate": escalate} {
			if text == "" {
				continue
			}
			d, err := envelope.ParseDuration(text)
			if err != nil {
				return command.Misuse("--%s must be a time such as 90s, 15m, 2h or 1d", flag)
			}
			times[flag] = &d
		}
		r, err := reviewAs(ctx, c, args[0], envelope.Risk(cmp.Or(risk, "low")))
		if err != nil {
			return err
		}
		if flags.Changed("approvals") {
			r.Approvals = approvals
		}
		for flag, field := range map[string]**envelope.Duration{"wait": &r.Wait, "warn": &r.Warn, "escalate": &r.Escalate} {
			if flags.Changed(flag) {
				*field = times[flag]
			}
		}
		return a.Done(c.PutReview(ctx, r), "set the review of %s from risk %s on", r.Key, r.Risk)
	})
	return cmd
}

// reviewAs returns a rule as it is, or a new one that asks for one person.
func reviewAs(ctx context.Context, c *client.Client, key string, risk envelope.Risk) (client.Review, error) {
	all, err := c.Reviews(ctx)
	if err != nil {
		return client.Review{}, err
	}
	i := slices.IndexFunc(all, func(r client.Review) bool { return r.Key == key && r.Risk == risk })
	if i < 0 {
		return client.Review{Key: key, Risk: risk, Approvals: 1}, nil
	}
	was := all[i]
	return client.Review{Key: was.Key, Risk: was.Risk, Approvals: was.Approvals, Wait: was.Wait, Warn: was.Warn, Escalate: was.Escalate}, nil
}

func reviewDelete(a *command.App) *cobra.Command {
	var risk string
	cmd := &cobra.Command{
		Use:     "delete KEY",
		Short:   "Remove a review rule",
		Long:    "Remove a review rule. Actions that wait already keep the times they have.",
		Example: `  countersign review delete '*' --risk high`,
		Args:    command.Arguments(1, 1, "the key of a rule"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if err := command.OneOf("risk", risk, "low", "medium", "high"); err != nil {
				return err
			}
			return a.Done(c.DeleteReview(ctx, args[0], envelope.Risk(risk)), "removed the review of %s", args[0])
		}),
	}
	cmd.Flags().StringVar(&risk, "risk", "", "the rule's `risk`: low unless told otherwise")
	command.Fixed(cmd, "risk", "low", "medium", "high")
	return cmd
}
