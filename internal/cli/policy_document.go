package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/server/rest"
)

const policyShowHelp = `Write the policy in YAML, or with --json in JSON: modes, rules, preferences and
review rules. "policy apply" of it changes nothing. Grants and what narrows
sessions are not in it: they end by themselves. It takes an operator's token.`

func (a *app) policyShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Write the policy as a file",
		Long:    policyShowHelp,
		Example: "  countersign policy show > policy.yaml",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			doc, err := c.Policy(ctx)
			if err != nil {
				return err
			}
			return a.showPlaced(doc)
		}),
	}
}

const policyCheckHelp = `Check a file of policy, in YAML or JSON, without a server. What is wrong is
named as file:line:column with the field, and in an expression with the place
within it. Whether a tool has the arguments that a rule names, only the server
can tell: "policy apply" without --apply asks it.`

func (a *app) policyCheck() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Check a file of policy without a server",
		Long:    policyCheckHelp,
		Example: "  countersign policy check -f policy.yaml",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.readPlaced(file, rest.CheckPolicy)
			return a.done(err, "%s is in order", file)
		},
	}
	cmd.Flags().StringVarP(&file, fileFlag, "f", "", "the `file`, or - for standard input (required)")
	return cmd
}

const policyApplyHelp = `Make the policy what a file says, all of it or nothing. A section that the file
leaves out is left alone; one that it has is made to be exactly that, and what
is missing from it is removed.

Without --apply it shows what would change, and changes nothing. It takes an
administrator's token.`

func (a *app) policyApply() *cobra.Command {
	var file string
	var apply bool
	cmd := &cobra.Command{
		Use:     "apply",
		Short:   "Make the policy what a file says",
		Long:    policyApplyHelp,
		Example: "  countersign policy apply -f policy.yaml\n  countersign policy apply -f policy.yaml --apply",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			f, err := a.readPlaced(file, rest.CheckPolicy)
			if err != nil {
				return err
			}
			changes, err := c.PutPolicy(ctx, f.json, !apply)
			if err != nil {
				return f.answered(err)
			}
			return a.showChanges(changes, apply)
		}),
	}
	cmd.Flags().StringVarP(&file, fileFlag, "f", "", "the `file`, or - for standard input (required)")
	cmd.Flags().BoolVar(&apply, "apply", false, "do it; without this nothing changes")
	return cmd
}
