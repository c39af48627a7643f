package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

const policySessionHelp = `What a session may do narrows one conversation of an agent while it lasts. The
most particular key holds, and never loosens what the other layers say.

To look takes an operator's token, to set an administrator's.`

func (a *app) policySessions() *cobra.Command {
	return policyGroup("session", "Narrow one session: list, set, delete", policySessionHelp, `  countersign policy session list
  countersign policy session set s-42 'mail:*' deny --for 1d
  countersign policy session delete s-42 'mail:*'`, a.policySessionList(), a.policySessionSet(), a.policySessionDelete())
}

func (a *app) policySessionList() *cobra.Command {
	return &cobra.Command{
		Use:     "list [SESSION]",
		Short:   "List what narrows sessions",
		Long:    "List what narrows sessions, or one of them, and has not ended. With --json it is\none object a line.",
		Example: "  countersign policy session list\n  countersign policy session list s-42",
		Args:    arguments(0, 1, "a session"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			all, err := c.SessionModes(ctx, argument(args, 0))
			if err != nil {
				return err
			}
			if a.json {
				return documents(a, all)
			}
			if len(all) == 0 {
				a.note("Nothing is set.")
				return nil
			}
			rows := make([][]string, len(all))
			for i, m := range all {
				rows[i] = []string{m.Session, m.Pattern, string(m.Mode), local(&m.ExpiresAt), m.UpdatedBy}
			}
			return table(a.sys.Out, []string{"SESSION", "KEY", "MODE", "UNTIL", "SET BY"}, rows)
		}),
	}
}

// argument is one that may be left out.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func (a *app) policySessionSet() *cobra.Command {
	var lasts string
	cmd := &cobra.Command{
		Use:     "set SESSION KEY MODE",
		Short:   "Narrow what a session may do",
		Long:    "Narrow what a session may do with the tools that a key covers, for some time.",
		Example: "  countersign policy session set s-42 'mail:*' deny --for 1d\n  countersign policy session set s-42 '*' require_approval",
		Args:    arguments(3, 3, "a session, a key such as 'mail:*', and allow, require_approval or deny"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			mode, err := modeWord(args[2])
			if err != nil {
				return err
			}
			d, err := limits.ParseDuration(lasts)
			if err != nil || time.Duration(d) < time.Second {
				return misuse("--for must be a time such as 90s, 15m, 2h or 1d")
			}
			return a.done(c.PutSessionMode(ctx, args[0], args[1], mode, time.Duration(d)), "%s is %s in session %s for %s", args[1], mode, args[0], d)
		}),
	}
	cmd.Flags().StringVar(&lasts, "for", "8h", "for this `time`, at most 30d")
	return cmd
}

func (a *app) policySessionDelete() *cobra.Command {
	return &cobra.Command{
		Use:     "delete SESSION KEY",
		Short:   "Remove what narrows a session",
		Long:    "Remove what narrows a session. What others said of it holds then.",
		Example: "  countersign policy session delete s-42 'mail:*'",
		Args:    arguments(2, 2, "a session, and the key that was set for it"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			return a.done(c.DeleteSessionMode(ctx, args[0], args[1]), "removed %s of session %s", args[1], args[0])
		}),
	}
}
