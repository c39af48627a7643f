package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const policyExplainHelp = `Ask what policy would decide about a call, and what every layer says of it.
Nothing is stored. Without arguments, rules about arguments and grants are not
asked. It takes an operator's token.`

func policyExplain(a *command.App) *cobra.Command {
	var q client.Question
	var employee, risk string
	var asks bool
	cmd := &cobra.Command{
		Use:   "explain SOURCE:TOOL [ARGUMENTS]",
		Short: "Ask what policy would decide, and why",
		Long:  policyExplainHelp,
		Example: `  countersign policy explain shop:refund '{"amount": 120}'
  countersign policy explain mail:send @args.json --session s-42 --automation newsletter`,
		Args: command.Arguments(1, 2, "a tool, as source:name, and its arguments in JSON, or @ and the name of a file that holds them"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			q.Tool = envelope.Tool{Name: args[0]}
			if source, name, ok := strings.Cut(args[0], ":"); ok {
				q.Tool = envelope.Tool{Source: source, Name: name}
			}
			if err := command.OneOf("risk", risk, "low", "medium", "high"); err != nil {
				return err
			}
			q.Risk = envelope.Risk(risk)
			if asks {
				q.Approval = envelope.ApprovalRequired
			}
			var err error
			if q.Employee, err = command.EmployeeFlag(employee); err != nil {
				return err
			}
			text := command.Argument(args, 1)
			if text != "" && text[0] != '@' && !json.Valid([]byte(text)) {
				return command.Misuse("the arguments must be a JSON object, or @ and the name of a file that holds one; mind the shell's quotes")
			}
			if q.Args, err = a.JsonFlag("arguments", text); err != nil {
				return err
			}
			e, err := c.Explain(ctx, q)
			if err != nil {
				return err
			}
			return showExplanation(a, e)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&employee, "employee", "", "on behalf of the employee of this `id`")
	flags.StringVar(&q.Session, "session", "", "in this `session`")
	flags.StringVar(&q.Automation, "automation", "", "under this `automation`")
	flags.StringVar(&risk, "risk", "", "the `risk` that the agent states: low, medium or high")
	flags.BoolVar(&asks, "ask", false, "as if the agent asked for a person")
	command.Fixed(cmd, "risk", "low", "medium", "high")
	return cmd
}

func showExplanation(a *command.App, e client.Explanation) error {
	if a.JSON {
		return a.WriteJSON(e)
	}
	rows := make([][]string, len(e.Trace))
	for i, s := range e.Trace {
		rows[i] = []string{s.Layer, string(s.Said), cmp.Or(s.Rule, s.Key), s.Version, s.Detail}
	}
	if err := command.Table(a.Out, []string{"LAYER", "SAYS", "RULE", "VERSION", "WHY"}, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.Out, "\n%s: %s, from %s\n", command.Line(e.Key), e.Mode, command.Line(e.Source)); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
