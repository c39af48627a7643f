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

// newChange returns a command about one tool, whose name it checks.
func newChange(a *command.App, verb string, run func(ctx context.Context, c *client.Client, tool string) error) *cobra.Command {
	return command.New(a, verb+" SOURCE:TOOL", command.Arguments(1, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, args []string) error {
		if _, err := command.ToolArgument(args[0]); err != nil {
			return err
		}
		return run(ctx, c, args[0])
	})
}

func set(a *command.App) *cobra.Command {
	var r wire.ToolRule
	var recipients []string
	var nobody bool
	var jitter float64
	var cmd *cobra.Command
	cmd = newChange(a, "set", func(ctx context.Context, c *client.Client, tool string) error {
		if nobody && len(recipients) > 0 {
			return command.Misuse("give --recipient or --nobody, not both")
		}
		if nobody || len(recipients) > 0 {
			r.Recipients = new(append([]string{}, recipients...))
		}
		if cmd.Flags().Changed("jitter") {
			r.Retry.Jitter = &jitter
		}
		return a.Done(c.PutToolRule(ctx, tool, r), "set tool %s", tool)
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&recipients, "recipient", nil, "JSON `pointer` to the recipients, such as '/to/*' (repeatable)")
	flags.BoolVar(&nobody, "nobody", false, "the tool has no recipients")
	flags.StringArrayVar(&r.Scopes, "scope", nil, "require this `scope` of the employee (repeatable)")
	command.PositiveFlag(cmd, &r.Retry.MaxAttempts, "max-attempts", "maximum number of attempts, 1 to 100")
	command.DurationFlag(cmd, &r.Retry.Base, "base", "`delay` before the first retry, such as 2s")
	command.DurationFlag(cmd, &r.Retry.Cap, "cap", "maximum `delay` between retries, such as 10m")
	command.DurationFlag(cmd, &r.Timeout, "timeout", "timeout of a call without an answer or progress, 1s to 1h (default: the source's)")
	flags.Float64Var(&jitter, "jitter", 0, "random `share` of each delay, 0 to 1")
	return cmd
}

func override(a *command.App) *cobra.Command {
	var o wire.Overrides
	cmd := newChange(a, "override", func(ctx context.Context, c *client.Client, tool string) error {
		return a.Done(c.OverrideTool(ctx, tool, o), "set tool %s", tool)
	})
	command.EnumFlag(cmd, &o.Risk, "risk", "`risk` of the tool: read, write or danger", "read", "write", "danger")
	command.EnumFlag(cmd, &o.Effect, "effect", "`effect` class, which decides about retries: read, idempotent, keyed or once", "read", "idempotent", "keyed", "once")
	command.PositiveFlag(cmd, &o.MaxAttempts, "max-attempts", "maximum number of attempts, 1 to 100")
	return cmd
}

func describe(a *command.App) *cobra.Command {
	var d wire.ToolDescription
	var effects []string
	var harmless bool
	var by string
	var args json.RawMessage
	cmd := newChange(a, "describe", func(ctx context.Context, c *client.Client, tool string) error {
		switch {
		case harmless && len(effects) > 0:
			return command.Misuse("give --side-effect or --no-side-effects, not both")
		case by == "" && args != nil:
			return command.Misuse("--reverse-args needs --reverse-by, the tool that they are for")
		}
		if harmless || len(effects) > 0 {
			d.SideEffects = new(append([]string{}, effects...))
		}
		if by != "" {
			d.Reversal = &wire.Reversal{Tool: by, Args: args}
		}
		return a.Done(c.DescribeTool(ctx, tool, d), "described %s", tool)
	})
	flags := cmd.Flags()
	flags.StringVar(&d.Module, "module", "", "module, the first `word` of the full name")
	flags.StringVar(&d.Entity, "entity", "", "entity, the second `word`: the thing that a call acts on")
	flags.StringVar(&d.Action, "action", "", "action, the third `word`: the verb")
	flags.StringArrayVar(&effects, "side-effect", nil, "side effect of a call, in a few `words` (repeatable)")
	flags.BoolVar(&harmless, "no-side-effects", false, "a call changes nothing")
	flags.StringVar(&d.Headline, "headline", "", "`template` of one line about a call, as in: Refund {/amount} to {/customer}; needs policy:write")
	flags.StringVar(&by, "reverse-by", "", "`tool` that reverts a call, as source:name")
	a.JSONFlag(cmd, &args, "reverse-args", "argument template of the reversal, as `JSON` or @FILE")
	return cmd
}

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
	// set and removed are the verbs of messages, before the name of the read.
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
			return command.Misuse("name the tool as source:name")
		case tool == "":
			all, err := r.list(c, ctx)
			if err != nil {
				return err
			}
			return r.view.ShowPage(a)(wire.Page[S]{Items: all}, nil)
		case !ok || source == "" || name == "":
			return command.Misuse("name the tool as source:name")
		case none && given:
			return command.Misuse("--none cannot be combined with other flags")
		case none:
			return a.Done(r.delete(c, ctx, tool), "%s %s", tool, r.removed)
		case *read == "":
			return command.Misuse("--read, the reading tool, or --none is required")
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
	cmd.Flags().StringVar(read, "read", "", "`name` of the reading tool at the same source")
	a.JSONFlag(cmd, args, "args", "argument template of the read, as `JSON` (default {})")
	cmd.Flags().BoolVar(&none, "none", false, "remove the rule")
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
			cmd.Flags().StringVar(&rule.Happened, "happened", "", "JSON `pointer` to a value in the result of the read")
			cmd.Flags().BoolVar(&rule.Resend, "resend", false, "retry calls of effect class once that were not found")
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
			cmd.Flags().BoolVar(&rule.Required, "required", false, "require a successful read before the call")
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
