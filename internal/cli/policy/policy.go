// Package policy has the commands for what agents may do: the policy as a file,
// its modes, rules, grants and preferences, and trying it on the past.
package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/server/rest/policies"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Command returns the command policy.
func Command(a *command.App) *cobra.Command {
	cmd := command.NewGroup("policy", simulate(a), explain(a), modes(a), rules(a), grants(a), sessions(a), preferences(a))
	cmd.AddCommand(a.NewDocumentCommands(command.Document{
		Get: (*client.Client).Policy, Put: (*client.Client).PutPolicy, Validate: policies.CheckDocument,
	})...)
	return cmd
}

func explain(a *command.App) *cobra.Command {
	var q wire.Question
	var asks bool
	cmd := command.New(a, "explain SOURCE:TOOL [ARGUMENTS]", command.Arguments(1, 2, "a tool, as source:name, and its arguments in JSON, or @ and the name of a file that holds them"), func(ctx context.Context, c *client.Client, args []string) error {
		tool, err := command.ToolArgument(args[0])
		if err != nil {
			return err
		}
		if q.Tool = tool.String(); asks {
			q.Approval = envelope.ApprovalRequired
		}
		if len(args) > 1 {
			if q.Args, err = a.JSONText(args[1]); err != nil {
				return command.Misuse("the arguments %v", err)
			}
		}
		return command.Show(a, showExplanation)(c.Explain(ctx, q))
	})
	command.ScopeFlags(cmd, &q.Session, &q.Employee, &q.Automation, "as if")
	command.RiskFlag(cmd, &q.Risk, "the `risk` that the agent states: low, medium or high")
	cmd.Flags().BoolVar(&asks, "ask", false, "as if the agent asked for a person")
	return cmd
}

func showExplanation(a *command.App, e wire.Explanation) error {
	err := command.Table(a, e.Trace, []string{"LAYER", "SAYS", "RULE", "VERSION", "WHY"}, func(s wire.PolicyStep) []string {
		return []string{policy.LayerText(s.Layer), string(s.Said), cmp.Or(s.Rule, s.Tool), s.Version, s.Detail}
	})
	if err != nil {
		return err
	}
	return a.Print("\n%s: %s, because of %s\n", command.Line(e.Tool), e.Mode, command.Line(policy.SourceText(e.Source)))
}

// pinsText says what must be in the arguments.
func pinsText(pins map[string]json.RawMessage) string {
	var parts []string
	for _, at := range slices.Sorted(maps.Keys(pins)) {
		parts = append(parts, at+"="+string(pins[at]))
	}
	return cmp.Or(strings.Join(parts, " "), "any arguments")
}
