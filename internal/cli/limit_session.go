package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
)

const limitsSessionHelp = `See or set how much one session of an agent may propose, on all replicas
together: how many of its actions may wait for a person at a time, and how many
it may propose in a minute that begins with the first. 0 is any number. Who
meets a limit is told when to try again (HTTP 429 with Retry-After).

An agent's token always has a session; what is proposed without one, by a person
or a program of yours, is not counted. Setting takes an administrator's token.`

func (a *app) limitsSession() *cobra.Command {
	const pendingFlag, minuteFlag = "pending", "per-minute"
	var pending, minute int
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:     "session",
		Short:   "See or set how much one session of an agent may propose",
		Long:    limitsSessionHelp,
		Example: "  countersign limits session\n  countersign limits session --pending 25 --per-minute 0",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			settings, err := c.Settings(ctx)
			if err != nil {
				return err
			}
			flags := cmd.Flags()
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
			return a.showSession(settings.SessionPending, settings.SessionMinute)
		}),
	}
	cmd.Flags().IntVar(&pending, pendingFlag, 0, "how many actions may wait for a person, `N`; 0 is any number")
	cmd.Flags().IntVar(&minute, minuteFlag, 0, "how many actions may be proposed in a minute, `N`; 0 is any number")
	return cmd
}

func (a *app) showSession(pending, minute *int) error {
	if a.json {
		return a.document(map[string]*int{"session_pending_max": pending, "session_minute_max": minute})
	}
	text := func(n *int) string {
		if n == nil || *n == 0 {
			return "any number"
		}
		return strconv.Itoa(*n)
	}
	if _, err := fmt.Fprintf(a.sys.Out, "waiting for a person  %s\nproposed in a minute  %s\n", text(pending), text(minute)); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
