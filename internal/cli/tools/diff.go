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

func diff(a *command.App) *cobra.Command {
	return command.New(a, "diff SOURCE:TOOL", command.Arguments(1, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, args []string) error {
		if _, err := command.ToolArgument(args[0]); err != nil {
			return err
		}
		return command.Show(a, showDiff)(c.DiffTool(ctx, args[0]))
	})
}

func showDiff(a *command.App, d wire.ToolDiff) error {
	var b strings.Builder
	switch {
	case d.Quarantined:
		fmt.Fprintf(&b, "%s is new, and in quarantine until it is accepted.\n", command.Safe(d.Tool))
	case len(d.Changes) == 0:
		fmt.Fprintf(&b, "%s is as it was accepted.\n", command.Safe(d.Tool))
	case !d.AcceptedKnown:
		fmt.Fprintf(&b, "%s has changed. What was accepted is not on record, so all of it is shown.\n", command.Safe(d.Tool))
	default:
		fmt.Fprintf(&b, "%s has changed since it was accepted (%s).\n", command.Safe(d.Tool), d.Drift)
	}
	for _, c := range d.Changes {
		hidden := ""
		if c.HiddenCharacters {
			hidden = ", WITH CHARACTERS THAT DO NOT SHOW"
		}
		fmt.Fprintf(&b, "\n%s  (%s%s)\n", command.Safe(c.Pointer), c.Strength, hidden)
		side(&b, "-", c.Was)
		side(&b, "+", c.Now)
	}
	if len(d.Changes) == 0 && d.HiddenCharacters {
		b.WriteString("It holds characters that do not show when it is read.\n")
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
	cmd := command.New(a, "accept SOURCE:TOOL", command.Arguments(1, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, args []string) error {
		key, err := command.ToolArgument(args[0])
		if err != nil {
			return err
		}
		if digest == "" {
			return command.Misuse("--digest is required: `countersign tools diff %s` shows it with what changed", command.Quoted(args[0]))
		}
		return a.Done(c.AcceptTool(ctx, wire.ToolAcceptance{Source: key.Source, Name: key.Action, Digest: digest}), "accepted %s", key)
	})
	cmd.Flags().StringVar(&digest, "digest", "", "the `digest` of the definition that was looked at (required)")
	return cmd
}
