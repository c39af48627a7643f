package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
)

const policyPreferenceHelp = `A preference switches the tools that a key covers off, for everybody or for one
employee: calls of them are denied. It takes an operator's token.`

func (a *app) policyPreferences() *cobra.Command {
	return policyGroup("preference", "Switch tools off: list, set, delete", policyPreferenceHelp, `  countersign policy preference list
  countersign policy preference set crm:contact.delete
  countersign policy preference delete crm:contact.delete`, a.policyPreferenceList(), a.policyPreferenceSet(), a.policyPreferenceDelete())
}

func (a *app) policyPreferenceList() *cobra.Command {
	var employee string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what is switched off",
		Long: `List what is switched off. With --employee it is what holds for that one: its
own and everybody's. With --json it is one object a line.`,
		Example: "  countersign policy preference list",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			id, err := employeeFlag(employee)
			if err != nil {
				return err
			}
			all, err := c.Preferences(ctx, id)
			if err != nil {
				return err
			}
			if a.json {
				return documents(a, all)
			}
			if len(all) == 0 {
				a.note("Nothing is switched off.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, p := range all {
				rows[i] = []string{p.Pattern, employeeName(p.Employee), p.UpdatedBy, local(&p.UpdatedAt)}
			}
			return table(a.sys.Out, []string{"SWITCHED OFF", "FOR", "SET BY", "SET"}, rows)
		}),
	}
	cmd.Flags().StringVar(&employee, "employee", "", "what holds for the employee of this `id`")
	return cmd
}

func (a *app) policyPreferenceSet() *cobra.Command {
	var employee string
	cmd := &cobra.Command{
		Use:     "set KEY",
		Short:   "Switch tools off",
		Long:    "Switch the tools that a key covers off, for everybody or for one employee.",
		Example: "  countersign policy preference set 'crm:*' --employee 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		Args:    arguments(1, 1, "a key, such as mail:send or 'mail:*'"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := employeeFlag(employee)
			if err != nil {
				return err
			}
			return a.done(c.PutPreference(ctx, id, args[0]), "switched %s off for %s", args[0], employeeName(id))
		}),
	}
	cmd.Flags().StringVar(&employee, "employee", "", "only for the employee of this `id`")
	return cmd
}

func (a *app) policyPreferenceDelete() *cobra.Command {
	var employee string
	cmd := &cobra.Command{
		Use:     "delete KEY",
		Short:   "Switch tools on again",
		Long:    "Switch on again what \"preference set\" with the same key switched off.",
		Example: "  countersign policy preference delete crm:contact.delete",
		Args:    arguments(1, 1, "the key that was switched off"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := employeeFlag(employee)
			if err != nil {
				return err
			}
			return a.done(c.DeletePreference(ctx, id, args[0]), "switched %s on for %s", args[0], employeeName(id))
		}),
	}
	cmd.Flags().StringVar(&employee, "employee", "", "that of the employee of this `id`")
	return cmd
}
