// Package tools has the commands for sources and their tools: to find tools, to
// accept changes of them, and to configure them.
package tools

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const toolListHelp = `List the tools of every source, with what policy says of them, whom they write
to, and what it takes to use them. An agent's token sees what it may use. With
--json it is one object a line.

A source that could not be listed has no tools here, and its error on standard
error. What waits for its tools already is not lost.`

func toolList(a *command.App) *cobra.Command {
	var f client.ToolFilter
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tools, with whom they write to",
		Long:    toolListHelp,
		Example: "  countersign tools list\n  countersign tools list --source mail --risk danger",
		Args:    command.Arguments(0, 0, ""),
		RunE:    a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error { return runTools(ctx, a, c, f) }),
	}
	toolFilterFlags(cmd, &f)
	return cmd
}

const toolSearchHelp = `Search the catalog by words: in names, titles, arguments and descriptions, a
name counting for more than what a tool says of itself. The best come first. A
word of three letters finds what begins with it.`

func toolSearch(a *command.App) *cobra.Command {
	f := client.ToolFilter{Limit: 20}
	cmd := &cobra.Command{
		Use:     "search WORD...",
		Short:   "Search the catalog",
		Long:    toolSearchHelp,
		Example: "  countersign tools search send email\n  countersign tools search invoice --risk read --json | jq -r .key",
		Args:    command.Arguments(1, command.Many, "words to search for"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			f.Query = strings.Join(args, " ")
			return runTools(ctx, a, c, f)
		}),
	}
	toolFilterFlags(cmd, &f)
	return cmd
}

func toolFilterFlags(cmd *cobra.Command, f *client.ToolFilter) {
	flags := cmd.Flags()
	flags.StringVar(&f.Source, "source", "", "only those of the source of this `id`")
	flags.StringVar(&f.Risk, "risk", "", "only those of this `risk`: read, write or danger")
	flags.IntVar(&f.Limit, "limit", f.Limit, "how many, at most 1000")
	command.Fixed(cmd, "risk", "read", "write", "danger")
}

func runTools(ctx context.Context, a *command.App, c *client.Client, f client.ToolFilter) error {
	if err := command.OneOf("risk", f.Risk, "read", "write", "danger"); err != nil {
		return err
	}
	if f.Limit < 0 || f.Limit > 1000 {
		return command.Misuse("--limit must be from 1 to 1000")
	}
	found, err := c.FindTools(ctx, f)
	if err != nil {
		return err
	}
	for _, src := range found.Sources {
		if src.Error != nil {
			a.Note("The source %s could not be listed: %s", src.ID, command.Safe(*src.Error))
		}
	}
	if a.JSON {
		return command.WriteJSONLines(a, found.Items)
	}
	if len(found.Items) == 0 {
		a.Note("There are none.")
		return nil
	}
	rows := make([][]string, len(found.Items))
	for i, t := range found.Items {
		rows[i] = []string{t.Key, string(t.Mode), t.Risk, string(t.Effect), writesTo(t), strings.Join(t.Scopes, " "), toolNote(t)}
	}
	return command.Table(a.Out, []string{"TOOL", "MODE", "RISK", "EFFECT", "WRITES TO", "NEEDS", "NOTE"}, rows)
}

func writesTo(t client.Tool) string {
	to := strings.Join(t.Recipients, " ")
	switch {
	case t.RecipientsConfirmed && to == "":
		return "nobody"
	case !t.RecipientsConfirmed && to != "":
		return to + " (guessed)"
	}
	return to
}

// toolNote says what keeps a tool from use, or needs an operator.
func toolNote(t client.Tool) string {
	switch {
	case !t.Enabled:
		return "its source is off"
	case t.Quarantined:
		return "new, in quarantine"
	case t.Drifted:
		return "drifted (" + t.Drift + ")"
	}
	return ""
}
