package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func rules(a *command.App) *cobra.Command {
	return command.NewGroup("rule", "Set what arguments make stricter: list, set, delete",
		`A rule about arguments is an expression in CEL and a mode: where the expression
is true of a call, the mode makes stricter what the other layers said. There is
no rule that allows: set the mode allow for the tool, and write rules for what
needs more. One that fails for a call, because an argument is missing or of
another kind, counts as true.

Expressions see args, tool.source, tool.name, tool.risk, tool.effect,
envelope.risk, envelope.automation, envelope.session, employee.id,
employee.known, employee.trust and employee.scopes.

To look takes an operator's token, to set an administrator's.`,
		`  countersign policy rule list
  countersign policy rule set large-refunds --key shop:refund --when 'args.amount > 100' --mode require_approval
  countersign policy rule delete large-refunds`,
		command.NewList(a, command.Help{Short: "List the rules about arguments", Example: "  countersign policy rule list"}, command.View[wire.Rule]{
			Empty: "There are none.", Head: []string{"RULE", "KEY", "MODE", "WHEN", "REASON", "AUTOMATION", "SET BY"},
			Row: func(r wire.Rule) []string {
				mode := string(r.Mode)
				if !r.Enabled {
					mode += " (off)"
				}
				return []string{r.ID, r.Key, mode, r.Expression, r.Reason, cmp.Or(r.Automation, "all"), r.UpdatedBy}
			},
		}, func(ctx context.Context, c *client.Client) ([]wire.Rule, error) { return c.Rules(ctx) }),
		ruleSet(a),
		command.NewChange(a, "delete ID", command.Help{
			Short: "Remove a rule about arguments", Long: "Remove a rule about arguments. What waits for a person because of it goes on\nwaiting.",
			Example: "  countersign policy rule delete large-refunds",
		}, "the id of a rule", "removed rule %s", func(ctx context.Context, c *client.Client, id string) error { return c.DeleteRule(ctx, id) }))
}

func ruleSet(a *command.App) *cobra.Command {
	var r wire.Rule
	var off bool
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Make or change a rule about arguments",
		Long: `Make a rule about arguments, or replace it. The expression is compiled first:
what is wrong with it is named with its line and column.`,
		Example: `  countersign policy rule set large-refunds --key shop:refund --when 'args.amount > 100' --mode require_approval
  countersign policy rule set outside --key mail:send --when @outside.cel --mode deny --reason 'Mail to the outside'`,
		Args: command.Arguments(1, 1, "the id of the rule: small letters, digits, dots, dashes"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if r.Key == "" || r.Expression == "" || r.Mode == "" {
				return command.Misuse("--key, --when and --mode are required")
			}
			r.Enabled = !off
			return a.Done(c.PutRule(ctx, args[0], r), "set rule %s", args[0])
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Key, "key", "", "the `key` of the tools that it is about (required)")
	a.TextFlag(cmd, &r.Expression, "when", "the `expression`, or @ and the name of a file that holds it (required)")
	command.EnumFlag(cmd, &r.Mode, "mode", "the `mode` where it is true: require_approval or deny (required)", "require_approval", "deny")
	flags.StringVar(&r.Reason, "reason", "", "a `reason`, told where the rule applies")
	flags.StringVar(&r.Automation, "automation-id", "", "only for what is proposed under this `automation`")
	flags.BoolVar(&off, "off", false, "keep it, and do not ask it")
	return cmd
}

func grants(a *command.App) *cobra.Command {
	return command.NewGroup("grant", "Let calls through beforehand: list, make, revoke",
		`A grant lets calls of one tool through that would wait for a person: of a
session, an employee or an automation, with certain arguments, for some time. It
is for the definition that the tool has now, and lets nothing through that is
denied, or that more than one person must approve. "approve --always" makes one
of an action.

To look, and to revoke one, takes an operator's token; to make one takes an
administrator's.`,
		`  countersign policy grant list
  countersign policy grant make shop:refund --session-id s-42 --pin /currency=EUR --expires-in 1h
  countersign policy grant revoke 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b`,
		grantList(a), grantMake(a),
		command.NewChange(a, "revoke ID", command.Help{
			Short: "Revoke a grant", Long: "Revoke a grant. What was let through by it and is not sent yet then waits for a\nperson.",
			Example: "  countersign policy grant revoke 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		}, "the id of a grant", "revoked grant %s", func(ctx context.Context, c *client.Client, text string) error {
			id, err := uuid.Parse(text)
			if err != nil {
				return command.Misuse("the argument must be the id of a grant, which has 36 characters")
			}
			return c.RevokeGrant(ctx, id)
		}))
}

