// Package policy has the commands for policy: the policy as a file, its modes,
// rules, grants and preferences, and simulation on past actions.
package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
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
	cmd := command.NewGroup("policy", simulate(a), explain(a), matrix(a), danger(a), modes(a), rules(a), grants(a), usage(a), sessions(a), preferences(a))
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
	command.ScopeFlags(cmd, &q.Session, &q.Employee, &q.Automation, "evaluate for")
	command.RiskFlag(cmd, &q.Risk, "`risk` stated by the agent: low, medium or high")
	cmd.Flags().BoolVar(&asks, "ask", false, "evaluate as if the agent asked for approval")
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

func matrix(a *command.App) *cobra.Command {
	var f client.MatrixFilter
	view := command.View[wire.MatrixRow]{
		Empty: "No matching tools.", Head: []string{"TOOL", "RISK", "MODE", "BECAUSE OF", "RULES", "REVIEWS", "GRANTS"},
		Row: func(r wire.MatrixRow) []string {
			return []string{r.Tool, r.Risk, string(r.Mode), policy.SourceText(r.Source), strconv.Itoa(r.Rules), strconv.Itoa(r.Reviews), strconv.Itoa(r.Grants)}
		},
	}
	cmd := command.New(a, "matrix", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view.Show(a)(c.PolicyMatrix(ctx, f))
	})
	command.ScopeFlags(cmd, &f.Session, &f.Employee, &f.Automation, "evaluate for")
	cmd.Flags().StringVar(&f.Query, "query", "", "filter by `words`")
	return cmd
}

// danger shows or sets the mode of tools with the risk danger.
func danger(a *command.App) *cobra.Command {
	return command.New(a, "danger [MODE]", command.Arguments(0, 1, "deny or require_approval"), func(ctx context.Context, c *client.Client, args []string) error {
		if len(args) == 0 {
			doc, err := c.Policy(ctx)
			if err != nil {
				return err
			}
			var set struct {
				Danger envelope.Mode `json:"danger"`
			}
			if err := json.Unmarshal(doc, &set); err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(set)
			}
			return a.Print("%s\n", set.Danger)
		}
		mode, err := command.ModeArgument(args[0])
		if err != nil || mode == envelope.ModeAllow {
			return command.Misuse("the mode must be deny or require_approval; to allow a tool, use countersign policy mode set SOURCE:TOOL allow")
		}
		doc, err := json.Marshal(map[string]envelope.Mode{"danger": mode})
		if err != nil {
			return err
		}
		done, err := c.PutPolicy(ctx, doc, client.PutOptions{})
		if err != nil {
			return err
		}
		return a.ShowChanges(done)
	})
}

func modes(a *command.App) *cobra.Command {
	return command.NewGroup("mode", command.NewList(a, command.View[wire.Mode]{
		Empty: "No modes are set; the risk of each tool decides.", Head: []string{"KEY", "MODE", "AUTOMATION", "SET BY", "SET"},
		Row: func(m wire.Mode) []string {
			return []string{m.Tool, string(m.Mode), cmp.Or(m.Automation, "all"), m.UpdatedBy.Brief(), command.Local(&m.UpdatedAt)}
		},
	}, (*client.Client).Modes),
		a.CreateFlag(modeSet(a)), modeDelete(a))
}

func modeSet(a *command.App) *cobra.Command {
	var automation string
	cmd := command.New(a, "set KEY MODE", command.Arguments(2, 2, "a key, such as mail:send or 'mail:*', and allow, require_approval or deny"), func(ctx context.Context, c *client.Client, args []string) error {
		mode, err := command.ModeArgument(args[1])
		if err != nil {
			return err
		}
		return a.Done(c.PutMode(ctx, wire.Mode{Automation: automation, Tool: args[0], Mode: mode}), "%s is %s", args[0], mode)
	})
	command.AutomationFlag(cmd, &automation, "apply to this `automation` only")
	return cmd
}

