// Package policy has the commands for what agents may do: the policy as a file,
// its modes, rules, grants and preferences, and trying it on the past.
package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/server/rest/policies"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

const policyHelp = `What agents may do: allow, require_approval or deny.

  modes        what holds for the tools that a key covers
  rules        what arguments make stricter, as CEL expressions
  grants       what is let through beforehand, until it ends
  sessions     what one session of an agent may do, until it ends
  preferences  what is switched off, for everybody or for one employee

A key is source:action, source:*, *:action or *; the most specific one holds.
Modes, rules, preferences and review rules can be kept in one file. Before such
a file holds, "simulate" tries it on what agents did.

To look takes an operator's token, to set an administrator's.`

// Command returns the command policy.
func Command(a *command.App) *cobra.Command {
	cmd := command.NewGroup("policy", "Set what agents may do, and try it on the past", policyHelp,
		`  countersign policy show > policy.yaml
  countersign policy simulate -f policy.yaml --since 168h
  countersign policy apply -f policy.yaml
  countersign policy apply -f policy.yaml --apply
  countersign policy explain shop:refund '{"amount": 120}'`,
		simulate(a), explain(a), modes(a), rules(a), grants(a), sessions(a), preferences(a))
	cmd.AddCommand(a.NewDocumentCommands(command.Document{
		Show: command.Help{
			Short: "Write the policy as a file",
			Long: `Write the policy in YAML, or with --json in JSON: modes, rules, preferences and
review rules. "policy apply" of it changes nothing. Grants and the modes of
sessions are not in it: they end by themselves. It takes an operator's token.`,
			Example: "  countersign policy show > policy.yaml",
		},
		Check: command.Help{
			Short: "Check a file of policy without a server",
			Long: `Check a file of policy, in YAML or JSON, without a server. What is wrong is
named as file:line:column with the field, and in an expression with the place
within it. Whether a tool has the arguments that a rule names, only the server
can tell: "policy apply" without --apply asks it.`,
			Example: "  countersign policy check -f policy.yaml",
		},
		Apply: command.Help{
			Short: "Set the policy to what a file says; a dry run without --apply",
			Long: `Set the policy to what a file says, all of it or nothing. A section that the
file leaves out is left alone; one that it has is made to be exactly that, and
what is missing from it is removed.

Without --apply it is a dry run: it shows what would change, and changes
nothing. It takes an administrator's token.`,
			Example: "  countersign policy apply -f policy.yaml\n  countersign policy apply -f policy.yaml --apply",
		},
		Get: (*client.Client).Policy, Put: (*client.Client).PutPolicy, Validate: policies.CheckDocument,
	})...)
	return cmd
}

func explain(a *command.App) *cobra.Command {
	var q wire.Question
	var asks bool
	cmd := &cobra.Command{
		Use:   "explain SOURCE:TOOL [ARGUMENTS]",
		Short: "Ask what policy would decide, and why",
		Long: `Ask what policy would decide about a call, and what every layer says of it.
Nothing is stored. Without arguments, rules about arguments and grants are not
asked. It takes an operator's token.`,
		Example: `  countersign policy explain shop:refund '{"amount": 120}'
  countersign policy explain mail:send @args.json --session-id s-42 --automation-id newsletter`,
		Args: command.Arguments(1, 2, "a tool, as source:name, and its arguments in JSON, or @ and the name of a file that holds them"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			q.Tool = envelope.Tool{Name: args[0]}
			if source, name, ok := strings.Cut(args[0], ":"); ok {
				q.Tool = envelope.Tool{Source: source, Name: name}
			}
			if asks {
				q.Approval = envelope.ApprovalRequired
			}
			if len(args) > 1 {
				var err error
				if q.Args, err = a.JSONText(args[1]); err != nil {
					return command.Misuse("the arguments %v", err)
				}
			}
			e, err := c.Explain(ctx, q)
			if err != nil {
				return err
			}
			return showExplanation(a, e)
		}),
	}
	command.ScopeFlags(cmd, &q.Session, &q.Employee, &q.Automation, "as if")
	command.RiskFlag(cmd, &q.Risk, "the `risk` that the agent states: low, medium or high")
	cmd.Flags().BoolVar(&asks, "ask", false, "as if the agent asked for a person")
	return cmd
}

func showExplanation(a *command.App, e wire.Explanation) error {
	if a.JSON {
		return a.WriteJSON(e)
	}
	rows := make([][]string, len(e.Trace))
	for i, s := range e.Trace {
		rows[i] = []string{s.Layer, string(s.Said), cmp.Or(s.Rule, s.Key), s.Version, s.Detail}
	}
	if err := a.Table([]string{"LAYER", "SAYS", "RULE", "VERSION", "WHY"}, rows); err != nil {
		return err
	}
	return a.Print("\n%s: %s, because of %s\n", command.Line(e.Key), e.Mode, command.Line(policy.SourceText(e.Source)))
}

// pinsText says what must be in the arguments.
func pinsText(pins map[string]json.RawMessage) string {
	if len(pins) == 0 {
		return "any arguments"
	}
	return joinSorted(pins, func(at string, value json.RawMessage) string { return at + "=" + string(value) })
}
