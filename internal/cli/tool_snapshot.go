package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

const snapshotHelp = `Say which read shows how things stand before and after the calls of a tool. The
worker then makes it right before each call, and right after one that had its
effect or may have, and keeps the answers: "countersign executions show" shows
them. Without arguments it shows what is set.

--args is the template of the read's arguments. The text "$key" in it becomes
the idempotency key of the call, "$args/to" what stands at /to in its arguments,
and "$$" at the beginning of a text a dollar sign.

A read that fails never holds a call up, unless it is --required: then the call
is not made until the read before it has worked, and fails when its attempts are
used up.`

func (a *app) toolSnapshot() *cobra.Command {
	var shot catalog.Shot
	var args string
	var none bool
	cmd := &cobra.Command{
		Use:   "snapshot [SOURCE:TOOL]",
		Short: "Say which read shows how things stand before and after a call",
		Long:  snapshotHelp,
		Example: `  countersign tools snapshot
  countersign tools snapshot notes:notes.update --read notes.get --args '{"id":"$args/id"}'
  countersign tools snapshot notes:notes.update --none`,
		Args: arguments(0, 1, "a tool, as source:name"),
		RunE: a.run(func(ctx context.Context, c *client.Client, tool []string) error {
			shot.Args = json.RawMessage(args)
			if len(tool) == 0 {
				if none || shot.Tool != "" || args != "" || shot.Required {
					return misuse("say of which tool, as source:name")
				}
				return a.showSnapshotRules(ctx, c)
			}
			return a.runToolSnapshot(ctx, c, tool[0], shot, none)
		}),
	}
	cmd.Flags().StringVar(&shot.Tool, "read", "", "the `name` of the tool that reads, at the same source")
	cmd.Flags().StringVar(&args, "args", "", "the template of its arguments, in JSON (default {})")
	cmd.Flags().BoolVar(&shot.Required, "required", false, "do not make the call unless the read before it worked")
	cmd.Flags().BoolVar(&none, "none", false, "remove what is set")
	return cmd
}

func (a *app) runToolSnapshot(ctx context.Context, c *client.Client, tool string, shot catalog.Shot, none bool) error {
	source, name, ok := strings.Cut(tool, ":")
	switch {
	case !ok || source == "" || name == "":
		return misuse("name the tool as source:name")
	case none && (shot.Tool != "" || len(shot.Args) > 0 || shot.Required):
		return misuse("--none stands alone")
	case !none && shot.Tool == "":
		return misuse("--read must name the tool that reads; or give --none")
	case len(shot.Args) > 0 && !json.Valid(shot.Args):
		return misuse("--args must be JSON")
	}
	set := client.SnapshotSetting{Source: source, Name: name}
	if !none {
		set.Snapshot = &shot
	}
	if err := c.PutSnapshotRule(ctx, set); err != nil {
		return err
	}
	if a.json {
		return a.document(set)
	}
	what := "is seen by " + source + ":" + shot.Tool
	if none {
		what = "is not seen"
	}
	_, err := fmt.Fprintf(a.sys.Out, "%s %s\n", line(tool), line(what))
	return err
}

func (a *app) showSnapshotRules(ctx context.Context, c *client.Client) error {
	rules, err := c.SnapshotRules(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.document(client.Page[client.SnapshotSetting]{Items: rules})
	}
	if len(rules) == 0 {
		a.note("No tool has snapshots.")
		return nil
	}
	rows := make([][]string, len(rules))
	for i, r := range rules {
		required := "-"
		if r.Snapshot.Required {
			required = "yes"
		}
		rows[i] = []string{r.Source + ":" + r.Name, r.Snapshot.Tool, compact(r.Snapshot.Args), required}
	}
	return table(a.sys.Out, []string{"TOOL", "READ", "ARGUMENTS", "REQUIRED"}, rows)
}
