package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

const snapshotHelp = `Say which read shows how things stand before and after the calls of a tool. The
worker then makes it right before each call, and right after one that had its
effect or may have, and keeps the answers: "countersign executions show" shows
them. Without arguments it shows what is set.

--args is the arguments of the read. In them the text "$key" is replaced by the
idempotency key of the call, and "$inputs/to" by what stands at the JSON Pointer
/to in its arguments. "$$" at the beginning of a text is a dollar sign.

A read that fails never holds a call up, unless it is --required: then the call
is not made until the read before it has worked, and fails when its attempts are
used up.`

func toolSnapshot(a *command.App) *cobra.Command {
	var shot catalog.SnapshotRule
	var args string
	var none bool
	cmd := &cobra.Command{
		Use:   "snapshot [SOURCE:TOOL]",
		Short: "Say which read shows how things stand before and after a call",
		Long:  snapshotHelp,
		Example: `  countersign tools snapshot
  countersign tools snapshot notes:notes.update --read notes.get --args '{"id":"$inputs/id"}'
  countersign tools snapshot notes:notes.update --none`,
		Args: command.Arguments(0, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, tool []string) error {
			shot.Args = json.RawMessage(args)
			if len(tool) == 0 {
				if none || shot.Tool != "" || args != "" || shot.Required {
					return command.Misuse("say of which tool, as source:name")
				}
				return showSnapshotRules(ctx, a, c)
			}
			return runToolSnapshot(ctx, a, c, tool[0], shot, none)
		}),
	}
	cmd.Flags().StringVar(&shot.Tool, "read", "", "the `name` of the tool that reads, at the same source")
	cmd.Flags().StringVar(&args, "args", "", "the template of its arguments, in JSON (default {})")
	cmd.Flags().BoolVar(&shot.Required, "required", false, "do not make the call unless the read before it worked")
	cmd.Flags().BoolVar(&none, "none", false, "remove what is set")
	return cmd
}

func runToolSnapshot(ctx context.Context, a *command.App, c *client.Client, tool string, shot catalog.SnapshotRule, none bool) error {
	source, name, ok := strings.Cut(tool, ":")
	switch {
	case !ok || source == "" || name == "":
		return command.Misuse("name the tool as source:name")
	case none && (shot.Tool != "" || len(shot.Args) > 0 || shot.Required):
		return command.Misuse("--none stands alone")
	case !none && shot.Tool == "":
		return command.Misuse("--read must name the tool that reads; or give --none")
	case len(shot.Args) > 0 && !json.Valid(shot.Args):
		return command.Misuse("--args must be JSON")
	}
	set := client.SnapshotSetting{Source: source, Name: name}
	if !none {
		set.Snapshot = &shot
	}
	if err := c.PutSnapshotRule(ctx, set); err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(set)
	}
	what := "is seen by " + source + ":" + shot.Tool
	if none {
		what = "is not seen"
	}
	_, err := fmt.Fprintf(a.Out, "%s %s\n", command.Line(tool), command.Line(what))
	return err
}

func showSnapshotRules(ctx context.Context, a *command.App, c *client.Client) error {
	rules, err := c.SnapshotRules(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(client.Page[client.SnapshotSetting]{Items: rules})
	}
	if len(rules) == 0 {
		a.Note("No tool has snapshots.")
		return nil
	}
	rows := make([][]string, len(rules))
	for i, r := range rules {
		required := "-"
		if r.Snapshot.Required {
			required = "yes"
		}
		rows[i] = []string{r.Source + ":" + r.Name, r.Snapshot.Tool, command.Compact(r.Snapshot.Args), required}
	}
	return command.Table(a.Out, []string{"TOOL", "READ", "ARGUMENTS", "REQUIRED"}, rows)
}

const toolsHelp = `Find tools, accept what changed in them, and set what is known better of a tool
than its source says. Looking takes any token, and shows an agent what it may
use; the rest takes an operator's.`

// Command returns the command tools.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Find tools, accept what changed in them, and say what is known better",
		Long:  toolsHelp,
		Example: `  countersign tools search send email
  countersign tools diff mail:send_email
  countersign tools verify notes:notes.create --read notes.find --args '{"key":"$key"}' --happened /found`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(toolList(a), toolSearch(a), toolShow(a), toolDiff(a), toolAccept(a), toolOverride(a), toolDescribe(a), toolSet(a), toolVerify(a), toolSnapshot(a))
	return cmd
}

