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
	return command.NewGroup("actions", listTools(a), guide(a), run(a))
}

func listTools(a *command.App) *cobra.Command {
	var f client.ToolFilter
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error { return showTools(ctx, a, c, f) })
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
		Row: func(t wire.Tool) []string { return []string{t.Tool, modeWords(t.Mode), t.Risk, t.Title} },
	}
	if f != (client.ToolFilter{}) {
		view.Empty = "No tool that you may use fits."
	}
	return view.Show(a)(usable, nil)
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
	cmd := command.New(a, "guide", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		text, err := c.Guide(ctx, query)
		if err != nil {
			return err
		}
		return a.Result(map[string]string{"guide": text}, "%s", text)
	})
	cmd.Flags().StringVar(&query, "search", "", "only tools that these `words` fit, the best first")
	return cmd
}
