package top

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Workers returns the command workers.
func Workers(a *command.App) *cobra.Command {
	return command.New(a, "workers", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return command.View[wire.Worker]{
			Empty: "No worker runs, so nothing is sent.", Head: []string{"WORKER", "STATE", "IN FLIGHT", "HOST", "VERSION", "STARTED", "SEEN"},
			Row: func(w wire.Worker) []string {
				return []string{w.Name, workerState(w), workerLoad(w), w.Host, w.Version, command.Local(&w.Started), command.Local(&w.Seen)}
			},
		}.Show(a)(c.Workers(ctx))
	})
}

func workerState(w wire.Worker) string {
	switch {
	case w.Refuses != "":
		return "claims nothing: " + w.Refuses
	case w.Draining:
		return "draining"
	}
	return "working"
}

func workerLoad(w wire.Worker) string {
	if w.Concurrency == 0 {
		return "-"
	}
	return strconv.Itoa(w.InFlight) + " of " + strconv.Itoa(w.Concurrency)
}

// Activity returns the command activity.
func Activity(a *command.App) *cobra.Command {
	r := client.ActivityRange{Step: wire.StepFiveMinutes}
	cmd := command.New(a, "activity", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		got, err := c.Activity(ctx, r)
		return command.View[wire.ActivityPoint]{
			Empty: "No worker took a sample in this time.",
			Head:  []string{"FROM", "WORKERS", "DUE", "SCHEDULED", "IN FLIGHT", "FOR PEOPLE", "OLDEST DUE", "ENDED"},
			Row: func(p wire.ActivityPoint) []string {
				ended := int64(0)
				for _, e := range p.Ended {
					ended += e.Actions
				}
				n := func(n int64) string { return strconv.FormatInt(n, 10) }
				return []string{p.At.Local().Format(time.DateTime), n(p.Workers), n(p.Due), n(p.Scheduled), n(p.InFlight), n(p.Undecided), age(p.OldestDue), n(ended)}
			},
		}.Show(a)(got.Items, err)
	})
	command.RangeFlags(cmd, &r.Since, &r.Until, "samples")
	command.EnumFlag(cmd, &r.Step, "step", "`length` of a step: 1m, 5m, 15m or 1h", "1m", "5m", "15m", "1h")
	return cmd
}