func modeDelete(a *command.App) *cobra.Command {
	var automation string
	cmd := command.NewChange(a, "delete KEY", "a key that a mode is set for", "removed the mode of %s", func(c *client.Client, ctx context.Context, key string) error {
		return c.DeleteMode(ctx, automation, key)
	})
	command.AutomationFlag(cmd, &automation, "mode of this `automation`")
	return cmd
}

func sessions(a *command.App) *cobra.Command {
	remove := command.New(a, "delete SESSION KEY", command.Arguments(2, 2, "a session, and the key that was set for it"),
		func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.DeleteSessionMode(ctx, args[0], args[1]), "removed %s of session %s", args[1], args[0])
		})
	return command.NewGroup("session", sessionList(a), a.CreateFlag(sessionSet(a)), remove)
}

func sessionList(a *command.App) *cobra.Command {
	view := command.View[wire.SessionMode]{
		Empty: "Nothing is set.", Head: []string{"SESSION", "KEY", "MODE", "UNTIL", "SET BY"},
		Row: func(m wire.SessionMode) []string {
			return []string{m.Session, m.Tool, string(m.Mode), command.Local(&m.ExpiresAt), m.UpdatedBy.Brief()}
		},
	}
	return command.New(a, "list [SESSION]", command.Arguments(0, 1, "a session"), func(ctx context.Context, c *client.Client, args []string) error {
		return view.Show(a)(c.SessionModes(ctx, command.Argument(args, 0)))
	})
}

func sessionSet(a *command.App) *cobra.Command {
	expiresIn := envelope.Duration(8 * time.Hour)
	cmd := command.New(a, "set SESSION KEY MODE", command.Arguments(3, 3, "a session, a key such as 'mail:*', and allow, require_approval or deny"), func(ctx context.Context, c *client.Client, args []string) error {
		mode, err := command.ModeArgument(args[2])
		if err != nil {
			return err
		}
		m := wire.SessionMode{Session: args[0], Tool: args[1], Mode: mode, ExpiresIn: expiresIn}
		return a.Done(c.PutSessionMode(ctx, m), "%s is %s in session %s for %s", args[1], mode, args[0], expiresIn)
	})
	command.LifetimeFlag(cmd, &expiresIn, "expires-in", "lifetime: a `time` up to 30d (default 8h)")
	return cmd
}

func preferences(a *command.App) *cobra.Command {
	return command.NewGroup("preference", preferenceList(a),
		preferenceChange(a, "set", "off", func(c *client.Client, ctx context.Context, id envelope.EmployeeID, key string) error {
			return c.PutPreference(ctx, wire.Preference{Employee: id, Tool: key})
		}),
		preferenceChange(a, "delete", "on", (*client.Client).DeletePreference))
}

func preferenceList(a *command.App) *cobra.Command {
	var employee envelope.EmployeeID
	view := command.View[wire.Preference]{
		Empty: "Nothing is switched off.", Head: []string{"SWITCHED OFF", "FOR", "SET BY", "SET"},
		Row: func(p wire.Preference) []string {
			return []string{p.Tool, command.EmployeeName(p.Employee), p.UpdatedBy.Brief(), command.Local(&p.UpdatedAt)}
		},
	}
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view.Show(a)(c.Preferences(ctx, employee))
	})
	command.EmployeeFlag(cmd, &employee, "show preferences that apply to the employee with this `id`")
	return cmd
}

// preferenceChange returns a command that switches tools off or on.
func preferenceChange(a *command.App, verb, state string, change func(*client.Client, context.Context, envelope.EmployeeID, string) error) *cobra.Command {
	var employee envelope.EmployeeID
	cmd := command.New(a, verb+" KEY", command.Arguments(1, 1, "a key, such as mail:send or 'mail:*'"), func(ctx context.Context, c *client.Client, args []string) error {
		return a.Done(change(c, ctx, employee, args[0]), "switched %s %s for %s", args[0], state, command.EmployeeName(employee))
	})
	command.EmployeeFlag(cmd, &employee, "apply to the employee with this `id` only")
	return cmd
}

