// Package limits has the commands for what bounds actions: buckets, quiet hours,
// employees' trust, pauses, breakers, and all limits as one file.
package limits

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
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
	flags.IntVar(&pending, pendingFlag, 0, "how many actions may wait for a person, `N`; 0 is any number")
	flags.IntVar(&minute, minuteFlag, 0, "how many actions may be proposed in a minute, `N`; 0 is any number")
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
		Empty: "Nothing is set for any employee: trust and scopes bind nobody.", Head: []string{"EMPLOYEE", "NAME", "TRUST", "SCOPES"},
		Row: func(e wire.Employee) []string { return []string{e.ID, e.Name, e.Trust, strings.Join(e.Scopes, " ")} },
	}, (*client.Client).Employees),
		employeeSet(a),
		command.NewChange(a, "remove ID|default", "an employee's id, or the word default", "removed what was set for the employee %s",
			(*client.Client).DeleteEmployee))
}

func employeeSet(a *command.App) *cobra.Command {
	var e wire.Employee
	cmd := command.New(a, "set ID|default", command.Arguments(1, 1, "an employee's id, or the word default"), func(ctx context.Context, c *client.Client, args []string) error {
		if _, err := uuid.Parse(args[0]); err != nil && args[0] != "default" {
			return command.Misuse("an employee is a UUID, or the word default")
		}
		if e.Trust == "" {
			return command.Misuse("--trust is required: none, low, medium or high")
		}
		return a.Done(c.PutEmployee(ctx, args[0], e), "set employee %s: trust %s, %s scope(s)", args[0], e.Trust, strconv.Itoa(len(e.Scopes)))
	})
	flags := cmd.Flags()
	command.EnumFlag(cmd, &e.Trust, "trust", "the highest `risk` that runs without a person: none, low, medium or high (required)", "none", "low", "medium", "high")
	flags.StringArrayVar(&e.Scopes, "scope", nil, "a `scope` that it has, such as contacts:write or 'contacts:*' (may be given again)")
	flags.StringVar(&e.Name, "name", "", "a `name` for people")
	return cmd
}
