package policy

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const policyModeHelp = `A mode says what holds for the tools that a key covers: allow, require_approval
or deny. The most particular key holds, and an automation's own mode before the
organisation's. Where none is set, it follows from the tool's risk.

To look takes an operator's token, to set an administrator's.`

func policyModes(a *command.App) *cobra.Command {
	return policyGroup("mode", "Set what holds for tools: list, set, delete", policyModeHelp, `  countersign policy mode list
  countersign policy mode set 'mail:*' require_approval
  countersign policy mode set mail:send allow --automation newsletter
  countersign policy mode delete 'mail:*'`, policyModeList(a), policyModeSet(a), policyModeDelete(a))
}

func policyModeList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the modes",
		Long:    "List the modes. With --json it is one object a line.",
		Example: "  countersign policy mode list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Modes(ctx)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			if len(all) == 0 {
				a.Note("None is set: what holds follows from the risk of each tool.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, m := range all {
				rows[i] = []string{m.Pattern, m.Mode, cmp.Or(m.Automation, "all"), m.UpdatedBy, command.Local(&m.UpdatedAt)}
			}
			return command.Table(a.Out, []string{"KEY", "MODE", "AUTOMATION", "SET BY", "SET"}, rows)
		}),
	}
}

func policyModeSet(a *command.App) *cobra.Command {
	var automation string
	cmd := &cobra.Command{
		Use:   "set KEY MODE",
		Short: "Set the mode of the tools that a key covers",
		Long: `Set the mode of the tools that a key covers. It holds from then on, also for
what waits already: policy is asked again before an action is sent.`,
		Example: `  countersign policy mode set shop:refund require_approval
  countersign policy mode set '*' deny --automation nightly`,
		Args: command.Arguments(2, 2, "a key, such as mail:send or 'mail:*', and allow, require_approval or deny"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			mode, err := command.ModeWord(args[1])
			if err != nil {
				return err
			}
			return a.Done(c.PutModeOf(ctx, automation, args[0], mode), "%s is %s", args[0], mode)
		}),
	}
	cmd.Flags().StringVar(&automation, "automation", "", "only for what is proposed under this `automation`")
	return cmd
}

func policyModeDelete(a *command.App) *cobra.Command {
	var automation string
	cmd := &cobra.Command{
		Use:     "delete KEY",
		Short:   "Remove a mode",
		Long:    "Remove a mode. A less particular one holds then, or what follows from the\ntool's risk.",
		Example: "  countersign policy mode delete 'mail:*'",
		Args:    command.Arguments(1, 1, "the key of a mode"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.DeleteMode(ctx, automation, args[0]), "removed the mode of %s", args[0])
		}),
	}
	cmd.Flags().StringVar(&automation, "automation", "", "the one of this `automation`")
	return cmd
}

const policyPreferenceHelp = `A preference switches the tools that a key covers off, for everybody or for one
employee: calls of them are denied. It takes an operator's token.`

func policyPreferences(a *command.App) *cobra.Command {
	return policyGroup("preference", "Switch tools off: list, set, delete", policyPreferenceHelp, `  countersign policy preference list
  countersign policy preference set crm:contact.delete
  countersign policy preference delete crm:contact.delete`, policyPreferenceList(a), policyPreferenceSet(a), policyPreferenceDelete(a))
}

func policyPreferenceList(a *command.App) *cobra.Command {
	var employee string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what is switched off",
		Long: `List what is switched off. With --employee it is what holds for that one: its
own and everybody's. With --json it is one object a line.`,
		Example: "  countersign policy preference list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			id, err := command.EmployeeFlag(employee)
			if err != nil {
				return err
			}
			all, err := c.Preferences(ctx, id)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			if len(all) == 0 {
				a.Note("Nothing is switched off.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, p := range all {
				rows[i] = []string{p.Pattern, command.EmployeeName(p.Employee), p.UpdatedBy, command.Local(&p.UpdatedAt)}
			}
			return command.Table(a.Out, []string{"SWITCHED OFF", "FOR", "SET BY", "SET"}, rows)
		}),
	}
	cmd.Flags().StringVar(&employee, "employee", "", "what holds for the employee of this `id`")
	return cmd
}

