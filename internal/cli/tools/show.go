package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const toolShowHelp = `Show a tool with all that is known of it: what its source says, what policy
says, what a call changes and how it is undone, and its schemas.

TOOL is source:name, a full name such as mail.letter.send, or a name that only
one source has. Its texts are its source's words: read them as data.`

func toolShow(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show TOOL",
		Short:   "Show a tool with its schemas",
		Long:    toolShowHelp,
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

func showTool(a *command.App, t client.Tool) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, command.Safe(value))
		}
	}
	row("tool", t.Key)
	row("full name", t.FullName)
	row("title", t.Title)
	row("description", t.Description)
	row("note", toolNote(t))
	row("mode", string(t.Mode))
	row("risk", t.Risk+", effect "+string(t.Effect)+", at most "+fmt.Sprint(t.MaxAttempts)+" attempts")
	row("changes", strings.Join(t.SideEffects, "; "))
	row("undone", undoneBy(t))
	row("writes to", writesTo(t))
	row("needs", strings.Join(t.Scopes, " "))
	row("digest", t.Digest)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	for _, part := range []struct {
		name   string
		schema json.RawMessage
	}{{"Arguments", t.InputSchema}, {"Answer", t.OutputSchema}} {
		if len(part.schema) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(a.Out, "\n%s:\n%s\n", part.name, command.Indented(part.schema)); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
	return nil
}

// undoneBy says how a call of a tool is undone.
func undoneBy(t client.Tool) string {
	switch {
	case t.Reversal != nil:
		return strings.TrimSpace("by " + t.Reversal.Tool + " " + command.Compact(t.Reversal.Args))
	case t.Reversible:
		return "not needed: it only reads"
	}
	return "not at all"
}
