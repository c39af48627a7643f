package cli

import (
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

const policyHelp = `What agents may do: allow, require_approval or deny.

  modes        what holds for the tools that a key covers
  rules        what arguments make stricter, as CEL expressions
  grants       what is let through beforehand, until it ends
  sessions     what one conversation may do, until it ends
  preferences  what is switched off, for everybody or for one employee

A key is source:action, source:*, *:action or *; the most particular one holds.
Modes, rules, preferences and review rules can be kept in one file. Before such
a file holds, "simulate" tries it on what agents did.`

func (a *app) policies() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Set what agents may do, and try it on the past",
		Long:  policyHelp,
		Example: `  countersign policy show > policy.yaml
  countersign policy simulate -f policy.yaml --since 168h
  countersign policy apply -f policy.yaml --apply
  countersign policy explain shop:refund '{"amount": 120}'`,
		Args: cobra.ArbitraryArgs,
		RunE: group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(
		a.policyShow(), a.policyCheck(), a.policyApply(), a.policySimulate(), a.policyExplain(),
		a.policyModes(), a.policyRules(), a.policyGrants(), a.policySessions(), a.policyPreferences(),
	)
	return cmd
}

// policyGroup is a command of policy that only has others below it.
func policyGroup(use, short, long, example string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.ArbitraryArgs, RunE: group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(below...)
	return cmd
}

// modeWord reads a mode.
func modeWord(text string) (envelope.Mode, error) {
	if mode := envelope.Mode(text); mode.Valid() {
		return mode, nil
	}
	return "", misuse("the mode must be allow, require_approval or deny")
}

// employeeFlag reads an employee's id; nothing is the zero id.
func employeeFlag(text string) (envelope.EmployeeID, error) {
	if text == "" {
		return envelope.EmployeeID{}, nil
	}
	id, err := limits.ParseEmployee(text)
	if err != nil || id == (envelope.EmployeeID{}) {
		return id, misuse("--employee must be an id of 36 characters")
	}
	return id, nil
}

// employeeName shows whom something is for; the zero id is everybody.
func employeeName(id envelope.EmployeeID) string {
	if id == (envelope.EmployeeID{}) {
		return "everybody"
	}
	return id.String()
}
