package actions

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const listHelp = `List actions, newest first. An agent's token sees those of its own session.

With --json it is one document, {"items": [...], "next_cursor": ...}; the cursor
gets the next page, and is null at the end.`

// List returns the command list.
func List(a *command.App) *cobra.Command {
	var f client.Filter
	var status, approval string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List actions",
		Long:  listHelp,
		Example: `  countersign list
  countersign list --approval required
  countersign list --status failed --tool send_email --limit 200
  countersign list --external-id welcome-4711 --json | jq '.items[0].phase'`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			f.Status, f.Approval = envelope.Status(status), envelope.Approval(approval)
			return runList(ctx, a, c, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&status, "status", "", "only those of this `status`: pending, sending, sent, conflict, failed, skipped or unknown")
	flags.StringVar(&approval, "approval", "", "only those of this `approval`: auto, required (waiting for a person), granted, denied or expired")
	flags.StringVar(&f.Tool, "tool", "", "only those of the tool of this `name`")
	flags.StringVar(&f.Source, "source", "", "only those of the source of this `id`")
	flags.StringVar(&f.Session, "session", "", "only those of this `session`")
	flags.StringVar(&f.ExternalID, "external-id", "", "only the one of this `name` of yours")
	flags.IntVar(&f.Limit, "limit", 50, "how many, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "go on where the page before ended")
	command.Fixed(cmd, "status", "pending", "sending", "sent", "conflict", "failed", "skipped", "unknown")
	command.Fixed(cmd, "approval", "auto", "required", "granted", "denied", "expired")
	return cmd
}

func runList(ctx context.Context, a *command.App, c *client.Client, f client.Filter) error {
	if f.Status != "" && !f.Status.Valid() {
		return command.Misuse("--status must be pending, sending, sent, conflict, failed, skipped or unknown")
	}
	if err := command.OneOf("approval", string(f.Approval), "auto", "required", "granted", "denied", "expired"); err != nil {
		return err
	}
	if f.Limit < 1 || f.Limit > 200 {
		return command.Misuse("--limit must be from 1 to 200")
	}
	page, err := c.Actions(ctx, f)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(page)
	}
	if len(page.Items) == 0 {
		a.Note("There are none.")
		return nil
	}
	if err := actionTable(a.Out, page.Items); err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.Note("There are more: add --cursor %s", *page.NextCursor)
	}
	return nil
}