func rules(a *command.App) *cobra.Command {
	return command.NewGroup("rule", command.NewList(a, command.View[wire.Rule]{
		Empty: "No rules.", Head: []string{"RULE", "KEY", "MODE", "WHEN", "REASON", "AUTOMATION", "SET BY"},
		Row: func(r wire.Rule) []string {
			mode := string(r.Mode)
			if !r.Enabled {
				mode += " (off)"
			}
			return []string{r.ID, r.Tool, mode, r.Expression, r.Reason, cmp.Or(r.Automation, "all"), r.UpdatedBy.Brief()}
		},
	}, (*client.Client).Rules),
		ruleCheck(a), a.CreateFlag(ruleSet(a)),
		command.NewChange(a, "delete ID", "the id of a rule", "removed rule %s", (*client.Client).DeleteRule))
}

// usage returns the command usage, which counts the actions of rules and grants.
func usage(a *command.App) *cobra.Command {
	type row struct {
		kind string
		wire.Usage
	}
	return command.New(a, "usage", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return command.Show(a, func(a *command.App, u wire.PolicyUsage) error {
			var rows []row
			for _, r := range u.Rules {
				rows = append(rows, row{"rule", r})
			}
			for _, g := range u.Grants {
				rows = append(rows, row{"grant", g})
			}
			err := command.Table(a, rows, []string{"KIND", "ID", "ACTIONS", "LAST"}, func(r row) []string {
				return []string{r.kind, r.ID, strconv.Itoa(r.Count), command.Local(&r.LastAt)}
			})
			if err != nil {
				return err
			}
			return a.Print("\n%s\n", examined(u))
		})(c.PolicyUsage(ctx))
	})
}

// examined returns the sentence below the counts: whether they are of all actions.
func examined(u wire.PolicyUsage) string {
	if !u.Complete {
		return fmt.Sprintf("The latest %d actions since %s examined, and not all: each count is a lower bound.", u.Examined, command.Local(&u.Since))
	}
	return fmt.Sprintf("%d action(s) examined since %s; other rules and grants have none.", u.Examined, command.Local(&u.Since))
}

func ruleCheck(a *command.App) *cobra.Command {
	var in wire.RuleCheck
	cmd := command.New(a, "check", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		if in.Tool == "" || in.Expression == "" {
			return command.Misuse("--tool and --when are required")
		}
		checked, err := c.CheckRule(ctx, in)
		if err != nil {
			return err
		}
		if err := command.Show(a, showChecked)(checked, nil); err != nil {
			return err
		}
		if n := len(checked.Errors); n > 0 {
			return fmt.Errorf("%d mistake(s) in the expression", n)
		}
		return nil
	})
	flags := cmd.Flags()
	flags.StringVar(&in.Tool, "tool", "", "`pattern` of the tools, such as mail:send or mail:* (required)")
	a.TextFlag(cmd, &in.Expression, "when", "CEL `expression`, or @FILE (required)")
	command.AutomationFlag(cmd, &in.Automation, "check for this `automation` only")
	return cmd
}

