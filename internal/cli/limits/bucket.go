package limits

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

const bucketHelp = `A bucket is a pace that actions keep to together, over the whole fleet: so many
per minute, so many a day, so many at once. An action names its bucket in
constraints.rate_bucket; what names none is in the bucket "default".

To look takes an operator's token, to set limits an administrator's.`

// Buckets returns the command bucket.
func Buckets(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bucket",
		Short: "Set how fast actions may go: list, show, set, retire, reopen",
		Long:  bucketHelp,
		Example: `  countersign bucket list
  countersign bucket set slack.minute --rate 50/1m --burst 5
  countersign bucket set email.daily --calendar 500/day --timezone Europe/Berlin`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(bucketList(a), bucketShow(a), bucketSet(a), bucketRetire(a), bucketReopen(a))
	return cmd
}

func bucketList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the buckets with what is used of them",
		Long:    "List the buckets with what is used of them. With --json it is one object a line.",
		Example: "  countersign bucket list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Buckets(ctx)
			if err != nil {
				return err
			}
			return showBuckets(a, all)
		}),
	}
}

func showBuckets(a *command.App, all []limits.BucketState) error {
	if a.JSON {
		return command.WriteJSONLines(a, all)
	}
	rows := make([][]string, len(all))
	for i, b := range all {
		rows[i] = []string{b.Name, limitsText(b.Bucket), usedText(b), countText(b.Due), countText(b.Waiting), stateText(b)}
	}
	return command.Table(a.Out, []string{"BUCKET", "LIMITS", "USED", "DUE", "WAITING", "STATE"}, rows)
}

// limitsText writes a bucket's limits as `bucket set` takes them.
func limitsText(b limits.Bucket) string {
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

func usedText(b limits.BucketState) string {
	var parts []string
	if b.CalendarUsed != nil {
		parts = append(parts, fmt.Sprintf("%d this %s", *b.CalendarUsed, b.Calendar.Every))
	}
	if b.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("%d on their way", b.InUse))
	}
	if b.Tokens != nil {
		parts = append(parts, fmt.Sprintf("%d may go now", *b.Tokens))
	}
	return strings.Join(parts, ", ")
}

// countText writes a count that may have stopped.
func countText(n int64) string {
	if n >= limits.MaxCount {
		return fmt.Sprintf("%d+", limits.MaxCount)
	}
	return strconv.FormatInt(n, 10)
}

func stateText(b limits.BucketState) string {
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
		Use:     "show NAME",
		Short:   "Show a bucket with what is used of it",
		Long:    "Show a bucket with what is used of it, and when the next action may go.",
		Example: "  countersign bucket show email.daily",
		Args:    command.Arguments(1, 1, "the name of a bucket"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			b, err := c.Bucket(ctx, args[0])
			if err != nil {
				return err
			}
			return showBuckets(a, []limits.BucketState{b})
		}),
	}
}

const bucketSetHelp = `Make a bucket, or set its limits anew. What no flag says is no limit, so name
all that shall hold. The whole fleet keeps to it from its next look on, also
with what waits already.

  --rate 30/1m        so many per interval, evenly apart; in ms, s, m, h or d
  --burst 5           so many may go at once after a time without any
  --calendar 500/day  so many per hour, day, week or month of the calendar
  --concurrency 4     so many may be on their way at once`

func bucketSet(a *command.App) *cobra.Command {
	var rate, calendar, zone string
	var b limits.Bucket
	var burst int
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a bucket, or set its limits anew",
		Long:  bucketSetHelp,
		Example: `  countersign bucket set slack.minute --rate 50/1m --burst 5
  countersign bucket set email.daily --calendar 500/day --timezone Europe/Berlin
  countersign bucket set tickets.api --concurrency 4
  countersign bucket set free`,
		Args: command.Arguments(1, 1, "the name of a bucket"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			b.Name = args[0]
			if err := readLimits(&b, rate, burst, calendar, zone); err != nil {
				return err
			}
			if err := b.Validate(); err != nil {
				return command.Misuse("%s", command.FieldsText(err))
			}
			return a.Done(c.PutBucket(ctx, b), "set bucket %s: %s", b.Name, limitsText(b))
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&rate, "rate", "", "at most this `n/interval`, such as 30/1m")
	flags.IntVar(&burst, "burst", 0, "how many may go at once; needs --rate")
	flags.StringVar(&calendar, "calendar", "", "at most this `n/period`, the period hour, day, week or month")
	flags.StringVar(&zone, "timezone", "", "the calendar's `zone`, such as Europe/Berlin (default the tenant's)")
	flags.IntVar(&b.Concurrency, "concurrency", 0, "how many may be on their way at once")
	return cmd
}

// readLimits reads what flags say of a bucket.
func readLimits(b *limits.Bucket, rate string, burst int, calendar, zone string) error {
	if rate != "" {
		n, per, err := split("rate", rate, "30/1m")
		if err != nil {
			return err
		}
		interval, err := envelope.ParseDuration(per)
		if err != nil {
			return command.Misuse("--rate: %v", err)
		}
		b.Rate = &limits.Rate{Limit: n, Per: interval, Burst: burst}
	} else if burst != 0 {
		return command.Misuse("--burst needs --rate")
	}
	if calendar != "" {
		n, period, err := split("calendar", calendar, "500/day")
		if err != nil {
			return err
		}
		b.Calendar = &limits.Calendar{Limit: n, Every: limits.Period(period), Timezone: zone}
	} else if zone != "" {
		return command.Misuse("--timezone needs --calendar")
	}
	return nil
}

// split reads n/text.
func split(flag, text, example string) (n int, rest string, err error) {
	before, rest, ok := strings.Cut(text, "/")
	n, err = strconv.Atoi(before)
	if err != nil || !ok {
		return 0, "", command.Misuse("--%s must be a number, a slash and a time, such as %s", flag, example)
	}
	return n, rest, nil
}

func bucketRetire(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "retire NAME",
		Short: "Let no new actions into a bucket",
		Long: `Let no new actions into a bucket. What is in it goes out within its limits.
"bucket set" takes it into use again.`,
		Example: "  countersign bucket retire email.daily",
		Args:    command.Arguments(1, 1, "the name of a bucket"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.RetireBucket(ctx, args[0]), "retired bucket %s", args[0])
		}),
	}
}

func bucketReopen(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "reopen NAME",
		Short: "End a hold that a provider put on a bucket",
		Long: `End the hold that a provider's Retry-After put on a bucket. Do it when you know
better than the provider; the bucket's own limits hold on. For a pause, use
"countersign resume".`,
		Example: "  countersign bucket reopen slack.minute",
		Args:    command.Arguments(1, 1, "the name of a bucket"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.ReopenBucket(ctx, args[0]), "reopened bucket %s", args[0])
		}),
	}
}
