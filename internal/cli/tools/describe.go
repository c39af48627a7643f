package tools

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func set(a *command.App) *cobra.Command {
	var r wire.ToolRule
	var recipients []string
	var nobody bool
	var jitter float64
	cmd := command.New(a, "set SOURCE:TOOL", command.Arguments(1, 1, "a tool, as source:name"), nil)
	flags := cmd.Flags()
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		key, err := command.ToolArgument(args[0])
		if err != nil {
			return err
		}
		if nobody && len(recipients) > 0 {
			return command.Misuse("give --recipient or --nobody, not both")
		}
		if nobody || len(recipients) > 0 {
			r.Recipients = new(append([]string{}, recipients...))
		}
		if flags.Changed("jitter") {
			r.Retry.Jitter = &jitter
		}
		return a.Done(c.PutToolRule(ctx, key.String(), r), "set tool %s", key)
	})
	flags.StringArrayVar(&recipients, "recipient", nil, "a `pointer` to whom it writes, such as '/to/*' (may be given again)")
	flags.BoolVar(&nobody, "nobody", false, "it writes to no one")
	flags.StringArrayVar(&r.Scopes, "scope", nil, "a `scope` that an employee must have to use it (may be given again)")
	command.PositiveFlag(cmd, &r.Retry.MaxAttempts, "max-attempts", "how many attempts in all, 1 to 100")
	command.DurationFlag(cmd, &r.Retry.Base, "base", "the first `pause` before it is tried again, such as 2s")
	command.DurationFlag(cmd, &r.Retry.Cap, "cap", "the longest `pause`, such as 10m")
	flags.Float64Var(&jitter, "jitter", 0, "the `share` of a pause left to chance, 0 to 1")
	return cmd
}

func override(a *command.App) *cobra.Command {
	var o wire.Overrides
	cmd := command.New(a, "override SOURCE:TOOL", command.Arguments(1, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, args []string) error {
		key, err := command.ToolArgument(args[0])
		if err != nil {
			return err
		}
		return a.Done(c.OverrideTool(ctx, key.String(), o), "set tool %s", key)
	})
	command.EnumFlag(cmd, &o.Risk, "risk", "its `risk`: read, write or danger", "read", "write", "danger")
	command.EnumFlag(cmd, &o.Effect, "effect", "what repeating a call does, its `effect`: read, idempotent, keyed or once", "read", "idempotent", "keyed", "once")
	command.PositiveFlag(cmd, &o.MaxAttempts, "max-attempts", "how many attempts in all, 1 to 100")
	return cmd
}

func describe(a *command.App) *cobra.Command {
	var d wire.ToolDescription
	var effects []string
	var harmless bool
	var by string
	var args json.RawMessage
	cmd := command.New(a, "describe SOURCE:TOOL", command.Arguments(1, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, words []string) error {
		key, err := command.ToolArgument(words[0])
		if err != nil {
			return err
		}
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
		return a.Done(c.DescribeTool(ctx, key.String(), d), "described %s", key)
	})
	flags := cmd.Flags()
	flags.StringVar(&d.Module, "module", "", "the first `word` of its full name")
	flags.StringVar(&d.Entity, "entity", "", "the second `word`: what it acts on")
	flags.StringVar(&d.Action, "action", "", "the third `word`: what it does")
	flags.StringArrayVar(&effects, "side-effect", nil, "what a call changes, in a few `words` (may be given again)")
	flags.BoolVar(&harmless, "no-side-effects", false, "it changes nothing")
	flags.StringVar(&by, "reverse-by", "", "the `tool` that undoes a call, as source:name")
	a.JSONFlag(cmd, &args, "reverse-args", "the template of its arguments, as `JSON` or @file")
	return cmd
}
