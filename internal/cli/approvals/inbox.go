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
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Inbox returns the command inbox.
func Inbox(a *command.App) *cobra.Command {
	var limit int
	var cursor string
	cmd := command.New(a, "inbox", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		page, err := c.Inbox(ctx, limit, cursor)
		if err != nil {
			return err
		}
		now := time.Now()
		return command.View[wire.InboxItem]{
			Empty: "Nothing waits for a person.", Head: []string{"ID", "TOOL", "RISK", "SINCE", "LEFT", "WAITS FOR", "ARGUMENTS"},
			Row: func(it wire.InboxItem) []string {
				return []string{
					it.ActionID.String(), it.Tool, string(it.Risk), command.Local(&it.Since), timeLeft(it.ExpiresAt, now),
					waitsText(it), command.Compact(it.Args),
				}
			},
		}.ShowPage(a)(page, nil)
	})
	command.PageFlags(cmd, &limit, &cursor)
	return cmd
}

// waitsText says what an item of the inbox waits for.
func waitsText(it wire.InboxItem) string {
	switch it.Kind {
	case wire.InboxCompensation:
		return "a failed reversal: countersign workflow show " + it.WorkflowID.String()
	case wire.InboxUnknown:
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

// timeLeft shows how much of the time to decide is left.
func timeLeft(until *time.Time, now time.Time) string {
	if until == nil {
		return ""
	}
	return max(0, until.Sub(now)).Round(time.Second).String()
}
