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
	return command.NewGroup("employee", command.NewList(a, command.View[wire.Employee]{
		Empty: "Nothing is set for any employee: trust and scopes bind nobody.", Head: []string{"EMPLOYEE", "NAME", "TRUST", "SCOPES"},
		Row: func(e wire.Employee) []string { return []string{e.ID, e.Name, e.Trust, strings.Join(e.Scopes, " ")} },
	}, (*client.Client).Employees),
		employeeSet(a),
		command.NewChange(a, "remove ID|default", "an employee's id, or the word default", "removed what was set for the employee %s",
			(*client.Client).DeleteEmployee))
}

func employeeSet(a *command.App) *cobra.Command {
	var e wire.Employee
	cmd := command.New(a, "set ID|default", command.Arguments(1, 1, "an employee's id, or the word default"), func(ctx context.Context, c *client.Client, args []string) error {
		if _, err := uuid.Parse(args[0]); err != nil && args[0] != "default" {
			return command.Misuse("an employee is a UUID, or the word default")
		}
		if e.Trust == "" {
			return command.Misuse("--trust is required: none, low, medium or high")
		}
		return a.Done(c.PutEmployee(ctx, args[0], e), "set employee %s: trust %s, %s scope(s)", args[0], e.Trust, strconv.Itoa(len(e.Scopes)))
	})
	flags := cmd.Flags()
	command.EnumFlag(cmd, &e.Trust, "trust", "the highest `risk` that runs without a person: none, low, medium or high (required)", "none", "low", "medium", "high")
	flags.StringArrayVar(&e.Scopes, "scope", nil, "a `scope` that it has, such as contacts:write or 'contacts:*' (may be given again)")
	flags.StringVar(&e.Name, "name", "", "a `name` for people")
	return cmd
}
