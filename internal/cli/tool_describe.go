package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

const toolOverrideHelp = `Say what is known better of a tool than its source says: how risky it is, which
policy infers its mode from, and what repeating a call of it does, which
retries go by. It replaces what was said before: what no flag says goes back to
what follows from the source.

The number of attempts that "tools set" gives comes before the one given here.`

func (a *app) toolOverride() *cobra.Command {
	var o client.Overrides
	var effect string
	cmd := &cobra.Command{
		Use:   "override SOURCE:TOOL",
		Short: "Say how risky a tool is, and what repeating it does",
		Long:  toolOverrideHelp,
		Example: `  countersign tools override mail:send_email --risk write --effect once
  countersign tools override crm:search --risk read --effect read --max-attempts 8`,
		Args: arguments(1, 1, "a tool, as source:name"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			key, err := toolKey(args[0])
			if err != nil {
				return err
			}
			if err := oneOf("risk", o.Risk, "read", "write", "danger"); err != nil {
				return err
			}
			if err := oneOf("effect", effect, "read", "idempotent", "keyed", "once"); err != nil {
				return err
			}
			if o.MaxAttempts < 0 || o.MaxAttempts > 100 {
				return misuse("--max-attempts must be from 1 to 100")
			}
			o.Source, o.Name, o.Effect = key.Source, key.Action, envelope.Effect(effect)
			return a.done(c.ConfigureTool(ctx, o), "set tool %s", key)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Risk, "risk", "", "its `risk`: read, write or danger")
	flags.StringVar(&effect, "effect", "", "what repeating a call does, its `effect`: read, idempotent, keyed or once")
	flags.IntVar(&o.MaxAttempts, "max-attempts", 0, "how many attempts in all, 1 to 100")
	fixed(cmd, "risk", "read", "write", "danger")
	fixed(cmd, "effect", "read", "idempotent", "keyed", "once")
	return cmd
}

const toolDescribeHelp = `Say what a tool is, what a call changes, and how it is undone. It replaces what
was said before: what no flag says is inferred, and without --reverse-by
nothing undoes a call.

A full name is module.entity.action; the module is inferred from the source,
the others from the tool's name.

An atomic batch takes only tools that just read and tools that can be undone.
The arguments of the call that undoes are a template: a text that is wholly
$.inputs.<path> or $.outputs.<path> stands for what the call was given, or
answered; $$ at its beginning is a dollar sign. A path is names with dots
between, and [i] for an element.`

func (a *app) toolDescribe() *cobra.Command {
	var d client.ToolDescription
	var effects []string
	var harmless bool
	var by, args string
	cmd := &cobra.Command{
		Use:   "describe SOURCE:TOOL",
		Short: "Say what a tool is, what it changes and how it is undone",
		Long:  toolDescribeHelp,
		Example: `  countersign tools describe crm:createContact --entity contact --side-effect "colleagues see it" \
      --reverse-by crm:deleteContact --reverse-args '{"id":"$.outputs.id"}'`,
		Args: arguments(1, 1, "a tool, as source:name"),
		RunE: a.run(func(ctx context.Context, c *client.Client, words []string) error {
			key, err := toolKey(words[0])
			if err != nil {
				return err
			}
			switch {
			case harmless && len(effects) > 0:
				return misuse("give --side-effect or --no-side-effects, not both")
			case by == "" && args != "":
				return misuse("--reverse-args needs --reverse-by, the tool that they are for")
			}
			if harmless || len(effects) > 0 {
				d.SideEffects = new(append([]string{}, effects...))
			}
			if by != "" {
				d.Reversal = &client.Reversal{Tool: by}
				if d.Reversal.Args, err = a.jsonFlag("reverse-args", args); err != nil {
					return err
				}
			}
			d.Source, d.Name = key.Source, key.Action
			return a.done(c.DescribeTool(ctx, d), "described %s", key)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&d.Module, "module", "", "the first `word` of its full name")
	flags.StringVar(&d.Entity, "entity", "", "the second `word`: what it acts on")
	flags.StringVar(&d.Action, "action", "", "the third `word`: what it does")
	flags.StringArrayVar(&effects, "side-effect", nil, "what a call changes, in a few `words` (may be given again)")
	flags.BoolVar(&harmless, "no-side-effects", false, "it changes nothing")
	flags.StringVar(&by, "reverse-by", "", "the `tool` that undoes a call, as source:name")
	flags.StringVar(&args, "reverse-args", "", "the template of its arguments, as `JSON` or @file")
	return cmd
}
