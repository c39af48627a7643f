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
	use    string
	view   command.View[S]
	list   func(c *client.Client, ctx context.Context) ([]S, error)
	put    func(c *client.Client, ctx context.Context, tool string, rule S) error
	delete func(c *client.Client, ctx context.Context, tool string) error
	flags  func(cmd *cobra.Command)
	// rule returns the rule of the flags, and whether any of them is given.
	rule func() (rule S, given bool)
	// set says what was set, before the name of the read, and removed what was
	// removed.
	set, removed string
}

// newReadCommand returns the command of a read rule. args and read are set by
// the flags --args and --read.
func newReadCommand[S any](a *command.App, r readRule[S], args *json.RawMessage, read *string) *cobra.Command {
	var none bool
	cmd := command.New(a, r.use, command.Arguments(0, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, words []string) error {
		_, given := r.rule()
		tool := command.Argument(words, 0)
		source, name, ok := strings.Cut(tool, ":")
		switch {
		case tool == "" && (none || given):
			return command.Misuse("say of which tool, as source:name")
		case tool == "":
			all, err := r.list(c, ctx)
			if err != nil {
				return err
			}
			return r.view.ShowPage(a)(wire.Page[S]{Items: all}, nil)
		case !ok || source == "" || name == "":
			return command.Misuse("name the tool as source:name")
		case none && given:
			return command.Misuse("--none takes no other flag")
		case none:
			return a.Done(r.delete(c, ctx, tool), "%s %s", tool, r.removed)
		case *read == "":
			return command.Misuse("--read must name the tool that reads; or give --none")
		}
		if !strings.Contains(*read, ":") {
			*read = source + ":" + *read
		}
		rule, _ := r.rule()
		if err := r.put(c, ctx, tool, rule); err != nil {
			return err
		}
		if a.JSON {
			return a.WriteJSON(rule)
		}
		return a.Print("%s %s %s\n", command.Line(tool), r.set, command.Line(*read))
	})
	cmd.Flags().StringVar(read, "read", "", "the `name` of the tool that reads, at the same source")
	a.JSONFlag(cmd, args, "args", "the template of its arguments, in `JSON` (default {})")
	cmd.Flags().BoolVar(&none, "none", false, "remove what is set")
	r.flags(cmd)
	return cmd
}

func reconcile(a *command.App) *cobra.Command {
	var rule wire.ReconcileRule
	return newReadCommand(a, readRule[wire.ReconcileRule]{
		use: "reconcile [SOURCE:TOOL]",
		view: command.View[wire.ReconcileRule]{
			Empty: "No tool has a reconcile rule.", Head: []string{"TOOL", "READ", "ARGUMENTS", "HAPPENED", "RESEND"},
			Row: func(r wire.ReconcileRule) []string {
				return []string{r.Tool, r.Read, command.Compact(r.Args), r.Happened, yes(r.Resend)}
			},
		},
		list: (*client.Client).ReconcileRules, put: (*client.Client).PutReconcileRule, delete: (*client.Client).DeleteReconcileRule,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&rule.Happened, "happened", "", "the JSON `pointer` into its answer")
			cmd.Flags().BoolVar(&rule.Resend, "resend", false, "run again what is of class once and was not found")
		},
		rule: func() (wire.ReconcileRule, bool) {
			return rule, rule.Read != "" || rule.Happened != "" || len(rule.Args) > 0 || rule.Resend
		},
		set: "is reconciled by", removed: "has no reconcile rule",
	}, &rule.Args, &rule.Read)
}

func snapshot(a *command.App) *cobra.Command {
	var rule wire.SnapshotRule
	return newReadCommand(a, readRule[wire.SnapshotRule]{
		use: "snapshot [SOURCE:TOOL]",
		view: command.View[wire.SnapshotRule]{
			Empty: "No tool has snapshots.", Head: []string{"TOOL", "READ", "ARGUMENTS", "REQUIRED"},
			Row: func(r wire.SnapshotRule) []string {
				return []string{r.Tool, r.Read, command.Compact(r.Args), yes(r.Required)}
			},
		},
		list: (*client.Client).SnapshotRules, put: (*client.Client).PutSnapshotRule, delete: (*client.Client).DeleteSnapshotRule,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&rule.Required, "required", false, "do not make the call unless the read before it worked")
		},
		rule: func() (wire.SnapshotRule, bool) {
			return rule, rule.Read != "" || len(rule.Args) > 0 || rule.Required
		},
		set: "has snapshots by", removed: "has no snapshots",
	}, &rule.Args, &rule.Read)
}

// yes shows a boolean; false is empty.
func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
