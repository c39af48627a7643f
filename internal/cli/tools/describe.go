package tools

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const toolSetHelp = `Say whom a tool writes to, what it takes to use it, and when it is tried again.
It replaces what was said before: what no flag says goes back to the defaults.

Recipients are JSON Pointers into the arguments, in which a star stands for
every element: /to/*, /message/channel. Without one they are guessed from the
tool's schema, which "tools list" shows; --nobody says that it writes to no one.

Retries double from --base up to --cap, and chance makes each shorter or longer
by up to the share --jitter. What a provider asks for with Retry-After is kept.`

func set(a *command.App) *cobra.Command {
	var r wire.ToolRule
	var recipients []string
	var nobody bool
	var jitter float64
	cmd := &cobra.Command{
		Use:   "set SOURCE:TOOL",
		Short: "Say whom a tool writes to, and when it is tried again",
		Long:  toolSetHelp,
		Example: `  countersign tools set mail:send_email --recipient '/to/*' --recipient '/cc/*' --scope mail:send
  countersign tools set crm:note --nobody --max-attempts 8 --base 2s --cap 10m --jitter 0.2`,
		Args: command.Arguments(1, 1, "a tool, as source:name"),
	}
	flags := cmd.Flags()
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		key, err := command.ToolArgument(args[0])
		if err != nil {
			return err
		}
		r.Source, r.Name = key.Source, key.Action
		if nobody && len(recipients) > 0 {
			return command.Misuse("give --recipient or --nobody, not both")
		}
		if nobody || len(recipients) > 0 {
			r.Recipients = new(append([]string{}, recipients...))
		}
		if flags.Changed("jitter") {
			r.Retry.Jitter = &jitter
		}
		return a.Done(c.PutToolRule(ctx, r), "set tool %s", key)
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

const toolOverrideHelp = `Replace what a source says of a tool: how risky it is, from which policy infers
its mode, and what repeating a call does, which retries depend on. It replaces
what was set before: what no flag says goes back to what follows from the
source.

The number of attempts that "tools set" gives comes before the one given here.`

func override(a *command.App) *cobra.Command {
	var o wire.Overrides
	cmd := &cobra.Command{
		Use:   "override SOURCE:TOOL",
		Short: "Say how risky a tool is, and what repeating it does",
		Long:  toolOverrideHelp,
		Example: `  countersign tools override mail:send_email --risk write --effect once
  countersign tools override crm:search --risk read --effect read --max-attempts 8`,
		Args: command.Arguments(1, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			key, err := command.ToolArgument(args[0])
			if err != nil {
				return err
			}
			o.Source, o.Name = key.Source, key.Action
			return a.Done(c.OverrideTool(ctx, o), "set tool %s", key)
		}),
	}
	command.EnumFlag(cmd, &o.Risk, "risk", "its `risk`: read, write or danger", "read", "write", "danger")
	command.EnumFlag(cmd, &o.Effect, "effect", "what repeating a call does, its `effect`: read, idempotent, keyed or once", "read", "idempotent", "keyed", "once")
	command.PositiveFlag(cmd, &o.MaxAttempts, "max-attempts", "how many attempts in all, 1 to 100")
	return cmd
}

const toolDescribeHelp = `Say what a tool is, what a call changes, and how it is undone. It replaces what
was said before: what no flag says is inferred, and without --reverse-by
nothing undoes a call.

A full name is module.entity.action; the module is inferred from the source,
the others from the tool's name.

An atomic workflow takes only tools that just read and tools that can be undone.
The arguments of the call that undoes are a template: a text that is wholly
$.inputs.<path> or $.outputs.<path> stands for what the call was given, or
answered; $$ at its beginning is a dollar sign. A path is names with dots
between, and [i] for an element.`

func describe(a *command.App) *cobra.Command {
	var d wire.ToolDescription
	var effects []string
	var harmless bool
	var by string
	var args json.RawMessage
	cmd := &cobra.Command{
		Use:   "describe SOURCE:TOOL",
		Short: "Say what a tool is, what it changes and how it is undone",
		Long:  toolDescribeHelp,
		Example: `  countersign tools describe crm:createContact --entity contact --side-effect "colleagues see it" \
      --reverse-by crm:deleteContact --reverse-args '{"id":"$.outputs.id"}'`,
		Args: command.Arguments(1, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, words []string) error {
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
			d.Source, d.Name = key.Source, key.Action
			return a.Done(c.DescribeTool(ctx, d), "described %s", key)
		}),
	}
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
