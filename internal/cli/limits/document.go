// Package limits has the commands for what bounds actions: buckets, quiet hours,
// employees' trust, pauses, breakers, and all limits as one file.
package limits

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	restlimits "github.com/countersign-dev/countersign/internal/server/rest/limits"
)

// Command returns the command limits.
func Command(a *command.App) *cobra.Command {
	cmd := command.NewGroup("limits", "Keep all limits in a file: show, check, apply",
		`All limits as one document, to be kept in a file beside the code: buckets, quiet
hours, employees, tools and the tenant's settings. The do-not-contact list and
pauses are not in it.

A section that the file leaves out is left alone. One that it has is made to be
exactly that: what is missing from it is removed, and buckets are retired.`,
		`  countersign limits show > limits.yaml
  countersign limits check -f limits.yaml
  countersign limits apply -f limits.yaml
  countersign limits apply -f limits.yaml --apply`,
		session(a))
	cmd.AddCommand(a.NewDocumentCommands(command.Document{
		Show: command.Help{
			Short: "Write all limits as a file",
			Long: "Write all limits in YAML, or with --json in JSON. \"limits apply\" of it changes\n" +
				"nothing. It takes an operator's token.",
			Example: "  countersign limits show > limits.yaml",
		},
		Check: command.Help{
			Short: "Check a file of limits without a server",
			Long: `Check a file of limits, in YAML or JSON, without a server. What is wrong is
named as file:line:column with the field. Whether a bucket or a tool that it
names exists, only "limits apply" can tell.`,
			Example: "  countersign limits check -f limits.yaml",
		},
		Apply: command.Help{
			Short: "Set the limits to what a file says; a dry run without --apply",
			Long: `Set the limits to what a file says, all of it or nothing. Without --apply it is
a dry run: it shows what would change, and changes nothing. It takes an
administrator's token.`,
			Example: "  countersign limits apply -f limits.yaml\n  countersign limits apply -f limits.yaml --apply",
		},
		Get: (*client.Client).Limits, Put: (*client.Client).PutLimits, Validate: restlimits.CheckDocument,
	})...)
	return cmd
}

func session(a *command.App) *cobra.Command {
	const pendingFlag, minuteFlag = "pending", "per-minute"
	var pending, minute int
	cmd := &cobra.Command{
		Use:   "session",
		Short: "See or set how much one session of an agent may propose",
		Long: `See or set how much one session of an agent may propose, on all replicas
together: how many of its actions may wait for a person at a time, and how many
it may propose in a minute that begins with the first. 0 is any number. Who
reaches a limit is told when to try again (HTTP 429 with Retry-After).

An agent's token always has a session; what is proposed without one, by a person
or a program of yours, is not counted. Setting takes an administrator's token.`,
		Example: "  countersign limits session\n  countersign limits session --pending 25 --per-minute 0",
		Args:    command.Arguments(0, 0, ""),
	}
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
		if a.JSON {
			return a.WriteJSON(map[string]*int{"session_pending_max": settings.SessionPending, "session_minute_max": settings.SessionMinute})
		}
		return a.Print("waiting for a person  %s\nproposed in a minute  %s\n", numberText(settings.SessionPending), numberText(settings.SessionMinute))
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
