// Package limits has the commands for limits on actions: buckets, quiet hours,
// employees' trust, pauses, breakers, and all limits as one file.
package limits

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	restlimits "github.com/countersign-dev/countersign/internal/server/rest/limits"
)

// Command returns the command limits.
func Command(a *command.App) *cobra.Command {
	cmd := command.NewGroup("limits", session(a))
	cmd.AddCommand(a.NewDocumentCommands(command.Document{
		Get: (*client.Client).Limits, Put: (*client.Client).PutLimits, Validate: restlimits.CheckDocument,
	})...)
	return cmd
}

func session(a *command.App) *cobra.Command {
	const pendingFlag, minuteFlag = "pending", "per-minute"
	var pending, minute int
	cmd := command.New(a, "session", command.NoArguments(), nil)
	flags := cmd.Flags()
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
		settings, err := c.Settings(ctx)
		if err != nil {
			return err
		}
		if flags.Changed(pendingFlag) {
			settings.SessionPending = &pending
		}
		if flags.Changed(minuteFlag) {
			settings.SessionMinute = &minute
		}
		if flags.Changed(pendingFlag) || flags.Changed(minuteFlag) {
			if err := c.PutSettings(ctx, settings); err != nil {
				return err
			}
		}
		return a.Result(map[string]*int{"session_pending_max": settings.SessionPending, "session_minute_max": settings.SessionMinute}, "waiting for a person  %s\nproposed in a minute  %s\n", numberText(settings.SessionPending), numberText(settings.SessionMinute))
	})
	flags.IntVar(&pending, pendingFlag, 0, "maximum `number` of actions that wait for a person; 0 means no limit")
	flags.IntVar(&minute, minuteFlag, 0, "maximum `number` of proposals per minute; 0 means no limit")
	return cmd
}

func numberText(n *int) string {
	if n == nil || *n == 0 {
		return "any number"
	}
	return strconv.Itoa(*n)
}

// Breakers returns the command breaker.
func Breakers(a *command.App) *cobra.Command {
	return command.NewGroup("breaker", command.NewList(a, command.View[wire.Breaker]{
		Empty: "No breaker has opened so far.", Head: []string{"SOURCE", "STATE", "CAUSE", "SINCE", "UNTIL", "OPENINGS"},
		Row: func(b wire.Breaker) []string {
			return []string{b.Source, b.State, b.Cause, command.Local(&b.Since), command.Local(&b.OpenUntil), strconv.Itoa(b.Openings)}
		},
	}, (*client.Client).Breakers),
		command.NewChange(a, "reset SOURCE", "the id of a source", "reset the breaker of %s", (*client.Client).ResetBreaker))
}

// Employees returns the command employee.
func Employees(a *command.App) *cobra.Command {
	return command.NewGroup("employee", command.NewList(a, command.View[wire.Employee]{
		Empty: "No employee has settings, so trust and scopes limit nobody.", Head: []string{"EMPLOYEE", "NAME", "TRUST", "SCOPES"},
		Row: func(e wire.Employee) []string { return []string{e.ID, e.Name, e.Trust, strings.Join(e.Scopes, " ")} },
	}, (*client.Client).Employees),
		a.CreateFlag(employeeSet(a)),
		command.NewChange(a, "remove ID|default", "an employee's id, or the word default", "removed the settings of employee %s",
			(*client.Client).DeleteEmployee))
}

func employeeSet(a *command.App) *cobra.Command {
	var e wire.Employee
	cmd := command.New(a, "set ID|default", command.Arguments(1, 1, "an employee's id, or the word default"), func(ctx context.Context, c *client.Client, args []string) error {
		if _, err := uuid.Parse(args[0]); err != nil && args[0] != "default" {
			return command.Misuse("employee must be a UUID, or the word default")
		}
		if e.Trust == "" {
			return command.Misuse("--trust is required: none, low, medium or high")
		}
		return a.Done(c.PutEmployee(ctx, args[0], e), "set employee %s: trust %s, %s scope(s)", args[0], e.Trust, strconv.Itoa(len(e.Scopes)))
	})
	flags := cmd.Flags()
	command.EnumFlag(cmd, &e.Trust, "trust", "highest `risk` that runs without approval: none, low, medium or high (required)", "none", "low", "medium", "high")
	flags.StringArrayVar(&e.Scopes, "scope", nil, "give the employee this `scope`, such as contacts:write or 'contacts:*' (repeatable)")
	flags.StringVar(&e.Name, "name", "", "display `name`")
	return cmd
}

// Buckets returns the command bucket.
func Buckets(a *command.App) *cobra.Command {
	return command.NewGroup("bucket", command.NewList(a, bucketView(),
		(*client.Client).Buckets),
		bucketShow(a), a.CreateFlag(bucketSet(a)),
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
	if b.Permits != nil {
		parts = append(parts, fmt.Sprintf("%d permits now", *b.Permits))
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
	command.Flag(cmd, "rate", "text", "rate limit, as `n/interval` such as 30/1m", func(text string) (err error) {
		b.Rate = &wire.Rate{}
		limit, per, err := countPer(text, "30/1m")
		if err != nil {
			return err
		}
		b.Rate.Limit = limit
		b.Rate.Per, err = envelope.ParseDuration(per)
		return err
	})
	command.PositiveFlag(cmd, &burst, "burst", "number of actions that may start together after a quiet time; needs --rate")
	command.Flag(cmd, "calendar", "text", "calendar limit, as `n/period`; the period is hour, day, week or month", func(text string) (err error) {
		b.Calendar = &wire.Calendar{}
		b.Calendar.Limit, b.Calendar.Every, err = countPer(text, "500/day")
		return err
	})
	cmd.Flags().StringVar(&zone, "timezone", "", "time `zone` of the calendar, such as Europe/Berlin (default: the tenant's)")
	command.PositiveFlag(cmd, &concurrency, "concurrency", "maximum number of concurrent calls")
	return cmd
}

// countPer reads n/interval.
func countPer(text, example string) (n int, interval string, err error) {
	before, interval, ok := strings.Cut(text, "/")
	n, err = strconv.Atoi(before)
	if err != nil || !ok || n < 1 || interval == "" {
		return 0, "", fmt.Errorf("must be a number from 1, a slash and a duration, such as %s", example)
	}
	return n, interval, nil
}
