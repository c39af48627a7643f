package tools

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// readRule describes a command that sets the read that belongs to a tool: that
// which finds out whether a call happened, or that around its calls.
type readRule[S any] struct {
	use   string
	help  command.Help
	view  command.View[S]
	list  func(ctx context.Context, c *client.Client) ([]S, error)
	put   func(c *client.Client, ctx context.Context, s S) error
	flags func(cmd *cobra.Command)
	// setting returns what to send for a tool and whether anything but none is
	// set; with none it removes the read.
	setting func(source, name string, none bool) (s S, given bool)
	// done says what was set, and removed what was removed.
	done    func(S) string
	removed string
}

// newReadCommand returns the command of a read rule. args and read are set by
// the flags --args and --read.
func newReadCommand[S any](a *command.App, r readRule[S], args *json.RawMessage, read *string) *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: r.use, Short: r.help.Short, Long: r.help.Long, Example: r.help.Example, Args: command.Arguments(0, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, tool []string) error {
			source, name, ok := strings.Cut(command.Argument(tool, 0), ":")
			s, given := r.setting(source, name, none)
			switch {
			case len(tool) == 0 && (none || given):
				return command.Misuse("say of which tool, as source:name")
			case len(tool) == 0:
				all, err := r.list(ctx, c)
				if err != nil {
					return err
				}
				return r.view.ShowPage(a, wire.Page[S]{Items: all})
			case !ok || source == "" || name == "":
				return command.Misuse("name the tool as source:name")
			case none && given:
				return command.Misuse("--none stands alone")
			case !none && *read == "":
				return command.Misuse("--read must name the tool that reads; or give --none")
			}
			if err := r.put(c, ctx, s); err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(s)
			}
			what := r.removed
			if !none {
				what = r.done(s)
			}
			return a.Print("%s %s\n", command.Line(tool[0]), command.Line(what))
		}),
	}
	cmd.Flags().StringVar(read, "read", "", "the `name` of the tool that reads, at the same source")
	a.JSONFlag(cmd, args, "args", "the template of its arguments, in `JSON` (default {})")
	cmd.Flags().BoolVar(&none, "none", false, "remove what is set")
	r.flags(cmd)
	return cmd
}

// templateHelp explains the templates of the arguments of a read.
const templateHelp = `--args is the template of the read's arguments. The text "$key" in it becomes
the idempotency key of the call, "$args/to" the value at /to in its arguments,
and "$$" at the beginning of a text a dollar sign.
`

const reconcileHelp = `Say how to find out whether a call of a tool happened, when its end is unknown.
Workers then ask by themselves: ten times within some two hours, with a tool of
the same source that only reads. Without arguments it shows what is set.

` + templateHelp + `
--happened is a JSON Pointer into the read's answer. A value there says that the
call happened, unless it is false, null, 0 or empty: that says that it did not.
Without a value there, or if the read fails, the outcome stays unknown.

What did not happen runs again, but not while the first request may still be on
its way, and not if the tool is of class once: there a request that arrives late
would have the effect twice. --resend runs those again as well. Give it only for
a source that surely carries out nothing after its connection has ended.`

func reconcile(a *command.App) *cobra.Command {
	var rule wire.ReconcileRule
	return newReadCommand(a, readRule[wire.ToolReconcileRule]{
		use: "reconcile [SOURCE:TOOL]",
		help: command.Help{Short: "Say how to find out whether a call happened", Long: reconcileHelp, Example: `  countersign tools reconcile
  countersign tools reconcile notes:notes.create --read notes.find --args '{"key":"$key"}' --happened /found
  countersign tools reconcile notes:notes.create --none`},
		view: command.View[wire.ToolReconcileRule]{
			Empty: "No tool has a reconcile rule.", Head: []string{"TOOL", "READ", "ARGUMENTS", "HAPPENED", "RESEND"},
			Row: func(s wire.ToolReconcileRule) []string {
				return []string{s.Source + ":" + s.Name, s.Rule.Tool, command.Compact(s.Rule.Args), s.Rule.Happened, yes(s.Rule.Resend)}
			},
		},
		list: func(ctx context.Context, c *client.Client) ([]wire.ToolReconcileRule, error) {
			return c.ReconcileRules(ctx)
		},
		put: (*client.Client).PutReconcileRule,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&rule.Happened, "happened", "", "the JSON `pointer` into its answer")
			cmd.Flags().BoolVar(&rule.Resend, "resend", false, "run again what is of class once and was not found")
		},
		setting: func(source, name string, none bool) (wire.ToolReconcileRule, bool) {
			s := wire.ToolReconcileRule{Source: source, Name: name}
			if !none {
				s.Rule = &rule
			}
			return s, rule.Tool != "" || rule.Happened != "" || len(rule.Args) > 0 || rule.Resend
		},
		done:    func(s wire.ToolReconcileRule) string { return "is reconciled by " + s.Source + ":" + s.Rule.Tool },
		removed: "has no reconcile rule",
	}, &rule.Args, &rule.Tool)
}

const snapshotHelp = `Say which read is made before and after the calls of a tool. The worker makes it
right before each call, and right after one that had or may have had its effect,
and keeps the answers: "countersign executions show" shows them. Without
arguments it shows what is set.

` + templateHelp + `
A read that fails never delays a call, unless it is --required: then the call is
not made until the read before it has worked, and fails when its attempts are
used up.`

func snapshot(a *command.App) *cobra.Command {
	var rule wire.SnapshotRule
	return newReadCommand(a, readRule[wire.SnapshotSetting]{
		use: "snapshot [SOURCE:TOOL]",
		help: command.Help{Short: "Say which read is made before and after a call", Long: snapshotHelp, Example: `  countersign tools snapshot
  countersign tools snapshot notes:notes.update --read notes.get --args '{"id":"$args/id"}'
  countersign tools snapshot notes:notes.update --none`},
		view: command.View[wire.SnapshotSetting]{
			Empty: "No tool has snapshots.", Head: []string{"TOOL", "READ", "ARGUMENTS", "REQUIRED"},
			Row: func(s wire.SnapshotSetting) []string {
				return []string{s.Source + ":" + s.Name, s.Snapshot.Tool, command.Compact(s.Snapshot.Args), yes(s.Snapshot.Required)}
			},
		},
		list: func(ctx context.Context, c *client.Client) ([]wire.SnapshotSetting, error) {
			return c.SnapshotRules(ctx)
		},
		put: (*client.Client).PutSnapshotRule,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&rule.Required, "required", false, "do not make the call unless the read before it worked")
		},
		setting: func(source, name string, none bool) (wire.SnapshotSetting, bool) {
			s := wire.SnapshotSetting{Source: source, Name: name}
			if !none {
				s.Snapshot = &rule
			}
			return s, rule.Tool != "" || len(rule.Args) > 0 || rule.Required
		},
		done:    func(s wire.SnapshotSetting) string { return "has snapshots by " + s.Source + ":" + s.Snapshot.Tool },
		removed: "has no snapshots",
	}, &rule.Args, &rule.Tool)
}

// yes shows a boolean; false is empty.
func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
