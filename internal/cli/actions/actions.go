// Package actions has the commands that propose actions and follow them:
// actions, submit, get, list and watch. It also shows actions for other
// packages of commands. It does not decide about any.
package actions

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command actions.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("actions", "Act as an agent: list the tools, read the guide, run one",
		`What an agent needs to act from a shell: "list" shows the tools that the token
may use, "guide" tells all that there is to know, and "run" does one action and
waits while it is pending.

A person who wants to follow actions takes "countersign list" and "get".`,
		`  countersign actions guide
  countersign actions list --search "create note"
  countersign actions run notes:notes.create title=Hello body=World`,
		listTools(a), guide(a), run(a))
}

func listTools(a *command.App) *cobra.Command {
	var f client.ToolFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tools that the token may use",
		Long: `List the tools that the token may use, and whether a call runs at once or waits
for a person. With --json each line is a tool with the schema of its arguments.`,
		Example: "  countersign actions list\n  countersign actions list --search \"send mail\" --json | jq .input_schema",
		Args:    command.Arguments(0, 0, ""),
		RunE:    a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error { return showTools(ctx, a, c, f) }),
	}
	cmd.Flags().StringVar(&f.Query, "search", "", "only tools that these `words` fit, the best first")
	cmd.Flags().StringVar(&f.Source, "source", "", "only tools of the source with this `id`")
	return cmd
}

func showTools(ctx context.Context, a *command.App, c *client.Client, f client.ToolFilter) error {
	found, err := c.Tools(ctx, f)
	if err != nil {
		return err
	}
	var usable []wire.Tool
	for _, t := range found.Items {
		// People see more than they may use.
		if t.Enabled && t.Mode != envelope.ModeDeny {
			usable = append(usable, t)
		}
	}
	for _, src := range found.Sources {
		if src.Error != nil {
			a.Note("The tools of %s cannot be listed now: %s", command.Line(src.ID), command.Line(*src.Error))
		}
	}
	view := command.View[wire.Tool]{
		Empty: "There is no tool that you may use now.", Head: []string{"TOOL", "A CALL", "RISK", "TITLE"},
		Row: func(t wire.Tool) []string { return []string{t.Key, modeWords(t.Mode), t.Risk, t.Title} },
	}
	if f != (client.ToolFilter{}) {
		view.Empty = "No tool that you may use fits."
	}
	return view.Show(a, usable)
}

// modeWords says what policy does with a call.
func modeWords(m envelope.Mode) string {
	switch m {
	case envelope.ModeAllow:
		return "runs at once"
	case envelope.ModeRequireApproval:
		return "waits for a person"
	case envelope.ModeDeny:
	}
	return "is denied"
}

func guide(a *command.App) *cobra.Command {
	var query string
	cmd := &cobra.Command{
		Use:   "guide",
		Short: "Read what an agent has to know to act",
		Long: `Read what an agent has to know to act, in Markdown, for a model's context: how
to propose and to wait, the limits that hold, and the tools that the token may
use, from the catalog as it is now. What sources say of their tools is quoted as
data.`,
		Example: "  countersign actions guide >> AGENTS.md\n  countersign actions guide --search calendar",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			text, err := c.Guide(ctx, query)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(map[string]string{"guide": text})
			}
			return a.Print("%s", text)
		}),
	}
	cmd.Flags().StringVar(&query, "search", "", "only tools that these `words` fit, the best first")
	return cmd
}
