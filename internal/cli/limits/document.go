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
