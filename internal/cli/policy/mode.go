package policy

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func modes(a *command.App) *cobra.Command {
	return command.NewGroup("mode", "Set what holds for tools: list, set, delete",
		`A mode says what holds for the tools that a key covers: allow, require_approval
or deny. The most specific key holds, and an automation's own mode before the
organisation's. Where none is set, it follows from the tool's risk.

To look takes an operator's token, to set an administrator's.`,
		`  countersign policy mode list
  countersign policy mode set 'mail:*' require_approval
  countersign policy mode set mail:send allow --automation-id newsletter
  countersign policy mode delete 'mail:*'`,
		command.NewList(a, command.Help{Short: "List the modes", Example: "  countersign policy mode list"}, command.View[wire.Mode]{
			Empty: "None is set: what holds follows from the risk of each tool.", Head: []string{"KEY", "MODE", "AUTOMATION", "SET BY", "SET"},
			Row: func(m wire.Mode) []string {
				return []string{m.Key, string(m.Mode), cmp.Or(m.Automation, "all"), m.UpdatedBy, command.Local(&m.UpdatedAt)}
			},
		}, func(ctx context.Context, c *client.Client) ([]wire.Mode, error) { return c.Modes(ctx) }),
		modeSet(a), modeDelete(a))
}

func modeSet(a *command.App) *cobra.Command {
	var automation string
	cmd := &cobra.Command{
		Use:   "set KEY MODE",
		Short: "Set the mode of the tools that a key covers",
		Long: `Set the mode of the tools that a key covers. It holds from then on, also for
what waits already: policy is asked again before an action is sent.`,
		Example: `  countersign policy mode set shop:refund require_approval
  countersign policy mode set '*' deny --automation-id nightly`,
		Args: command.Arguments(2, 2, "a key, such as mail:send or 'mail:*', and allow, require_approval or deny"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			mode, err := command.ModeArgument(args[1])
			if err != nil {
				return err
			}
			return a.Done(c.PutMode(ctx, wire.Mode{Automation: automation, Key: args[0], Mode: mode}), "%s is %s", args[0], mode)
		}),
	}
	cmd.Flags().StringVar(&automation, "automation-id", "", "only for what is proposed under this `automation`")
	return cmd
}

func modeDelete(a *command.App) *cobra.Command {
	var automation string
	cmd := command.NewChange(a, "delete KEY", command.Help{
		Short: "Remove a mode", Long: "Remove a mode. What holds then follows from other keys or from the tool's risk.",
		Example: "  countersign policy mode delete 'mail:*'",
	}, "a key that a mode is set for", "removed the mode of %s", func(ctx context.Context, c *client.Client, key string) error {
		return c.DeleteMode(ctx, automation, key)
	})
	cmd.Flags().StringVar(&automation, "automation-id", "", "that of this `automation`")
	return cmd
}

func sessions(a *command.App) *cobra.Command {
	return command.NewGroup("session", "Narrow one session: list, set, delete",
		`The modes of a session narrow what one session of an agent may do while it
lasts. The most specific key holds, and never loosens what the other layers say.

To look takes an operator's token, to set an administrator's.`,
		`  countersign policy session list
  countersign policy session set s-42 'mail:*' deny --expires-in 1d
  countersign policy session delete s-42 'mail:*'`,
		sessionList(a), sessionSet(a), &cobra.Command{
			Use: "delete SESSION KEY", Short: "Remove a mode of a session",
			Long:    "Remove a mode of a session. What the other layers say of it holds then.",
			Example: "  countersign policy session delete s-42 'mail:*'",
			Args:    command.Arguments(2, 2, "a session, and the key that was set for it"),
			RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
				return a.Done(c.DeleteSessionMode(ctx, args[0], args[1]), "removed %s of session %s", args[1], args[0])
			}),
		})
}

func sessionList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "list [SESSION]", Short: "List the modes of sessions",
		Long:    "List the modes of sessions, or of one, that have not ended. With --json it is\none object a line.",
		Example: "  countersign policy session list\n  countersign policy session list s-42",
		Args:    command.Arguments(0, 1, "a session"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			all, err := c.SessionModes(ctx, command.Argument(args, 0))
			if err != nil {
				return err
			}
			return command.View[wire.SessionMode]{
				Empty: "Nothing is set.", Head: []string{"SESSION", "KEY", "MODE", "UNTIL", "SET BY"},
				Row: func(m wire.SessionMode) []string {
					return []string{m.Session, m.Key, string(m.Mode), command.Local(&m.ExpiresAt), m.UpdatedBy}
				},
			}.Show(a, all)
		}),
	}
}

