package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func rules(a *command.App) *cobra.Command {
	return command.NewGroup("rule", command.NewList(a, command.View[wire.Rule]{
		Empty: "There are none.", Head: []string{"RULE", "KEY", "MODE", "WHEN", "REASON", "AUTOMATION", "SET BY"},
		Row: func(r wire.Rule) []string {
			mode := string(r.Mode)
			if !r.Enabled {
				mode += " (off)"
			}
			return []string{r.ID, r.Tool, mode, r.Expression, r.Reason, cmp.Or(r.Automation, "all"), r.UpdatedBy}
		},
	}, (*client.Client).Rules),
		ruleSet(a),
		command.NewChange(a, "delete ID", "the id of a rule", "removed rule %s", (*client.Client).DeleteRule))
}

func ruleSet(a *command.App) *cobra.Command {
	var r wire.Rule
	var off bool
	cmd := command.New(a, "set ID", command.Arguments(1, 1, "the id of the rule: small letters, digits, dots, dashes"), func(ctx context.Context, c *client.Client, args []string) error {
		if r.Tool == "" || r.Expression == "" || r.Mode == "" {
			return command.Misuse("--tool, --when and --mode are required")
		}
		r.Enabled = !off
		return a.Done(c.PutRule(ctx, args[0], r), "set rule %s", args[0])
	})
	flags := cmd.Flags()
	flags.StringVar(&r.Tool, "tool", "", "the `pattern` of the tools that it is about, such as mail:send or mail:* (required)")
	a.TextFlag(cmd, &r.Expression, "when", "the `expression`, or @ and the name of a file that holds it (required)")
	command.EnumFlag(cmd, &r.Mode, "mode", "the `mode` where it is true: require_approval or deny (required)", "require_approval", "deny")
	flags.StringVar(&r.Reason, "reason", "", "a `reason`, told where the rule applies")
	flags.StringVar(&r.Automation, "automation-id", "", "only for what is proposed under this `automation`")
	flags.BoolVar(&off, "off", false, "keep it, and do not ask it")
	return cmd
}

func grants(a *command.App) *cobra.Command {
	return command.NewGroup("grant", grantList(a), grantMake(a),
		command.NewChange(a, "revoke ID", "the id of a grant", "revoked grant %s", func(c *client.Client, ctx context.Context, text string) error {
			id, err := uuid.Parse(text)
			if err != nil {
				return command.Misuse("the argument must be the id of a grant, which has 36 characters")
			}
			return c.RevokeGrant(ctx, id)
		}))
}

func grantList(a *command.App) *cobra.Command {
	var ended bool
	view := command.View[wire.Grant]{
		Empty: "There are none.", Head: []string{"GRANT", "TOOL", "FOR", "PINS", "UNTIL", "MADE BY", "REASON"},
		Row: func(g wire.Grant) []string {
			until := command.Local(&g.ExpiresAt)
			if g.RevokedAt != nil {
				until = "revoked by " + g.RevokedBy
			}
			return []string{g.ID.String(), g.Tool, grantScope(g), pinsText(g.Pins), until, g.CreatedBy, g.Reason}
		},
	}
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view.Show(a)(c.Grants(ctx, ended))
	})
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

func grantMake(a *command.App) *cobra.Command {
	var g wire.GrantInput
	var pins []string
	cmd := command.New(a, "make SOURCE:TOOL", command.Arguments(1, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, args []string) (err error) {
		if g.Pins, err = readPins(pins); err != nil {
			return err
		}
		g.Tool = args[0]
		id, err := c.MakeGrant(ctx, g)
		return a.Done(err, "made grant %s", id)
	})
	command.ScopeFlags(cmd, &g.Session, &g.Employee, &g.Automation, "only")
	cmd.Flags().StringArrayVar(&pins, "pin", nil, "only with this `pointer=value` in the arguments (may be given again)")
	command.LifetimeFlag(cmd, &g.ExpiresIn, "expires-in", "for this `time`, at most 90d (default 8h)")
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