func grantList(a *command.App) *cobra.Command {
	var ended bool
	cmd := command.NewList(a, command.Help{
		Short: "List the grants", Long: "List the grants that hold, the latest first. With --json it is one object a\nline.",
		Example: "  countersign policy grant list\n  countersign policy grant list --ended",
	}, command.View[wire.Grant]{
		Empty: "There are none.", Head: []string{"GRANT", "TOOL", "FOR", "PINS", "UNTIL", "MADE BY", "REASON"},
		Row: func(g wire.Grant) []string {
			until := command.Local(&g.ExpiresAt)
			if g.RevokedAt != nil {
				until = "revoked by " + g.RevokedBy
			}
			return []string{g.ID.String(), g.Key, grantScope(g), pinsText(g.Pins), until, g.CreatedBy, g.Reason}
		},
	}, func(ctx context.Context, c *client.Client) ([]wire.Grant, error) { return c.Grants(ctx, ended) })
	cmd.Flags().BoolVar(&ended, "ended", false, "also those that expired or were revoked")
	return cmd
}

// grantScope says whose calls a grant is for.
func grantScope(g wire.Grant) string {
	var parts []string
	if g.Session != "" {
		parts = append(parts, "session "+g.Session)
	}
	if g.Employee != (envelope.EmployeeID{}) {
		parts = append(parts, "employee "+g.Employee.String())
	}
	if g.Automation != "" {
		parts = append(parts, "automation "+g.Automation)
	}
	return cmp.Or(strings.Join(parts, ", "), "everybody")
}

// joinSorted writes the entries of a map in the order of its keys.
func joinSorted[V any](all map[string]V, text func(key string, value V) string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, text(key, all[key]))
	}
	return strings.Join(parts, " ")
}

func grantMake(a *command.App) *cobra.Command {
	var g wire.GrantInput
	var pins []string
	cmd := &cobra.Command{
		Use:   "make SOURCE:TOOL",
		Short: "Let calls of a tool through beforehand",
		Long: `Let calls of a tool through beforehand, and print the grant's id. Without flags
it is for everybody and any arguments; it ends after 8 hours unless --expires-in
says otherwise. A pin is a JSON Pointer and the value that must be there, which
is JSON or else a text.`,
		Example: `  countersign policy grant make shop:refund --session-id s-42 --pin /currency=EUR --expires-in 1h
  countersign policy grant make mail:send --employee-id 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --pin '/to=["ana@example.org"]'`,
		Args: command.Arguments(1, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) (err error) {
			if g.Pins, err = readPins(pins); err != nil {
				return err
			}
			g.Key = args[0]
			id, err := c.MakeGrant(ctx, g)
			return a.Done(err, "made grant %s", id)
		}),
	}
	command.ScopeFlags(cmd, &g.Session, &g.Employee, &g.Automation, "only")
	cmd.Flags().StringArrayVar(&pins, "pin", nil, "only with this `pointer=value` in the arguments (may be given again)")
	command.DurationFlag(cmd, &g.ExpiresIn, "expires-in", "for this `time`, at most 90d (default 8h)")
	cmd.Flags().StringVar(&g.Reason, "reason", "", "a `reason`")
	return cmd
}

// readPins reads pointers with their values.
func readPins(texts []string) (map[string]json.RawMessage, error) {
	pins := make(map[string]json.RawMessage, len(texts))
	for _, text := range texts {
		at, value, ok := strings.Cut(text, "=")
		if !ok || at != "" && at[0] != '/' {
			return nil, command.Misuse("--pin must be a pointer and a value, such as /currency=EUR")
		}
		if _, twice := pins[at]; twice {
			return nil, command.Misuse("--pin %s is there twice; keep one", at)
		}
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			var err error
			if raw, err = json.Marshal(value); err != nil {
				return nil, command.Misuse("--pin %s has a value that cannot be written as JSON", at)
			}
		}
		pins[at] = raw
	}
	return pins, nil
}