const verifyHelp = `Say how to find out whether a call of a tool happened, when nobody heard its
end. The fleet then asks by itself: ten times within some two hours, with a tool
of the same source that only reads. Without arguments it shows what is set.

--args is the arguments of the read. In them the text "$key" is replaced by the
idempotency key of the call, and "$inputs/to" by what stands at the JSON Pointer
/to in its arguments. "$$" at the beginning of a text is a dollar sign.

--happened is a JSON Pointer into the read's answer. What it finds says that the
call happened, unless it is false, null, 0 or empty: that says that it did not.
Where it finds nothing, or the read fails, the outcome stays unknown.

What did not happen runs again, but not so soon that the first request may be on
its way still, and not if the tool is of class once: there a request that comes
late would double the effect. --resend runs those again as well. Give it only
for a source that surely carries out nothing after its connection has ended.`

func toolVerify(a *command.App) *cobra.Command {
	var rule client.VerifyRule
	var args string
	var none bool
	cmd := &cobra.Command{
		Use:   "verify [SOURCE:TOOL]",
		Short: "Say how to find out whether a call happened",
		Long:  verifyHelp,
		Example: `  countersign tools verify
  countersign tools verify notes:notes.create --read notes.find --args '{"key":"$key"}' --happened /found
  countersign tools verify notes:notes.create --none`,
		Args: command.Arguments(0, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, tool []string) error {
			rule.Args = json.RawMessage(args)
			if len(tool) == 0 {
				if none || rule.Tool != "" || rule.Happened != "" || args != "" || rule.Resend {
					return command.Misuse("say of which tool, as source:name")
				}
				return showVerifyRules(ctx, a, c)
			}
			return runToolVerify(ctx, a, c, tool[0], rule, none)
		}),
	}
	cmd.Flags().StringVar(&rule.Tool, "read", "", "the `name` of the tool that reads, at the same source")
	cmd.Flags().StringVar(&args, "args", "", "the template of its arguments, in JSON (default {})")
	cmd.Flags().StringVar(&rule.Happened, "happened", "", "the JSON `pointer` into its answer")
	cmd.Flags().BoolVar(&rule.Resend, "resend", false, "run again what is of class once and was not found")
	cmd.Flags().BoolVar(&none, "none", false, "remove what is set")
	return cmd
}

func runToolVerify(ctx context.Context, a *command.App, c *client.Client, tool string, rule client.VerifyRule, none bool) error {
	source, name, ok := strings.Cut(tool, ":")
	switch {
	case !ok || source == "" || name == "":
		return command.Misuse("name the tool as source:name")
	case none && (rule.Tool != "" || rule.Happened != "" || len(rule.Args) > 0 || rule.Resend):
		return command.Misuse("--none stands alone")
	case !none && rule.Tool == "":
		return command.Misuse("--read must name the tool that reads; or give --none")
	case len(rule.Args) > 0 && !json.Valid(rule.Args):
		return command.Misuse("--args must be JSON")
	}
	set := client.VerifySetting{Source: source, Name: name}
	if !none {
		set.Verify = &rule
	}
	if err := c.PutVerifyRule(ctx, set); err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(set)
	}
	what := "is verified by " + source + ":" + rule.Tool
	if none {
		what = "is not verified"
	}
	_, err := fmt.Fprintf(a.Out, "%s %s\n", command.Line(tool), command.Line(what))
	return err
}

func showVerifyRules(ctx context.Context, a *command.App, c *client.Client) error {
	rules, err := c.VerifyRules(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(client.Page[client.VerifySetting]{Items: rules})
	}
	if len(rules) == 0 {
		a.Note("No tool has a verifying read.")
		return nil
	}
	rows := make([][]string, len(rules))
	for i, r := range rules {
		again := "-"
		if r.Verify.Resend {
			again = "yes"
		}
		rows[i] = []string{r.Source + ":" + r.Name, r.Verify.Tool, command.Compact(r.Verify.Args), r.Verify.Happened, again}
	}
	return command.Table(a.Out, []string{"TOOL", "READ", "ARGUMENTS", "HAPPENED", "RESEND"}, rows)
}
