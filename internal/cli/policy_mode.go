package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
)

const policyModeHelp = `A mode says what holds for the tools that a key covers: allow, require_approval
or deny. The most particular key holds, and an automation's own mode before the
organisation's. Where none is set, it follows from the tool's risk.

To look takes an operator's token, to set an administrator's.`

func (a *app) policyModes() *cobra.Command {
	return policyGroup("mode", "Set what holds for tools: list, set, delete", policyModeHelp, `  countersign policy mode list
  countersign policy mode set 'mail:*' require_approval
  countersign policy mode set mail:send allow --automation newsletter
  countersign policy mode delete 'mail:*'`, a.policyModeList(), a.policyModeSet(), a.policyModeDelete())
}

func (a *app) policyModeList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the modes",
		Long:    "List the modes. With --json it is one object a line.",
		Example: "  countersign policy mode list",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Modes(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return documents(a, all)
			}
			if len(all) == 0 {
				a.note("None is set: what holds follows from the risk of each tool.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, m := range all {
				rows[i] = []string{m.Pattern, m.Mode, cmp.Or(m.Automation, "all"), m.UpdatedBy, local(&m.UpdatedAt)}
			}
			return table(a.sys.Out, []string{"KEY", "MODE", "AUTOMATION", "SET BY", "SET"}, rows)
		}),
	}
}

func (a *app) policyModeSet() *cobra.Command {
	var automation string
	cmd := &cobra.Command{
		Use:   "set KEY MODE",
		Short: "Set the mode of the tools that a key covers",
		Long: `Set the mode of the tools that a key covers. It holds from then on, also for
what waits already: policy is asked again before an action is sent.`,
		Example: `  countersign policy mode set shop:refund require_approval
  countersign policy mode set '*' deny --automation nightly`,
		Args: arguments(2, 2, "a key, such as mail:send or 'mail:*', and allow, require_approval or deny"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			mode, err := modeWord(args[1])
			if err != nil {
				return err
			}
			return a.done(c.PutModeOf(ctx, automation, args[0], mode), "%s is %s", args[0], mode)
		}),
	}
	cmd.Flags().StringVar(&automation, "automation", "", "only for what is proposed under this `automation`")
	return cmd
}

func (a *app) policyModeDelete() *cobra.Command {
	var automation string
	cmd := &cobra.Command{
		Use:     "delete KEY",
		Short:   "Remove a mode",
		Long:    "Remove a mode. A less particular one holds then, or what follows from the\ntool's risk.",
		Example: "  countersign policy mode delete 'mail:*'",
		Args:    arguments(1, 1, "the key of a mode"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			return a.done(c.DeleteMode(ctx, automation, args[0]), "removed the mode of %s", args[0])
		}),
	}
	cmd.Flags().StringVar(&automation, "automation", "", "the one of this `automation`")
	return cmd
}
