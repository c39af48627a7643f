package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/server/rest"
)

const limitsHelp = `All limits as one document, to be kept in a file beside the code: buckets, quiet
hours, employees, tools and the tenant's settings. The do-not-contact list and
pauses are not in it.

A section that the file leaves out is left alone. One that it has is made to be
exactly that: what is missing from it is removed, and buckets are retired.`

func (a *app) limits() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Keep all limits in a file: show, check, apply",
		Long:  limitsHelp,
		Example: `  countersign limits show > limits.yaml
  countersign limits check -f limits.yaml
  countersign limits apply -f limits.yaml
  countersign limits apply -f limits.yaml --apply`,
		Args: cobra.ArbitraryArgs,
		RunE: group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(a.limitsShow(), a.limitsCheck(), a.limitsApply(), a.limitsSession())
	return cmd
}

func (a *app) limitsShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Write all limits as a file",
		Long:    "Write all limits in YAML, or with --json in JSON. \"limits apply\" of it changes\nnothing. It takes an operator's token.",
		Example: "  countersign limits show > limits.yaml",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			doc, err := c.Limits(ctx)
			if err != nil {
				return err
			}
			return a.showPlaced(doc)
		}),
	}
}

func (a *app) limitsCheck() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a file of limits without a server",
		Long: `Check a file of limits, in YAML or JSON, without a server. What is wrong is
named as file:line:column with the field. Whether a bucket or a tool that it
names is there, only "limits apply" can tell.`,
		Example: "  countersign limits check -f limits.yaml",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.readPlaced(file, rest.CheckLimits)
			return a.done(err, "%s is in order", file)
		},
	}
	cmd.Flags().StringVarP(&file, fileFlag, "f", "", "the `file`, or - for standard input (required)")
	return cmd
}

func (a *app) limitsApply() *cobra.Command {
	var file string
	var apply bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make the limits what a file says",
		Long: `Make the limits what a file says, all of it or nothing. Without --apply it shows
what would change, and changes nothing. It takes an administrator's token.`,
		Example: "  countersign limits apply -f limits.yaml\n  countersign limits apply -f limits.yaml --apply",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			f, err := a.readPlaced(file, rest.CheckLimits)
			if err != nil {
				return err
			}
			changes, err := c.PutLimits(ctx, f.json, !apply)
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
