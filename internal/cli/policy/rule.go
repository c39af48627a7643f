package policy

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const policyRuleHelp = `A rule about arguments is an expression in CEL and a mode: where the expression
is true of a call, the mode makes stricter what the other layers said. There is
no rule that allows: set the mode allow for the tool, and write rules for what
needs more. One that fails for a call, because an argument is missing or of
another kind, counts as true.

Expressions see args, tool.source, tool.name, tool.risk, tool.effect,
envelope.risk, envelope.automation, envelope.session, employee.id,
employee.known, employee.trust and employee.scopes.

To look takes an operator's token, to set an administrator's.`

func policyRules(a *command.App) *cobra.Command {
	return policyGroup("rule", "Set what arguments make stricter: list, set, delete", policyRuleHelp, `  countersign policy rule list
  countersign policy rule set large-refunds --key shop:refund --when 'args.amount > 100' --mode require_approval
  countersign policy rule delete large-refunds`, policyRuleList(a), policyRuleSet(a), policyRuleDelete(a))
}

func policyRuleList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the rules about arguments",
		Long:    "List the rules about arguments. With --json it is one object a line.",
		Example: "  countersign policy rule list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Rules(ctx)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			if len(all) == 0 {
				a.Note("There are none.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, r := range all {
				mode := r.Mode
				if !r.Enabled {
					mode += " (off)"
				}
				rows[i] = []string{r.ID, r.Pattern, mode, r.Expression, r.Reason, cmp.Or(r.Automation, "all"), r.UpdatedBy}
			}
			return command.Table(a.Out, []string{"RULE", "KEY", "MODE", "WHEN", "REASON", "AUTOMATION", "SET BY"}, rows)
		}),
	}
}

func policyRuleSet(a *command.App) *cobra.Command {
	var r settings.Rule
	var off bool
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Make or change a rule about arguments",
		Long: `Make a rule about arguments, or set it anew. The expression is compiled first:
what is wrong with it is named with its line and column.`,
		Example: `  countersign policy rule set large-refunds --key shop:refund --when 'args.amount > 100' --mode require_approval
  countersign policy rule set outside --key mail:send --when @outside.cel --mode deny --reason 'Mail to the outside'`,
		Args: command.Arguments(1, 1, "the id of the rule: small letters, digits, dots, dashes"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if r.Pattern == "" || r.Expression == "" || r.Mode == "" {
				return command.Misuse("--key, --when and --mode are required")
			}
			if err := command.OneOf("mode", r.Mode, "require_approval", "deny"); err != nil {
				return err
			}
			var err error
			if r.Expression, err = a.TextFlag("when", r.Expression); err != nil {
				return err
			}
			r.ID, r.Enabled = args[0], !off
			return a.Done(c.PutRule(ctx, r), "set rule %s", r.ID)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Pattern, "key", "", "the `key` of the tools that it is about (required)")
	flags.StringVar(&r.Expression, "when", "", "the `expression`, or @ and the name of a file that holds it (required)")
	flags.StringVar(&r.Mode, "mode", "", "the `mode` where it is true: require_approval or deny (required)")
	flags.StringVar(&r.Reason, "reason", "", "a `reason`, told where the rule applies")
	flags.StringVar(&r.Automation, "automation", "", "only for what is proposed under this `automation`")
	flags.BoolVar(&off, "off", false, "keep it, and do not ask it")
	command.Fixed(cmd, "mode", "require_approval", "deny")
	return cmd
}

func policyRuleDelete(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "delete ID",
		Short:   "Remove a rule about arguments",
		Long:    "Remove a rule about arguments. What waits for a person because of it goes on\nwaiting.",
		Example: "  countersign policy rule delete large-refunds",
		Args:    command.Arguments(1, 1, "the id of a rule"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.DeleteRule(ctx, args[0]), "removed rule %s", args[0])
		}),
	}
}
