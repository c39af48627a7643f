package limits

import (
	"cmp"
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
	return command.NewGroup("bucket", command.NewList(a, bucketView(),
		(*client.Client).Buckets),
		bucketShow(a), bucketSet(a),
		command.NewChange(a, "retire NAME", "the name of a bucket", "retired bucket %s", (*client.Client).RetireBucket),
		command.NewChange(a, "reopen NAME", "the name of a bucket", "reopened bucket %s", (*client.Client).ReopenBucket))
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
	if b.Concurrency != nil {
		parts = append(parts, fmt.Sprintf("%d at once", *b.Concurrency))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func usedText(b wire.BucketState) string {
	var parts []string
	if b.CalendarUsed != nil {
		parts = append(parts, fmt.Sprintf("%d this %s", *b.CalendarUsed, b.Calendar.Every))
	}
	if b.Concurrency != nil {
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
	return command.New(a, "show NAME", command.Arguments(1, 1, "the name of a bucket"), func(ctx context.Context, c *client.Client, args []string) error {
		b, err := c.Bucket(ctx, args[0])
		if err != nil {
			return err
		}
		return bucketView().Show(a)([]wire.BucketState{b}, nil)
	})
}

func bucketSet(a *command.App) *cobra.Command {
	var b wire.Bucket
	var burst, concurrency int
	var zone string
	cmd := command.New(a, "set NAME", command.Arguments(1, 1, "the name of a bucket"), func(ctx context.Context, c *client.Client, args []string) error {
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
		if concurrency > 0 {
			b.Concurrency = &concurrency
		}
		return a.Done(c.PutBucket(ctx, args[0], b), "set bucket %s: %s", args[0], limitsText(b))
	})
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
	command.PositiveFlag(cmd, &concurrency, "concurrency", "how many calls may be open at once")
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
