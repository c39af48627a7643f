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
	return command.NewGroup("mode", command.NewList(a, command.View[wire.Mode]{
		Empty: "None is set: what holds follows from the risk of each tool.", Head: []string{"KEY", "MODE", "AUTOMATION", "SET BY", "SET"},
		Row: func(m wire.Mode) []string {
			return []string{m.Tool, string(m.Mode), cmp.Or(m.Automation, "all"), m.UpdatedBy, command.Local(&m.UpdatedAt)}
		},
	}, (*client.Client).Modes),
		modeSet(a), modeDelete(a))
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
	cmd.Flags().StringVar(&automation, "automation-id", "", "only for what is proposed under this `automation`")
	return cmd
}

func modeDelete(a *command.App) *cobra.Command {
	var automation string
	cmd := command.NewChange(a, "delete KEY", "a key that a mode is set for", "removed the mode of %s", func(c *client.Client, ctx context.Context, key string) error {
		return c.DeleteMode(ctx, automation, key)
	})
	cmd.Flags().StringVar(&automation, "automation-id", "", "that of this `automation`")
	return cmd
}

func sessions(a *command.App) *cobra.Command {
	remove := command.New(a, "delete SESSION KEY", command.Arguments(2, 2, "a session, and the key that was set for it"),
		func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.DeleteSessionMode(ctx, args[0], args[1]), "removed %s of session %s", args[1], args[0])
		})
	return command.NewGroup("session", sessionList(a), sessionSet(a), remove)
}

func sessionList(a *command.App) *cobra.Command {
	view := command.View[wire.SessionMode]{
		Empty: "Nothing is set.", Head: []string{"SESSION", "KEY", "MODE", "UNTIL", "SET BY"},
		Row: func(m wire.SessionMode) []string {
			return []string{m.Session, m.Tool, string(m.Mode), command.Local(&m.ExpiresAt), m.UpdatedBy}
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
	command.LifetimeFlag(cmd, &expiresIn, "expires-in", "for this `time`, at most 30d (default 8h)")
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
			return []string{p.Tool, command.EmployeeName(p.Employee), p.UpdatedBy, command.Local(&p.UpdatedAt)}
		},
	}
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view.Show(a)(c.Preferences(ctx, employee))
	})
	command.EmployeeFlag(cmd, &employee, "what holds for the employee of this `id`")
	return cmd
}

// preferenceChange returns a command that switches tools off or on.
func preferenceChange(a *command.App, verb, state string, change func(*client.Client, context.Context, envelope.EmployeeID, string) error) *cobra.Command {
	var employee envelope.EmployeeID
	cmd := command.New(a, verb+" KEY", command.Arguments(1, 1, "a key, such as mail:send or 'mail:*'"), func(ctx context.Context, c *client.Client, args []string) error {
		return a.Done(change(c, ctx, employee, args[0]), "switched %s %s for %s", args[0], state, command.EmployeeName(employee))
	})
	command.EmployeeFlag(cmd, &employee, "only for the employee of this `id`")
	return cmd
}
