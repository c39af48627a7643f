package policy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/server/rest/policies"
)

const policyShowHelp = `Write the policy in YAML, or with --json in JSON: modes, rules, preferences and
review rules. "policy apply" of it changes nothing. Grants and what narrows
sessions are not in it: they end by themselves. It takes an operator's token.`

func policyShow(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Write the policy as a file",
		Long:    policyShowHelp,
		Example: "  countersign policy show > policy.yaml",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			doc, err := c.Policy(ctx)
			if err != nil {
				return err
			}
			return a.ShowDocument(doc)
		}),
	}
}

const policyCheckHelp = `Check a file of policy, in YAML or JSON, without a server. What is wrong is
named as file:line:column with the field, and in an expression with the place
within it. Whether a tool has the arguments that a rule names, only the server
can tell: "policy apply" without --apply asks it.`

func policyCheck(a *command.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Check a file of policy without a server",
		Long:    policyCheckHelp,
		Example: "  countersign policy check -f policy.yaml",
		Args:    command.Arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.ReadFile(file, policies.CheckDocument)
			return a.Done(err, "%s is in order", file)
		},
	}
	cmd.Flags().StringVarP(&file, command.FileFlag, "f", "", "the `file`, or - for standard input (required)")
	return cmd
}

const policyApplyHelp = `Make the policy what a file says, all of it or nothing. A section that the file
leaves out is left alone; one that it has is made to be exactly that, and what
is missing from it is removed.

Without --apply it shows what would change, and changes nothing. It takes an
administrator's token.`

func policyApply(a *command.App) *cobra.Command {
	var file string
	var apply bool
	cmd := &cobra.Command{
		Use:     "apply",
		Short:   "Make the policy what a file says",
		Long:    policyApplyHelp,
		Example: "  countersign policy apply -f policy.yaml\n  countersign policy apply -f policy.yaml --apply",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			f, err := a.ReadFile(file, policies.CheckDocument)
			if err != nil {
				return err
			}
			changes, err := c.PutPolicy(ctx, f.JSON, !apply)
			if err != nil {
				return f.Answered(err)
			}
			return a.ShowChanges(changes, apply)
		}),
	}
	cmd.Flags().StringVarP(&file, command.FileFlag, "f", "", "the `file`, or - for standard input (required)")
	cmd.Flags().BoolVar(&apply, "apply", false, "do it; without this nothing changes")
	return cmd
}
