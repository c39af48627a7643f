// Package approvals has the commands by which people decide about actions:
// inbox, approve, edit, deny, undo and review.
package approvals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const inboxHelp = `List what waits for a person, oldest first: actions to approve or deny, and
actions of which nobody knows whether they happened. It takes an operator's or a
viewer's token.

With --json it is one document, {"items": [...], "next_cursor": ...}. The "etag"
of an item goes with "approve --etag", which then approves nothing else.`

// Inbox returns the command inbox.
func Inbox(a *command.App) *cobra.Command {
	var limit int
	var cursor string
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List what waits for a person",
		Long:  inboxHelp,
		Example: `  countersign inbox
  countersign inbox --json | jq -r '.items[] | select(.risk == "low") | .action_id'`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			if limit < 1 || limit > 200 {
				return command.Misuse("--limit must be from 1 to 200")
			}
			page, err := c.Inbox(ctx, limit, cursor)
			if err != nil {
				return err
			}
			return showInbox(a, page, time.Now())
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many, at most 200")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on where the page before ended")
	return cmd
}

func showInbox(a *command.App, page client.Page[client.InboxItem], now time.Time) error {
	if a.JSON {
		return a.WriteJSON(page)
	}
	if len(page.Items) == 0 {
		a.Note("Nothing waits for a person.")
		return nil
	}
	rows := make([][]string, len(page.Items))
	for i, it := range page.Items {
		rows[i] = []string{it.ActionID.String(), it.Source + ":" + it.Tool, string(it.Risk), command.Local(&it.Since), left(it.ExpiresAt, now), waitsText(it), command.Compact(it.Args)}
	}
	if err := command.Table(a.Out, []string{"ID", "TOOL", "RISK", "SINCE", "LEFT", "WAITS FOR", "ARGUMENTS"}, rows); err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.Note("There are more: add --cursor %s", *page.NextCursor)
	}
	return nil
}

// waitsText says what something in the inbox waits for.
func waitsText(it client.InboxItem) string {
	if it.Kind == "compensation" {
		return "somebody to see to what could not be taken back: countersign batch show " + it.WorkflowID.String()
	}
	if it.Kind == "unknown" {
		return "somebody to find out whether it happened: countersign dlq resolve"
	}
	parts := []string{"approval"}
	if it.Needed > 1 {
		parts[0] = fmt.Sprintf("%d of %d approvals", it.Needed-it.Given, it.Needed)
	}
	if it.EditedBy != "" {
		parts = append(parts, "edited by "+it.EditedBy)
	}
	if it.Escalated {
		parts = append(parts, "escalated")
	}
	for _, text := range []string{it.Drift, it.Note} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// left is how much of the time to decide is left.
func left(until *time.Time, now time.Time) string {
	if until == nil {
		return ""
	}
	return max(0, until.Sub(now)).Round(time.Second).String()
}