// showChecked shows the mistakes of an expression, or its results for past
// actions.
func showChecked(a *command.App, r wire.RuleChecked) error {
	if r.Past == nil {
		err := command.Table(a, r.Errors, []string{"LINE", "COLUMN", "MISTAKE"}, func(e wire.ExpressionError) []string {
			return []string{strconv.Itoa(e.Line), strconv.Itoa(e.Column), e.Message}
		})
		if err != nil {
			return err
		}
		var names []string
		for _, n := range slices.Concat(r.Arguments, r.Variables) {
			names = append(names, n.Name+" ("+n.Type+")")
		}
		return a.Print("\nNames: %s\n", command.Line(strings.Join(names, ", ")))
	}
	type result struct {
		name string
		wire.RuleCount
	}
	rows := []result{{"true", r.Past.True}, {"false", r.Past.False}, {"failed, counts as true", r.Past.Failed}}
	err := command.Table(a, rows, []string{"RESULT", "ACTIONS", "LATEST"}, func(r result) []string {
		latest := ""
		if len(r.Actions) > 0 {
			latest = r.Actions[0].String()
		}
		return []string{r.name, strconv.Itoa(r.Count), latest}
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d action(s) examined since %s, %d covered.", r.Past.Examined, command.Local(&r.Past.Since), r.Past.Compared)
	if !r.Past.Complete {
		text += " There are more."
	}
	for _, reason := range r.Past.Reasons {
		text += " Failed: " + reason + "."
	}
	return a.Print("\n%s\n", text)
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
	flags.StringVar(&r.Tool, "tool", "", "`pattern` of the tools, such as mail:send or mail:* (required)")
	a.TextFlag(cmd, &r.Expression, "when", "CEL `expression`, or @FILE (required)")
	command.EnumFlag(cmd, &r.Mode, "mode", "`mode` if the expression is true: require_approval or deny (required)", "require_approval", "deny")
	flags.StringVar(&r.Reason, "reason", "", "`reason`, shown with every action that the rule applies to")
	command.AutomationFlag(cmd, &r.Automation, "apply to this `automation` only")
	flags.BoolVar(&off, "off", false, "store the rule without applying it")
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
		Empty: "No matching grants.", Head: []string{"GRANT", "TOOL", "FOR", "ARGUMENTS", "UNTIL", "MADE BY", "REASON"},
		Row: func(g wire.Grant) []string {
			until := command.Local(&g.ExpiresAt)
			if g.RevokedAt != nil {
				until = "revoked by " + g.RevokedBy.Brief()
			}
			return []string{g.ID.String(), g.Tool, grantScope(g), command.Held(g.Pins, g.Loose), until, g.CreatedBy.Brief(), g.Reason}
		},
	}
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view.Show(a)(c.Grants(ctx, ended))
	})
	cmd.Flags().BoolVar(&ended, "ended", false, "include expired and revoked grants")
	return cmd
}

// grantScope describes the calls that a grant is for.
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
	var pins, loose []string
	var preview bool
	cmd := command.New(a, "make SOURCE:TOOL", command.Arguments(1, 1, "a tool, as source:name"), func(ctx context.Context, c *client.Client, args []string) (err error) {
		if g.Pins, err = readPins(pins); err != nil {
			return err
		}
		g.Tool, g.Loose = args[0], command.LooseFlags(loose)
		if preview {
			shown, err := c.PreviewGrant(ctx, g)
			if err != nil {
				return err
			}
			return command.ShowGrant(a, shown)
		}
		id, err := c.MakeGrant(ctx, g)
		return a.Done(err, "created grant %s", id)
	})
	command.ScopeFlags(cmd, &g.Session, &g.Employee, &g.Automation, "limit to")
	cmd.Flags().StringArrayVar(&pins, "pin", nil, "require this value in the arguments, as `pointer=value`; arguments without --pin or --loose are not allowed (repeatable)")
	cmd.Flags().StringArrayVar(&loose, "loose", nil, "JSON `pointer` to an argument that may have any value, or all for every unpinned one (repeatable)")
	cmd.Flags().BoolVar(&preview, "preview", false, "show the past calls that the grant would have approved, without making it")
	command.LifetimeFlag(cmd, &g.ExpiresIn, "expires-in", "lifetime of the grant: a `time` up to 90d (default 8h)")
	cmd.Flags().StringVar(&g.Reason, "reason", "", "`reason`, for the audit log")
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
			return nil, command.Misuse("--pin %s is repeated; keep one", at)
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
