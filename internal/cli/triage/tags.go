package triage

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func tags(a *command.App) *cobra.Command {
	return command.NewGroup("tags", availableActions(a), listTags(a), tries(a), setTag(a), removeTag(a), retryTag(a))
}

func availableActions(a *command.App) *cobra.Command {
	return command.New(a, "available [ACCOUNT]", command.Arguments(0, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		return command.View[wire.TriageAction]{
			Empty: "No accounts; add one with `countersign triage accounts set`.", Head: []string{"ACCOUNT", "ACTION", "TOOL", "STATE", "DESCRIPTION"},
			Row: func(t wire.TriageAction) []string {
				return []string{t.Account, t.Name, t.Source + ":" + t.Tool, t.State, t.Description}
			},
		}.Show(a)(c.TriageActions(ctx, command.Argument(args, 0)))
	})
}

func listTags(a *command.App) *cobra.Command {
	var f client.TriageTagFilter
	var message string
	cmd := command.New(a, "list [ACCOUNT]", command.Arguments(0, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		if err := narrow(ctx, c, &f, args, message); err != nil {
			return err
		}
		return command.View[wire.TriageTag]{
			Empty: "No matching tags.", Head: []string{"MESSAGE", "ACTION", "STATE", "FAILURES", "TAGGED", "BY", "SUBJECT", "PROBLEM"},
			Row: func(t wire.TriageTag) []string {
				return []string{t.MessageID.String(), t.Action, t.State, fmt.Sprint(t.Failures), command.Local(&t.TaggedAt), t.TaggedBy, subject(t.Subject), t.Problem}
			},
		}.ShowPage(a)(c.TriageTags(ctx, f))
	})
	filterFlags(cmd, &f, &message)
	command.EnumFlag(cmd, &f.State, "state", "filter by `state`: due, open, skipped, leaving, gone or any", "due", "open", "skipped", "leaving", "gone", "any")
	return cmd
}

func tries(a *command.App) *cobra.Command {
	var f client.TriageTagFilter
	var message string
	cmd := command.New(a, "log [ACCOUNT]", command.Arguments(0, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		if err := narrow(ctx, c, &f, args, message); err != nil {
			return err
		}
		return command.View[wire.TriageTry]{
			Empty: "No matching tries.", Head: []string{"ID", "ENDED", "ACTION", "TRY", "STATUS", "TOOL", "SUBJECT", "ERROR"},
			Row: func(t wire.TriageTry) []string {
				return []string{t.ID.String(), command.Local(&t.ProcessedAt), t.Action, fmt.Sprint(t.Try), t.Status, t.Source + ":" + t.Tool, subject(t.Subject), t.Error}
			},
		}.ShowPage(a)(c.TriageTries(ctx, f))
	})
	filterFlags(cmd, &f, &message)
	command.EnumFlag(cmd, &f.Status, "status", "filter by `status`: success, failed or skipped", "success", "failed", "skipped")
	return cmd
}

// filterFlags adds the flags of lists of tags.
func filterFlags(cmd *cobra.Command, f *client.TriageTagFilter, message *string) {
	cmd.Flags().StringVar(message, "message", "", "filter by the `message`'s id or Message-ID")
	cmd.Flags().StringVar(&f.Action, "action", "", "filter by `action`")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
}

// narrow sets the account and the message of a filter.
func narrow(ctx context.Context, c *client.Client, f *client.TriageTagFilter, args []string, message string) (err error) {
	f.Account = command.Argument(args, 0)
	if message != "" {
		f.Message, err = find(ctx, c, message)
	}
	return err
}

// subject returns a subject, or a mark for callers who may not read it.
func subject(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

func setTag(a *command.App) *cobra.Command {
	return command.New(a, "set MESSAGE ACTION", command.Arguments(2, 2, "a message's id or its Message-ID, and an action"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := find(ctx, c, args[0])
		if err != nil {
			return err
		}
		return command.Show(a, showTag)(c.SetTriageTag(ctx, id, args[1]))
	})
}

func removeTag(a *command.App) *cobra.Command {
	return command.New(a, "remove MESSAGE ACTION", command.Arguments(2, 2, "a message's id or its Message-ID, and an action"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := find(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.Done(c.RemoveTriageTag(ctx, id, args[1]), "removed %s", args[1])
	})
}

func retryTag(a *command.App) *cobra.Command {
	return command.New(a, "retry TRY", command.Arguments(1, 1, "the id of a try, as \"log\" prints it"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := uuid.Parse(args[0])
		if err != nil {
			return command.Misuse("%q is not the id of a try; `countersign triage tags log` prints them", args[0])
		}
		return command.Show(a, showTag)(c.RetryTriageTag(ctx, id))
	})
}

func showTag(a *command.App, t wire.TriageTag) error {
	return a.Print("%s is %s; the next run tries it if it is due\n", t.Action, t.State)
}

// tagsText returns tags with their states, for a table.
func tagsText(tags []wire.TriageTag) string {
	texts := make([]string, len(tags))
	for i, t := range tags {
		texts[i] = t.Action + " " + t.State
	}
	return strings.Join(texts, ", ")
}
