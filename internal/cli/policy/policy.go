// Package policy has the commands for what agents may do: the policy as a file,
// its modes, rules, grants and preferences, and trying it on the past.
package policy

import (
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
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

// Command returns the command policy.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Set what agents may do, and try it on the past",
		Long:  policyHelp,
		Example: `  countersign policy show > policy.yaml
  countersign policy simulate -f policy.yaml --since 168h
  countersign policy apply -f policy.yaml --apply
  countersign policy explain shop:refund '{"amount": 120}'`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(
		policyShow(a), policyCheck(a), policyApply(a), policySimulate(a), policyExplain(a),
		policyModes(a), policyRules(a), policyGrants(a), policySessions(a), policyPreferences(a),
	)
	return cmd
}

// policyGroup is a command of policy that only has others below it.
func policyGroup(use, short, long, example string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.ArbitraryArgs, RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(below...)
	return cmd
}
