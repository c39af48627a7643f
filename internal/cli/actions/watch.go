package actions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Watch returns the command watch.
func Watch(a *command.App) *cobra.Command {
	var since string
	var only client.EventFilter
	cmd := command.New(a, "watch", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error { return runWatch(ctx, a, c, since, only) })
	cmd.Flags().StringVar(&since, "since", "", "continue after this event `id`; \"start\" shows all events that are kept")
	cmd.Flags().StringSliceVar(&only.Kinds, "kind", nil, "filter by event `kinds`, comma-separated")
	cmd.Flags().StringVar(&only.Action, "action-id", "", "filter by action `id`")
	cmd.Flags().StringVar(&only.Session, "session-id", "", "filter by `session`")
	cmd.Flags().StringVar(&only.Tool, "tool", "", "filter by `tool`, as source:name; either part may be *")
	return cmd
}

func runWatch(ctx context.Context, a *command.App, c *client.Client, since string, only client.EventFilter) error {
	if since == "start" {
		since = client.FromStart
	}
	first := true
	last, err := c.Follow(ctx, since, client.Watcher{
		Only:  only,
		Event: func(e wire.Event) error { return showEvent(a, e) },
		Opened: func(string) {
			if first {
				a.Note("Watching %s; Ctrl-C ends it.", c)
			} else {
				a.Note("Reconnected.")
			}
			first = false
		},
		Lost: func(err error, again time.Duration) {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server ended the stream")
			}
			a.Note("Connection lost: %v. Reconnecting in %s.", err, again.Round(100*time.Millisecond))
		},
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if last != "" {
			a.Note("To continue from here: countersign watch --since %s", last)
		}
		return nil
	}
	return err
}

// showEvent writes an event: one object, or one line.
func showEvent(a *command.App, e wire.Event) error {
	if a.JSON {
		return a.WriteJSON(e)
	}
	about := e.ActionID.String()
	if e.Kind == "configured" {
		about = strings.Repeat("-", len(about))
	}
	what := string(e.Phase)
	if e.Status != "" {
		what = strings.TrimSpace(what + " " + string(e.Status))
	}
	if e.Attempt > 0 {
		what += fmt.Sprintf(", try %d", e.Attempt)
	}
	if e.Code != "" {
		what += ", " + e.Code
	}
	if e.Subject != "" {
		what += " " + e.Subject
	}
	if e.Note != "" {
		what += ", " + e.Note
	}
	if e.Tool != "" {
		what += "  " + e.Tool
	}
	return a.Print("%s  %-10s  %s  %s  (%s)\n", e.At.Local().Format("15:04:05.000"), command.Line(e.Kind), about, command.Line(strings.TrimSpace(what)), command.Line(e.Actor.Brief()))
}
