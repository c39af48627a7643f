package actions

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// List returns the command list.
func List(a *command.App) *cobra.Command {
	var f client.ActionFilter
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return actionView().ShowPage(a)(c.Actions(ctx, f))
	})
	flags := cmd.Flags()
	command.EnumFlag(cmd, &f.Status, "status", "only those of this `status`: pending, sending, sent, conflict, failed, skipped or unknown",
		"pending", "sending", "sent", "conflict", "failed", "skipped", "unknown")
	command.EnumFlag(cmd, &f.Approval, "approval", "only those of this `approval`: auto, required (waiting for a person), granted, denied or expired",
		"auto", "required", "granted", "denied", "expired")
	command.ToolFlag(cmd, &f.Tool)
	flags.StringVar(&f.Source, "source", "", "only those of the source of this `id`")
	flags.StringVar(&f.Session, "session-id", "", "only those of this `session`")
	flags.StringVar(&f.ExternalID, "external-id", "", "only the one of this `name` of yours")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

// actionView shows actions, one a line.
func actionView() command.View[wire.Action] {
	return command.View[wire.Action]{
		Empty: "There are none.", Head: []string{"ID", "TOOL", "PHASE", "STATUS", "TRIES", "PROPOSED", "EXTERNAL ID"},
		Row: func(a wire.Action) []string {
			e := a.Envelope
			return []string{
				e.ActionID.String(), toolName(e.Tool), string(a.Phase), string(e.Result.Status), strconv.Itoa(e.Result.Attempts),
				command.Local(&e.Timestamps.CreatedAt), e.ExternalID,
			}
		},
	}
}
