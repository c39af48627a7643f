package tools

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

const toolSetHelp = `Say whom a tool writes to, what it takes to use it, and when it is tried again.
It replaces what was said before: what no flag says goes back to the defaults.

Recipients are JSON Pointers into the arguments, in which a star stands for
every element: /to/*, /message/channel. Without one they are guessed from the
tool's schema, which "tools list" shows; --nobody says that it writes to no one.

Retries double from --base up to --cap, and chance makes each shorter or longer
by up to the share --jitter. What a provider asks for with Retry-After is kept.`

func toolSet(a *command.App) *cobra.Command {
	var r limits.ToolRule
	var recipients []string
	var nobody bool
	var base, capped string
	jitter := math.NaN()
	cmd := &cobra.Command{
		Use:   "set SOURCE:TOOL",
		Short: "Say whom a tool writes to, and when it is tried again",
		Long:  toolSetHelp,
		Example: `  countersign tools set mail:send_email --recipient '/to/*' --recipient '/cc/*' --scope mail:send
  countersign tools set crm:note --nobody --max-attempts 8 --base 2s --cap 10m --jitter 0.2`,
		Args: command.Arguments(1, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			key, err := policy.ParseKey(args[0])
			if err != nil {
				return command.Misuse("the argument must be a tool, as source:name")
			}
			r.Source, r.Name = key.Source, key.Action
			if nobody && len(recipients) > 0 {
				return command.Misuse("give --recipient or --nobody, not both")
			}
			if nobody || len(recipients) > 0 {
				r.Recipients = new(append([]string{}, recipients...))
			}
			if err := readRetry(&r.Retry, base, capped, jitter); err != nil {
				return err
			}
			if err := r.Validate(); err != nil {
				return command.Misuse("%s", command.FieldsText(err))
			}
			return a.Done(c.PutToolRule(ctx, r), "set tool %s", key)
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&recipients, "recipient", nil, "a `pointer` to whom it writes, such as '/to/*' (may be given again)")
	flags.BoolVar(&nobody, "nobody", false, "it writes to no one")
	flags.StringArrayVar(&r.Scopes, "scope", nil, "a `scope` that an employee must have to use it (may be given again)")
	flags.IntVar(&r.Retry.MaxAttempts, "max-attempts", 0, "how many attempts in all, 1 to 100")
	flags.StringVar(&base, "base", "", "the first `pause` before it is tried again, such as 2s")
	flags.StringVar(&capped, "cap", "", "the longest `pause`, such as 10m")
	flags.Float64Var(&jitter, "jitter", jitter, "the `share` of a pause left to chance, 0 to 1")
	flags.Lookup("jitter").DefValue = ""
	return cmd
}

// readRetry reads what flags say of retries.
func readRetry(r *limits.Retry, base, capped string, jitter float64) error {
	for _, f := range []struct {
		flag, text string
		to         *envelope.Duration
	}{{"base", base, &r.Base}, {"cap", capped, &r.Cap}} {
		if f.text == "" {
			continue
		}
		d, err := envelope.ParseDuration(f.text)
		if err != nil {
			return command.Misuse("--%s: %v", f.flag, err)
		}
		*f.to = d
	}
	if !math.IsNaN(jitter) {
		r.Jitter = &jitter
	}
	return nil
}

const toolOverrideHelp = `Say what is known better of a tool than its source says: how risky it is, which
policy infers its mode from, and what repeating a call of it does, which
retries go by. It replaces what was said before: what no flag says goes back to
what follows from the source.

The number of attempts that "tools set" gives comes before the one given here.`

func toolOverride(a *command.App) *cobra.Command {
	var o client.Overrides
	var effect string
	cmd := &cobra.Command{
		Use:   "override SOURCE:TOOL",
		Short: "Say how risky a tool is, and what repeating it does",
		Long:  toolOverrideHelp,
		Example: `  countersign tools override mail:send_email --risk write --effect once
  countersign tools override crm:search --risk read --effect read --max-attempts 8`,
		Args: command.Arguments(1, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			key, err := command.ToolKey(args[0])
			if err != nil {
				return err
			}
			if err := command.OneOf("risk", o.Risk, "read", "write", "danger"); err != nil {
				return err
			}
			if err := command.OneOf("effect", effect, "read", "idempotent", "keyed", "once"); err != nil {
				return err
			}
			if o.MaxAttempts < 0 || o.MaxAttempts > 100 {
				return command.Misuse("--max-attempts must be from 1 to 100")
			}
			o.Source, o.Name, o.Effect = key.Source, key.Action, envelope.Effect(effect)
			return a.Done(c.ConfigureTool(ctx, o), "set tool %s", key)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Risk, "risk", "", "its `risk`: read, write or danger")
	flags.StringVar(&effect, "effect", "", "what repeating a call does, its `effect`: read, idempotent, keyed or once")
	flags.IntVar(&o.MaxAttempts, "max-attempts", 0, "how many attempts in all, 1 to 100")
	command.Fixed(cmd, "risk", "read", "write", "danger")
	command.Fixed(cmd, "effect", "read", "idempotent", "keyed", "once")
	return cmd
}

const toolDescribeHelp = `Say what a tool is, what a call changes, and how it is undone. It replaces what
was said before: what no flag says is inferred, and without --reverse-by
nothing undoes a call.

A full name is module.entity.action; the module is inferred from the source,
the others from the tool's name.

An atomic batch takes only tools that just read and tools that can be undone.
In the arguments of the call that undoes, a text that is wholly $inputs/<path>
or $outputs/<path> is replaced by that part of what the call was given, or
answered. The path is a JSON Pointer, such as $outputs/items/0/id. $$ at the
beginning of a text is a dollar sign.`

func toolDescribe(a *command.App) *cobra.Command {
	var d client.ToolDescription
	var effects []string
	var harmless bool
	var by, args string
	cmd := &cobra.Command{
		Use:   "describe SOURCE:TOOL",
		Short: "Say what a tool is, what it changes and how it is undone",
		Long:  toolDescribeHelp,
		Example: `  countersign tools describe crm:createContact --entity contact --side-effect "colleagues see it" \
      --reverse-by crm:deleteContact --reverse-args '{"id":"$outputs/id"}'`,
		Args: command.Arguments(1, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, words []string) error {
			key, err := command.ToolKey(words[0])
			if err != nil {
				return err
			}
			switch {
			case harmless && len(effects) > 0:
				return command.Misuse("give --side-effect or --no-side-effects, not both")
			case by == "" && args != "":
				return command.Misuse("--reverse-args needs --reverse-by, the tool that they are for")
			}
			if harmless || len(effects) > 0 {
				d.SideEffects = new(append([]string{}, effects...))
			}
			if by != "" {
				d.Reversal = &client.Reversal{Tool: by}
				if d.Reversal.Args, err = a.JsonFlag("reverse-args", args); err != nil {
					return err
				}
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
	flags.StringVar(&args, "reverse-args", "", "the template of its arguments, as `JSON` or @file")
	return cmd
}
