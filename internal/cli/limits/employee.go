package limits

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Employees returns the command employee.
func Employees(a *command.App) *cobra.Command {
	return command.NewGroup("employee", "Set how far agents are trusted: list, set, remove",
		`An employee is the identity that an agent acts for. Its trust is the highest
risk that may run without a person, and its scopes are what it may do at all: a
tool that needs contacts:write takes an employee that has it, or contacts:*.

The entry "default" holds for every employee without one, and for actions that
name nobody. Lowering either takes effect on what waits already.

To look takes an operator's token, to set an administrator's.`,
		`  countersign employee list
  countersign employee set default --trust low
  countersign employee set 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --trust medium --scope 'contacts:*'`,
		command.NewList(a, command.Help{
			Short: "List what employees may do", Long: "List what employees may do, the default entry first. With --json it is one\nobject a line.",
			Example: "  countersign employee list",
		}, command.View[wire.Employee]{
			Empty: "Nothing is set for any employee: trust and scopes bind nobody.", Head: []string{"EMPLOYEE", "NAME", "TRUST", "SCOPES"},
			Row: func(e wire.Employee) []string { return []string{e.ID, e.Name, e.Trust, strings.Join(e.Scopes, " ")} },
		}, func(ctx context.Context, c *client.Client) ([]wire.Employee, error) { return c.Employees(ctx) }),
		employeeSet(a),
		command.NewChange(a, "remove ID|default", command.Help{
			Short:   "Remove an employee's entry",
			Long:    "Remove an employee's entry. The default one holds for it then, if there is one;\nif there is none, nothing binds it.",
			Example: "  countersign employee remove 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		}, "an employee's id, or the word default", "removed what was set for the employee %s",
			func(ctx context.Context, c *client.Client, id string) error { return c.DeleteEmployee(ctx, id) }))
}

func employeeSet(a *command.App) *cobra.Command {
	var e wire.Employee
	cmd := &cobra.Command{
		Use:   "set ID|default",
		Short: "Set an employee's trust and scopes",
		Long: `Set an employee's trust and scopes, instead of what was set. Name every scope
that it shall have: one that no flag names is gone.`,
		Example: `  countersign employee set default --trust none
  countersign employee set 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --name Newsletter --trust medium --scope mail:send --scope 'contacts:*'`,
		Args: command.Arguments(1, 1, "an employee's id, or the word default"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if _, err := uuid.Parse(args[0]); err != nil && args[0] != "default" {
				return command.Misuse("an employee is a UUID, or the word default")
			}
			if e.Trust == "" {
				return command.Misuse("--trust is required: none, low, medium or high")
			}
			return a.Done(c.PutEmployee(ctx, args[0], e), "set employee %s: trust %s, %s scope(s)", args[0], e.Trust, strconv.Itoa(len(e.Scopes)))
		}),
	}
	flags := cmd.Flags()
	command.EnumFlag(cmd, &e.Trust, "trust", "the highest `risk` that runs without a person: none, low, medium or high (required)", "none", "low", "medium", "high")
	flags.StringArrayVar(&e.Scopes, "scope", nil, "a `scope` that it has, such as contacts:write or 'contacts:*' (may be given again)")
	flags.StringVar(&e.Name, "name", "", "a `name` for people")
	return cmd
}