func policyPreferenceSet(a *command.App) *cobra.Command {
	var employee string
	cmd := &cobra.Command{
		Use:     "set KEY",
		Short:   "Switch tools off",
		Long:    "Switch the tools that a key covers off, for everybody or for one employee.",
		Example: "  countersign policy preference set 'crm:*' --employee 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		Args:    command.Arguments(1, 1, "a key, such as mail:send or 'mail:*'"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := command.EmployeeFlag(employee)
			if err != nil {
				return err
			}
			return a.Done(c.PutPreference(ctx, id, args[0]), "switched %s off for %s", args[0], command.EmployeeName(id))
		}),
	}
	cmd.Flags().StringVar(&employee, "employee", "", "only for the employee of this `id`")
	return cmd
}

func policyPreferenceDelete(a *command.App) *cobra.Command {
	var employee string
	cmd := &cobra.Command{
		Use:     "delete KEY",
		Short:   "Switch tools on again",
		Long:    "Switch on again what \"preference set\" with the same key switched off.",
		Example: "  countersign policy preference delete crm:contact.delete",
		Args:    command.Arguments(1, 1, "the key that was switched off"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := command.EmployeeFlag(employee)
			if err != nil {
				return err
			}
			return a.Done(c.DeletePreference(ctx, id, args[0]), "switched %s on for %s", args[0], command.EmployeeName(id))
		}),
	}
	cmd.Flags().StringVar(&employee, "employee", "", "that of the employee of this `id`")
	return cmd
}

const policySessionHelp = `What a session may do narrows one conversation of an agent while it lasts. The
most particular key holds, and never loosens what the other layers say.

To look takes an operator's token, to set an administrator's.`

func policySessions(a *command.App) *cobra.Command {
	return policyGroup("session", "Narrow one session: list, set, delete", policySessionHelp, `  countersign policy session list
  countersign policy session set s-42 'mail:*' deny --for 1d
  countersign policy session delete s-42 'mail:*'`, policySessionList(a), policySessionSet(a), policySessionDelete(a))
}

func policySessionList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list [SESSION]",
		Short:   "List what narrows sessions",
		Long:    "List what narrows sessions, or one of them, and has not ended. With --json it is\none object a line.",
		Example: "  countersign policy session list\n  countersign policy session list s-42",
		Args:    command.Arguments(0, 1, "a session"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			all, err := c.SessionModes(ctx, command.Argument(args, 0))
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			if len(all) == 0 {
				a.Note("Nothing is set.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, m := range all {
				rows[i] = []string{m.Session, m.Pattern, string(m.Mode), command.Local(&m.ExpiresAt), m.UpdatedBy}
			}
			return command.Table(a.Out, []string{"SESSION", "KEY", "MODE", "UNTIL", "SET BY"}, rows)
		}),
	}
}

func policySessionSet(a *command.App) *cobra.Command {
	var lasts string
	cmd := &cobra.Command{
		Use:     "set SESSION KEY MODE",
		Short:   "Narrow what a session may do",
		Long:    "Narrow what a session may do with the tools that a key covers, for some time.",
		Example: "  countersign policy session set s-42 'mail:*' deny --for 1d\n  countersign policy session set s-42 '*' require_approval",
		Args:    command.Arguments(3, 3, "a session, a key such as 'mail:*', and allow, require_approval or deny"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			mode, err := command.ModeWord(args[2])
			if err != nil {
				return err
			}
			d, err := envelope.ParseDuration(lasts)
			if err != nil || time.Duration(d) < time.Second {
				return command.Misuse("--for must be a time such as 90s, 15m, 2h or 1d")
			}
			return a.Done(c.PutSessionMode(ctx, args[0], args[1], mode, time.Duration(d)), "%s is %s in session %s for %s", args[1], mode, args[0], d)
		}),
	}
	cmd.Flags().StringVar(&lasts, "for", "8h", "for this `time`, at most 30d")
	return cmd
}

func policySessionDelete(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "delete SESSION KEY",
		Short:   "Remove what narrows a session",
		Long:    "Remove what narrows a session. What others said of it holds then.",
		Example: "  countersign policy session delete s-42 'mail:*'",
		Args:    command.Arguments(2, 2, "a session, and the key that was set for it"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.DeleteSessionMode(ctx, args[0], args[1]), "removed %s of session %s", args[1], args[0])
		}),
	}
}