func sessionSet(a *command.App) *cobra.Command {
	expiresIn := envelope.Duration(8 * time.Hour)
	cmd := &cobra.Command{
		Use: "set SESSION KEY MODE", Short: "Narrow what a session may do",
		Long:    "Narrow what a session may do with the tools that a key covers, for some time.",
		Example: "  countersign policy session set s-42 'mail:*' deny --expires-in 1d\n  countersign policy session set s-42 '*' require_approval",
		Args:    command.Arguments(3, 3, "a session, a key such as 'mail:*', and allow, require_approval or deny"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			mode, err := command.ModeArgument(args[2])
			if err != nil {
				return err
			}
			m := wire.SessionMode{Session: args[0], Key: args[1], Mode: mode, ExpiresIn: expiresIn}
			return a.Done(c.PutSessionMode(ctx, m), "%s is %s in session %s for %s", args[1], mode, args[0], expiresIn)
		}),
	}
	command.DurationFlag(cmd, &expiresIn, "expires-in", "for this `time`, at most 30d (default 8h)")
	return cmd
}

func preferences(a *command.App) *cobra.Command {
	return command.NewGroup("preference", "Switch tools off: list, set, delete",
		`A preference switches the tools that a key covers off, for everybody or for one
employee: calls of them are denied. It takes an operator's token.`,
		`  countersign policy preference list
  countersign policy preference set crm:contact.delete
  countersign policy preference delete crm:contact.delete`,
		preferenceList(a),
		preferenceChange(a, "set", "off", command.Help{
			Short: "Switch tools off", Long: "Switch the tools that a key covers off, for everybody or for one employee.",
			Example: "  countersign policy preference set 'crm:*' --employee-id 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		}, func(ctx context.Context, c *client.Client, id envelope.EmployeeID, key string) error {
			return c.PutPreference(ctx, wire.Preference{Employee: id, Key: key})
		}),
		preferenceChange(a, "delete", "on", command.Help{
			Short: "Switch tools on again", Long: "Switch on again what \"preference set\" with the same key switched off.",
			Example: "  countersign policy preference delete crm:contact.delete",
		}, func(ctx context.Context, c *client.Client, id envelope.EmployeeID, key string) error {
			return c.DeletePreference(ctx, id, key)
		}))
}

func preferenceList(a *command.App) *cobra.Command {
	var employee envelope.EmployeeID
	cmd := command.NewList(a, command.Help{
		Short:   "List what is switched off",
		Long:    "List what is switched off. With --employee-id it is what is switched off for\nthat employee or for everybody. With --json it is one object a line.",
		Example: "  countersign policy preference list",
	}, command.View[wire.Preference]{
		Empty: "Nothing is switched off.", Head: []string{"SWITCHED OFF", "FOR", "SET BY", "SET"},
		Row: func(p wire.Preference) []string {
			return []string{p.Key, command.EmployeeName(p.Employee), p.UpdatedBy, command.Local(&p.UpdatedAt)}
		},
	}, func(ctx context.Context, c *client.Client) ([]wire.Preference, error) {
		return c.Preferences(ctx, employee)
	})
	command.EmployeeFlag(cmd, &employee, "what holds for the employee of this `id`")
	return cmd
}

// preferenceChange returns a command that switches tools off or on.
func preferenceChange(a *command.App, verb, state string, help command.Help, change func(context.Context, *client.Client, envelope.EmployeeID, string) error) *cobra.Command {
	var employee envelope.EmployeeID
	cmd := &cobra.Command{
		Use: verb + " KEY", Short: help.Short, Long: help.Long, Example: help.Example, Args: command.Arguments(1, 1, "a key, such as mail:send or 'mail:*'"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(change(ctx, c, employee, args[0]), "switched %s %s for %s", args[0], state, command.EmployeeName(employee))
		}),
	}
	command.EmployeeFlag(cmd, &employee, "only for the employee of this `id`")
	return cmd
}
