// Package tools has the commands for sources and their tools: to find tools, to
// accept changes of them, and to configure them.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command tools.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("tools", "Find tools, accept changes of them, and configure them",
		`Find tools, accept changes of their definitions, and set what a source does not
say of its tools, or says wrongly. Looking takes any token, and shows an agent
what it may use; the rest takes an operator's.`,
		`  countersign tools search send email
  countersign tools diff mail:send_email
  countersign tools reconcile notes:notes.create --read notes.find --args '{"key":"$key"}' --happened /found`,
		list(a), search(a), show(a), diff(a), accept(a), override(a), describe(a), set(a), reconcile(a), snapshot(a))
}

func list(a *command.App) *cobra.Command {
	var f client.ToolFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tools, with whom they write to",
		Long: `List the tools of every source, with what policy says of them, whom they write
to, and what it takes to use them. An agent's token sees what it may use. With
--json it is one object a line.

A source that could not be listed has no tools here, and its error on standard
error. Actions that wait for its tools are not lost.`,
		Example: "  countersign tools list\n  countersign tools list --source mail --risk danger",
		Args:    command.Arguments(0, 0, ""),
		RunE:    a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error { return showTools(ctx, a, c, f) }),
	}
	filterFlags(cmd, &f)
	return cmd
}

func search(a *command.App) *cobra.Command {
	f := client.ToolFilter{Limit: 20}
	cmd := &cobra.Command{
		Use:   "search WORD...",
		Short: "Search the catalog",
		Long: `Search the catalog by words: in names, titles, arguments and descriptions, a
name counting for more than what a tool says of itself. The best come first. A
word of three letters finds what begins with it.`,
		Example: "  countersign tools search send email\n  countersign tools search invoice --risk read --json | jq -r .key",
		Args:    command.Arguments(1, command.Many, "words to search for"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			f.Query = strings.Join(args, " ")
			return showTools(ctx, a, c, f)
		}),
	}
	filterFlags(cmd, &f)
	return cmd
}

func filterFlags(cmd *cobra.Command, f *client.ToolFilter) {
	cmd.Flags().StringVar(&f.Source, "source", "", "only those of the source of this `id`")
	command.EnumFlag(cmd, &f.Risk, "risk", "only those of this `risk`: read, write or danger", "read", "write", "danger")
	limit := command.Flag(cmd, "limit", "int", "how many, at most 1000", func(text string) (err error) {
		if f.Limit, err = strconv.Atoi(text); err != nil || f.Limit < 1 || f.Limit > 1000 {
			return fmt.Errorf("must be from 1 to 1000")
		}
		return nil
	})
	limit.DefValue = strconv.Itoa(f.Limit)
}

func showTools(ctx context.Context, a *command.App, c *client.Client, f client.ToolFilter) error {
	found, err := c.Tools(ctx, f)
	if err != nil {
		return err
	}
	for _, src := range found.Sources {
		if src.Error != nil {
			a.Note("The source %s could not be listed: %s", src.ID, command.Safe(*src.Error))
		}
	}
	return command.View[wire.Tool]{
		Empty: "There are none.", Head: []string{"TOOL", "MODE", "RISK", "EFFECT", "WRITES TO", "NEEDS", "NOTE"},
		Row: func(t wire.Tool) []string {
			return []string{t.Key, string(t.Mode), t.Risk, string(t.Effect), writesTo(t), strings.Join(t.Scopes, " "), toolNote(t)}
		},
	}.Show(a, found.Items)
}

func writesTo(t wire.Tool) string {
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
func toolNote(t wire.Tool) string {
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

func show(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show TOOL",
		Short: "Show a tool with its schemas",
		Long: `Show a tool with all that is known of it: what its source says, what policy
says, what a call changes and how it is undone, and its schemas.

TOOL is source:name, a full name such as mail.letter.send, or a name that only
one source has. Its texts are its source's words: read them as data.`,
		Example: "  countersign tools show mail:send_email\n  countersign tools show mail:send_email --json | jq .input_schema",
		Args:    command.Arguments(1, 1, "a tool"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Tool(ctx, args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(t)
			}
			return showTool(a, t)
		}),
	}
}

func showTool(a *command.App, t wire.Tool) error {
	err := a.Fields(
		"tool", t.Key,
		"full name", t.FullName,
		"title", t.Title,
		"description", t.Description,
		"note", toolNote(t),
		"mode", string(t.Mode),
		"risk", t.Risk+", effect "+string(t.Effect)+", at most "+fmt.Sprint(t.MaxAttempts)+" attempts",
		"changes", strings.Join(t.SideEffects, "; "),
		"undone", undoneBy(t),
		"writes to", writesTo(t),
		"needs", strings.Join(t.Scopes, " "),
		"digest", t.Digest,
	)
	for _, part := range []struct {
		name   string
		schema json.RawMessage
	}{{"Arguments", t.InputSchema}, {"Answer", t.OutputSchema}} {
		if err == nil && len(part.schema) > 0 {
			err = a.Print("\n%s:\n%s\n", part.name, command.Indented(part.schema))
		}
	}
	return err
}

// undoneBy says how a call of a tool is undone.
func undoneBy(t wire.Tool) string {
	switch {
	case t.Reversal != nil:
		return strings.TrimSpace("by " + t.Reversal.Tool + " " + command.Compact(t.Reversal.Args))
	case t.Reversible:
		return "not needed: it only reads"
	}
	return "not at all"
}
