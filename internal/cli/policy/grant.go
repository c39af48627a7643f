package policy

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const policyGrantHelp = `A grant lets calls of one tool through that would wait for a person: of a
session, an employee or an automation, with certain arguments, for some time. It
is for the definition that the tool has now, and lets nothing through that is
denied, or that more than one person must approve. "approve --always" makes one
of an action.

To look, and to take one back, takes an operator's token; to make one takes an
administrator's.`

func policyGrants(a *command.App) *cobra.Command {
	return policyGroup("grant", "Let calls through beforehand: list, make, revoke", policyGrantHelp, `  countersign policy grant list
  countersign policy grant make shop:refund --session s-42 --pin /currency=EUR --for 1h
  countersign policy grant revoke 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b`, policyGrantList(a), policyGrantMake(a), policyGrantRevoke(a))
}

func policyGrantList(a *command.App) *cobra.Command {
	var ended bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the grants",
		Long:    "List the grants that hold, the latest first. With --json it is one object a\nline.",
		Example: "  countersign policy grant list\n  countersign policy grant list --ended",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Grants(ctx, ended)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			if len(all) == 0 {
				a.Note("There are none.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, g := range all {
				until := command.Local(&g.ExpiresAt)
				if g.RevokedAt != nil {
					until = "revoked by " + g.RevokedBy
				}
				rows[i] = []string{g.ID.String(), g.Tool.String(), grantScope(g), pinsText(g.Pins), until, g.By, g.Reason}
			}
			return command.Table(a.Out, []string{"GRANT", "TOOL", "FOR", "PINS", "UNTIL", "MADE BY", "REASON"}, rows)
		}),
	}
	cmd.Flags().BoolVar(&ended, "ended", false, "also those that expired or were revoked")
	return cmd
}

// grantScope says whose calls a grant is for.
func grantScope(g settings.Grant) string {
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
	if len(parts) == 0 {
		return "everybody"
	}
	return strings.Join(parts, ", ")
}

// pinsText says what must be in the arguments.
func pinsText(pins map[string]json.RawMessage) string {
	if len(pins) == 0 {
		return "any arguments"
	}
	parts := make([]string, 0, len(pins))
	for _, at := range slices.Sorted(maps.Keys(pins)) {
		parts = append(parts, at+"="+string(pins[at]))
	}
	return strings.Join(parts, " ")
}

func policyGrantMake(a *command.App) *cobra.Command {
	var g settings.Grant
	var employee, lasts string
	var pins []string
	cmd := &cobra.Command{
		Use:   "make SOURCE:TOOL",
		Short: "Let calls of a tool through beforehand",
		Long: `Let calls of a tool through beforehand, and print the grant's id. Without flags
it is for everybody and any arguments; it ends after 8 hours unless --for says
otherwise. A pin is a JSON Pointer and the value that must be there, which is
JSON or else a text.`,
		Example: `  countersign policy grant make shop:refund --session s-42 --pin /currency=EUR --for 1h
  countersign policy grant make mail:send --employee 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --pin '/to=["ana@example.org"]'`,
		Args: command.Arguments(1, 1, "a tool, as source:name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			var err error
			if g.Tool, err = command.ToolKey(args[0]); err != nil {
				return err
			}
			if g.Employee, err = command.EmployeeFlag(employee); err != nil {
				return err
			}
			if g.Pins, err = readPins(pins); err != nil {
				return err
			}
			if lasts != "" {
				d, err := envelope.ParseDuration(lasts)
				if err != nil {
					return command.Misuse("--for must be a time such as 90s, 15m, 2h or 1d")
				}
				g.For = time.Duration(d)
			}
			id, err := c.MakeGrant(ctx, g)
			return a.Done(err, "made grant %s", id)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&g.Session, "session", "", "only for this `session`")
	flags.StringVar(&employee, "employee", "", "only for the employee of this `id`")
	flags.StringVar(&g.Automation, "automation", "", "only under this `automation`")
	flags.StringArrayVar(&pins, "pin", nil, "only with this `pointer=value` in the arguments (may be given again)")
	flags.StringVar(&lasts, "for", "", "for this `time`, at most 90d (default 8h)")
	flags.StringVar(&g.Reason, "reason", "", "a `reason`")
	return cmd
}

// readPins reads places with their values.
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

func policyGrantRevoke(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Take a grant back",
		Long:    "Take a grant back. What was let through by it and is not sent yet then waits for\na person.",
		Example: "  countersign policy grant revoke 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		Args:    command.Arguments(1, 1, "the id of a grant"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return command.Misuse("the argument must be the id of a grant, which has 36 characters")
			}
			return a.Done(c.RevokeGrant(ctx, id), "revoked grant %s", id)
		}),
	}
}
