package limits

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

const employeeHelp = `An employee is the identity that an agent acts for. Its trust is the highest
risk that may run without a person, and its scopes are what it may do at all: a
tool that needs contacts:write takes an employee that has it, or contacts:*.

The entry "default" holds for every employee without one, and for actions that
name nobody. Lowering either takes effect on what waits already.`

// Employees returns the command employee.
func Employees(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "employee",
		Short: "Set how far agents are trusted: list, set, remove",
		Long:  employeeHelp,
		Example: `  countersign employee list
  countersign employee set default --trust low
  countersign employee set 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --trust medium --scope 'contacts:*'`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(employeeList(a), employeeSet(a), employeeRemove(a))
	return cmd
}

func employeeList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List what employees may do",
		Long:    "List what employees may do, the default entry first. With --json it is one\nobject a line.",
		Example: "  countersign employee list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Employees(ctx)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			if len(all) == 0 {
				a.Note("Nothing is set for any employee: trust and scopes bind nobody.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, e := range all {
				rows[i] = []string{limits.EmployeeText(e.ID), e.Name, string(e.Trust), strings.Join(e.Scopes, " ")}
			}
			return command.Table(a.Out, []string{"EMPLOYEE", "NAME", "TRUST", "SCOPES"}, rows)
		}),
	}
}

func employeeSet(a *command.App) *cobra.Command {
	var e limits.Employee
	var trust string
	cmd := &cobra.Command{
		Use:   "set ID|default",
		Short: "Set an employee's trust and scopes",
		Long: `Set an employee's trust and scopes, instead of what was set. Name every scope
that it shall have: one that no flag names is gone.`,
		Example: `  countersign employee set default --trust none
  countersign employee set 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --name Newsletter --trust medium --scope mail:send --scope 'contacts:*'`,
		Args: command.Arguments(1, 1, "an employee's id, or the word default"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			var err error
			if e.ID, err = limits.ParseEmployee(args[0]); err != nil {
				return command.Misuse("%v", err)
			}
			e.Trust = policy.Trust(trust)
			if err := e.Validate(); err != nil {
				return command.Misuse("%s", command.FieldsText(err))
			}
			return a.Done(c.PutEmployee(ctx, e), "set employee %s: trust %s, %d scope(s)", limits.EmployeeText(e.ID), trust, len(e.Scopes))
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&trust, "trust", "", "the highest `risk` that runs without a person: none, low, medium or high (required)")
	flags.StringArrayVar(&e.Scopes, "scope", nil, "a `scope` that it has, such as contacts:write or 'contacts:*' (may be given again)")
	flags.StringVar(&e.Name, "name", "", "a `name` for people")
	command.Fixed(cmd, "trust", string(policy.TrustNone), string(policy.TrustLow), string(policy.TrustMedium), string(policy.TrustHigh))
	return cmd
}

func employeeRemove(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "remove ID|default",
		Short:   "Remove an employee's entry",
		Long:    "Remove an employee's entry. The default one holds for it then, if there is one;\nif there is none, nothing binds it.",
		Example: "  countersign employee remove 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		Args:    command.Arguments(1, 1, "an employee's id, or the word default"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := limits.ParseEmployee(args[0])
			if err != nil {
				return command.Misuse("%v", err)
			}
			return a.Done(c.DeleteEmployee(ctx, id), "removed what was set for the employee %s", limits.EmployeeText(id))
		}),
	}
}
