package cli

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
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

func (a *app) toolSet() *cobra.Command {
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
		Args: arguments(1, 1, "a tool, as source:name"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			key, err := policy.ParseKey(args[0])
			if err != nil {
				return misuse("the argument must be a tool, as source:name")
			}
			r.Source, r.Name = key.Source, key.Action
			if nobody && len(recipients) > 0 {
				return misuse("give --recipient or --nobody, not both")
			}
			if nobody || len(recipients) > 0 {
				r.Recipients = new(append([]string{}, recipients...))
			}
			if err := readRetry(&r.Retry, base, capped, jitter); err != nil {
				return err
			}
			if err := r.Validate(); err != nil {
				return misuse("%s", fieldsText(err))
			}
			return a.done(c.PutToolRule(ctx, r), "set tool %s", key)
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
		to         *limits.Duration
	}{{"base", base, &r.Base}, {"cap", capped, &r.Cap}} {
		if f.text == "" {
			continue
		}
		d, err := limits.ParseDuration(f.text)
		if err != nil {
			return misuse("--%s: %v", f.flag, err)
		}
		*f.to = d
	}
	if !math.IsNaN(jitter) {
		r.Jitter = &jitter
	}
	return nil
}
