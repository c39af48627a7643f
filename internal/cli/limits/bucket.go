package limits

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Buckets returns the command bucket.
func Buckets(a *command.App) *cobra.Command {
	return command.NewGroup("bucket", "Set how fast actions may go: list, show, set, retire, reopen",
		`A bucket is a limit that actions share, over all workers: so many per minute, so
many a day, so many at once. An action names its bucket in
constraints.rate_bucket; what names none is in the bucket "default".

To look takes an operator's token, to set limits an administrator's.`,
		`  countersign bucket list
  countersign bucket set slack.minute --rate 50/1m --burst 5
  countersign bucket set email.daily --calendar 500/day --timezone Europe/Berlin`,
		command.NewList(a, command.Help{Short: "List the buckets with what is used of them", Example: "  countersign bucket list"}, bucketView(),
			func(ctx context.Context, c *client.Client) ([]wire.BucketState, error) { return c.Buckets(ctx) }),
		bucketShow(a), bucketSet(a),
		command.NewChange(a, "retire NAME", command.Help{
			Short:   "Close a bucket for new actions",
			Long:    "Close a bucket for new actions. What is in it goes out within its limits.\n\"bucket set\" takes it into use again.",
			Example: "  countersign bucket retire email.daily",
		}, "the name of a bucket", "retired bucket %s", func(ctx context.Context, c *client.Client, name string) error { return c.RetireBucket(ctx, name) }),
		command.NewChange(a, "reopen NAME", command.Help{
			Short: "End a hold that a provider put on a bucket",
			Long: `End the hold that a provider's Retry-After put on a bucket. Do it when you know
better than the provider; the bucket's own limits hold on. For a pause, use
"countersign resume".`,
			Example: "  countersign bucket reopen slack.minute",
		}, "the name of a bucket", "reopened bucket %s", func(ctx context.Context, c *client.Client, name string) error { return c.ReopenBucket(ctx, name) }))
}

func bucketView() command.View[wire.BucketState] {
	return command.View[wire.BucketState]{
		Head: []string{"BUCKET", "LIMITS", "USED", "DUE", "WAITING", "STATE"},
		Row: func(b wire.BucketState) []string {
			return []string{b.Name, limitsText(b.Bucket), usedText(b), countText(b.Due), countText(b.Waiting), stateText(b)}
		},
	}
}

// limitsText writes a bucket's limits as `bucket set` takes them.
func limitsText(b wire.Bucket) string {
	var parts []string
	if r := b.Rate; r != nil {
		parts = append(parts, fmt.Sprintf("%d/%s", r.Limit, r.Per))
		if r.Burst > 1 {
			parts = append(parts, fmt.Sprintf("burst %d", r.Burst))
		}
	}
	if c := b.Calendar; c != nil {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d/%s %s", c.Limit, c.Every, c.Timezone)))
	}
	if b.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("%d at once", b.Concurrency))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func usedText(b wire.BucketState) string {
	var parts []string
	if b.CalendarUsed != nil {
		parts = append(parts, fmt.Sprintf("%d this %s", *b.CalendarUsed, b.Calendar.Every))
	}
	if b.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("%d being called", b.InUse))
	}
	if b.Tokens != nil {
		parts = append(parts, fmt.Sprintf("%d may go now", *b.Tokens))
	}
	return strings.Join(parts, ", ")
}

// countText writes a count, which the server stops at 100,000.
func countText(n int64) string {
	const maxCount = 100_000
	if n >= maxCount {
		return fmt.Sprintf("%d+", maxCount)
	}
	return strconv.FormatInt(n, 10)
}

func stateText(b wire.BucketState) string {
	switch {
	case b.RetiredAt != nil:
		return "retired"
	case b.Paused:
		return "paused"
	case b.ClosedUntil != nil:
		return "held until " + command.Local(b.ClosedUntil) + " (" + b.ClosedBy + ")"
	case b.OpensAt != nil:
		return "used up until " + command.Local(b.OpensAt)
	}
	return "open"
}

func bucketShow(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a bucket with what is used of it",
		Long:    "Show a bucket with what is used of it, and when the next action may go.",
		Example: "  countersign bucket show email.daily",
		Args:    command.Arguments(1, 1, "the name of a bucket"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			b, err := c.Bucket(ctx, args[0])
			if err != nil {
				return err
			}
			return bucketView().Show(a, []wire.BucketState{b})
		}),
	}
}

func bucketSet(a *command.App) *cobra.Command {
	var b wire.Bucket
	var burst int
	var zone string
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a bucket, or replace its limits",
		Long: `Make a bucket, or replace its limits. What no flag says is no limit, so name all
that shall hold. Workers apply the limits within a second, also to what waits
already. To stop a bucket use "countersign pause --bucket".

  --rate 30/1m        so many per interval, evenly apart; in ms, s, m, h or d
  --burst 5           so many may go at once after a time without any
  --calendar 500/day  so many per hour, day, week or month of the calendar
  --concurrency 4     so many calls may be open at once`,
		Example: `  countersign bucket set slack.minute --rate 50/1m --burst 5
  countersign bucket set email.daily --calendar 500/day --timezone Europe/Berlin
  countersign bucket set tickets.api --concurrency 4
  countersign bucket set free`,
		Args: command.Arguments(1, 1, "the name of a bucket"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			switch {
			case burst > 0 && b.Rate == nil:
				return command.Misuse("--burst needs --rate")
			case zone != "" && b.Calendar == nil:
				return command.Misuse("--timezone needs --calendar")
			case b.Rate != nil:
				b.Rate.Burst = burst
			}
			if b.Calendar != nil {
				b.Calendar.Timezone = zone
			}
			return a.Done(c.PutBucket(ctx, args[0], b), "set bucket %s: %s", args[0], limitsText(b))
		}),
	}
	command.Flag(cmd, "rate", "text", "at most this `n/interval`, such as 30/1m", func(text string) (err error) {
		b.Rate = &wire.Rate{}
		limit, per, err := countPer(text, "30/1m")
		if err != nil {
			return err
		}
		b.Rate.Limit = limit
		b.Rate.Per, err = envelope.ParseDuration(per)
		return err
	})
	command.PositiveFlag(cmd, &burst, "burst", "how many may go at once; needs --rate")
	command.Flag(cmd, "calendar", "text", "at most this `n/period`, the period hour, day, week or month", func(text string) (err error) {
		b.Calendar = &wire.Calendar{}
		b.Calendar.Limit, b.Calendar.Every, err = countPer(text, "500/day")
		return err
	})
	cmd.Flags().StringVar(&zone, "timezone", "", "the calendar's `zone`, such as Europe/Berlin (default the tenant's)")
	command.PositiveFlag(cmd, &b.Concurrency, "concurrency", "how many calls may be open at once")
	return cmd
}

// countPer reads n/interval.
func countPer(text, example string) (n int, interval string, err error) {
	before, interval, ok := strings.Cut(text, "/")
	n, err = strconv.Atoi(before)
	if err != nil || !ok || n < 1 || interval == "" {
		return 0, "", fmt.Errorf("must be a number from 1 on, a slash and a time, such as %s", example)
	}
	return n, interval, nil
}
