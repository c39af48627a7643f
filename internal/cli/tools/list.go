// Package tools has the commands for sources and their tools: to find tools, to
// accept changes of them, and to configure them.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command tools.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("tools", list(a), search(a), show(a), diff(a), accept(a), override(a), describe(a), set(a), reconcile(a), snapshot(a))
}

func list(a *command.App) *cobra.Command {
	var f client.ToolFilter
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error { return showTools(ctx, a, c, f) })
	filterFlags(cmd, &f)
	return cmd
}

func search(a *command.App) *cobra.Command {
	f := client.ToolFilter{Limit: 20}
	cmd := command.New(a, "search WORD...", command.Arguments(1, command.Many, "words to search for"), func(ctx context.Context, c *client.Client, args []string) error {
		f.Query = strings.Join(args, " ")
		return showTools(ctx, a, c, f)
	})
	filterFlags(cmd, &f)
	return cmd
}

func filterFlags(cmd *cobra.Command, f *client.ToolFilter) {
	cmd.Flags().StringVar(&f.Source, "source", "", "filter by source `id`")
	command.EnumFlag(cmd, &f.Risk, "risk", "filter by `risk`: read, write or danger", "read", "write", "danger")
	command.EnumFlag(cmd, &f.Drifted, "drifted", "`true` for only the tools that changed since they were accepted, false for the others", "true", "false")
	command.EnumFlag(cmd, &f.Quarantined, "quarantined", "`true` for only the tools that nobody has accepted yet, false for the others", "true", "false")
	command.LimitFlag(cmd, &f.Limit, 1000, "maximum number of results, at most 1000")
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
		Empty: "No matching tools.", Head: []string{"TOOL", "MODE", "RISK", "EFFECT", "REVERTED", "WRITES TO", "NEEDS", "NOTE"},
		Row: func(t wire.Tool) []string {
			return []string{t.Tool, string(t.Mode), t.Risk, string(t.Effect), revertedShort(t), writesTo(t), strings.Join(t.Scopes, " "), toolNote(t)}
		},
	}.Show(a)(found.Items, nil)
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

// toolNote describes why a tool is unavailable, or needs an operator.
func toolNote(t wire.Tool) string {
	switch {
	case !t.Enabled:
		return "its source is off"
	case t.Quarantined && t.Drift == "none":
		return "its source is in quarantine"
	case t.Quarantined:
		return "new, in quarantine"
	case t.Drifted:
		if t.Drift == "none" {
			return "its source's address is not accepted"
		}
		return "drifted (" + t.Drift + ")"
	}
	return ""
}

func show(a *command.App) *cobra.Command {
	return command.New(a, "show TOOL", command.Arguments(1, 1, "a tool"), func(ctx context.Context, c *client.Client, args []string) error {
		return command.Show(a, showTool)(c.Tool(ctx, args[0]))
	})
}

func showTool(a *command.App, t wire.Tool) error {
	err := a.Fields(
		"tool", t.Tool,
		"full name", t.FullName,
		"title", t.Title,
		"description", t.Description,
		"note", toolNote(t),
		"mode", string(t.Mode),
		"risk", t.Risk+", effect "+string(t.Effect)+", at most "+fmt.Sprint(t.MaxAttempts)+" attempts",
		"changes", strings.Join(t.SideEffects, "; "),
		"reverted", revertedBy(t),
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

// revertedShort describes in a word how a call of a tool is reverted.
func revertedShort(t wire.Tool) string {
	if t.Reversal != nil {
		return "by " + t.Reversal.Tool
	}
	return revertedBy(t)
}

// revertedBy describes how a call of a tool is reverted.
func revertedBy(t wire.Tool) string {
	switch {
	case t.Reversal != nil:
		return strings.TrimSpace("by " + t.Reversal.Tool + " " + command.Compact(t.Reversal.Args))
	case t.Reversible:
		return "not needed: it only reads"
	}
	return "not at all"
}

func diff(a *command.App) *cobra.Command {
	return newChange(a, "diff", func(ctx context.Context, c *client.Client, tool string) error {
		return command.Show(a, showDiff)(c.DiffTool(ctx, tool))
	})
}

func showDiff(a *command.App, d wire.ToolDiff) error {
	var b strings.Builder
	switch {
	case d.Quarantined && d.Drift == "none":
		fmt.Fprintf(&b, "%s is unchanged since it was accepted, but its source is in quarantine; see: countersign source list\n", command.Safe(d.Tool))
	case d.Quarantined:
		fmt.Fprintf(&b, "%s is new, and in quarantine until it is accepted.\n", command.Safe(d.Tool))
	case len(d.Changes) == 0:
		fmt.Fprintf(&b, "%s is unchanged since it was accepted.\n", command.Safe(d.Tool))
	case !d.AcceptedKnown:
		fmt.Fprintf(&b, "%s has changed. The accepted definition is not on record, so the new one is shown in full.\n", command.Safe(d.Tool))
	default:
		fmt.Fprintf(&b, "%s has changed since it was accepted (%s).\n", command.Safe(d.Tool), d.Drift)
	}
	for _, c := range d.Changes {
		hidden := ""
		if c.HiddenCharacters {
			hidden = ", WITH INVISIBLE CHARACTERS"
		}
		fmt.Fprintf(&b, "\n%s  (%s%s)\n", command.Safe(c.Pointer), c.Strength, hidden)
		side(&b, "-", c.Was)
		side(&b, "+", c.Now)
	}
	if len(d.Changes) == 0 && d.HiddenCharacters {
		b.WriteString("It has invisible characters.\n")
	}
	if len(d.Changes) > 0 {
		fmt.Fprintf(&b, "\nTo accept it as shown:\n  countersign tools accept %s --digest %s\n", command.Quoted(d.Tool), d.Digest)
	}
	return a.Print("%s", b.String())
}

// side writes one side of a change, each line behind a mark. The escape of a
// character that does not show is written without the escape of JSON.
func side(b *strings.Builder, mark string, value json.RawMessage) {
	if value == nil {
		return
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(command.Indented(value), `\\u{`, `\u{`), "\n") {
		fmt.Fprintf(b, "  %s %s\n", mark, line)
	}
}

func accept(a *command.App) *cobra.Command {
	var digest string
	cmd := newChange(a, "accept", func(ctx context.Context, c *client.Client, tool string) error {
		if digest == "" {
			return command.Misuse("--digest is required: `countersign tools diff %s` prints it with the changes", command.Quoted(tool))
		}
		return a.Done(c.AcceptTool(ctx, tool, wire.ToolAcceptance{Digest: digest}), "accepted %s", tool)
	})
	cmd.Flags().StringVar(&digest, "digest", "", "`digest` of the definition to accept, as \"tools diff\" prints it (required)")
	return cmd
}
