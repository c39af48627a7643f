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
	view  command.View[S]
	list  func(c *client.Client, ctx context.Context) ([]S, error)
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
	cmd := command.New(a, r.use, command.Arguments(0, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, tool []string) error {
		source, name, ok := strings.Cut(command.Argument(tool, 0), ":")
		s, given := r.setting(source, name, none)
		switch {
		case len(tool) == 0 && (none || given):
			return command.Misuse("say of which tool, as source:name")
		case len(tool) == 0:
			all, err := r.list(c, ctx)
			if err != nil {
				return err
			}
			return r.view.ShowPage(a)(wire.Page[S]{Items: all}, nil)
		case !ok || source == "" || name == "":
			return command.Misuse("name the tool as source:name")
		case none && given:
			return command.Misuse("--none takes no other flag")
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
	})
	cmd.Flags().StringVar(read, "read", "", "the `name` of the tool that reads, at the same source")
	a.JSONFlag(cmd, args, "args", "the template of its arguments, in `JSON` (default {})")
	cmd.Flags().BoolVar(&none, "none", false, "remove what is set")
	r.flags(cmd)
	return cmd
}

func reconcile(a *command.App) *cobra.Command {
	var rule wire.ReconcileRule
	return newReadCommand(a, readRule[wire.ToolReconcileRule]{
		use: "reconcile [SOURCE:TOOL]",
		view: command.View[wire.ToolReconcileRule]{
			Empty: "No tool has a reconcile rule.", Head: []string{"TOOL", "READ", "ARGUMENTS", "HAPPENED", "RESEND"},
			Row: func(s wire.ToolReconcileRule) []string {
				return []string{s.Source + ":" + s.Name, s.Rule.Tool, command.Compact(s.Rule.Args), s.Rule.Happened, yes(s.Rule.Resend)}
			},
		},
		list: (*client.Client).ReconcileRules,
		put:  (*client.Client).PutReconcileRule,
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

func snapshot(a *command.App) *cobra.Command {
	var rule wire.SnapshotRule
	return newReadCommand(a, readRule[wire.SnapshotSetting]{
		use: "snapshot [SOURCE:TOOL]",
		view: command.View[wire.SnapshotSetting]{
			Empty: "No tool has snapshots.", Head: []string{"TOOL", "READ", "ARGUMENTS", "REQUIRED"},
			Row: func(s wire.SnapshotSetting) []string {
				return []string{s.Source + ":" + s.Name, s.Snapshot.Tool, command.Compact(s.Snapshot.Args), yes(s.Snapshot.Required)}
			},
		},
		list: (*client.Client).SnapshotRules,
		put:  (*client.Client).PutSnapshotRule,
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
