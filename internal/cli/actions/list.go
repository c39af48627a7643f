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
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List actions",
		Long: `List actions, newest first. An agent's token sees those of its own session.

With --json it is one document, {"items": [...], "next_cursor": ...}; the cursor
gets the next page, and is null at the end.`,
		Example: `  countersign list
  countersign list --approval required
  countersign list --status failed --tool send_email --limit 200
  countersign list --external-id welcome-4711 --json | jq '.items[0].phase'`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			page, err := c.Actions(ctx, f)
			if err != nil {
				return err
			}
			return actionView().ShowPage(a, page)
		}),
	}
	flags := cmd.Flags()
	command.EnumFlag(cmd, &f.Status, "status", "only those of this `status`: pending, sending, sent, conflict, failed, skipped or unknown",
		"pending", "sending", "sent", "conflict", "failed", "skipped", "unknown")
	command.EnumFlag(cmd, &f.Approval, "approval", "only those of this `approval`: auto, required (waiting for a person), granted, denied or expired",
		"auto", "required", "granted", "denied", "expired")
	flags.StringVar(&f.Tool, "tool", "", "only those of the tool of this `name`")
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
