// Package cli assembles the command line: its groups of commands and the help
// of the program. What commands share is in package command, and each noun has
// a package of its own below.
package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/approvals"
	"github.com/countersign-dev/countersign/internal/cli/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/cli/contacts"
	"github.com/countersign-dev/countersign/internal/cli/deadletters"
	"github.com/countersign-dev/countersign/internal/cli/executions"
	"github.com/countersign-dev/countersign/internal/cli/identity"
	"github.com/countersign-dev/countersign/internal/cli/limits"
	"github.com/countersign-dev/countersign/internal/cli/mcp"
	"github.com/countersign-dev/countersign/internal/cli/policy"
	"github.com/countersign-dev/countersign/internal/cli/retention"
	"github.com/countersign-dev/countersign/internal/cli/setup"
	"github.com/countersign-dev/countersign/internal/cli/subscriptions"
	"github.com/countersign-dev/countersign/internal/cli/tools"
	"github.com/countersign-dev/countersign/internal/cli/top"
	"github.com/countersign-dev/countersign/internal/cli/workflows"
)

const rootHelp = `Countersign is the outbox for AI agents' actions. An agent proposes an action;
policy and, where needed, a person decide; workers do what was decided, once;
and everything that happened can be read back.

New here? Run "countersign dev": it starts everything on this machine, shows
what an action goes through, and prints what to try next.

Connection:
  COUNTERSIGN_URL    where the API is (default http://127.0.0.1:8080)
  COUNTERSIGN_TOKEN  who you are; better than --token, which others on this
                     machine can see in the list of processes
  countersign login  logs you in as a person instead, where that is set up

Exit codes:
  0  done
  1  failed; the reason is on standard error
  2  wrong words, flags or values; nothing was done
  3  the command worked, and an action was denied, expired or failed, or
     "policy simulate --fail-on-change" found a change
  130  ended by a signal`

// The groups of commands in the help.
const (
	groupStart  = "start"
	groupAct    = "act"
	groupDecide = "decide"
	groupLimit  = "limit"
	groupSetUp  = "setup"
)

// Run does what the arguments say and returns the exit code. When ctx ends, so
// does the command.
func Run(ctx context.Context, args []string, sys command.System) int {
	return command.Execute(ctx, args, sys, root)
}

// root builds the tree of commands.
func root(a *command.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "countersign",
		Short: "The outbox for AI agents' actions",
		Long:  rootHelp,
		Example: `  countersign dev
  countersign submit --tool notes:notes.list --external-id first-try --wait
  countersign list --approval required
  countersign approve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b
  countersign watch --json | jq .phase`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start here:"},
		&cobra.Group{ID: groupAct, Title: "Propose and follow actions:"},
		&cobra.Group{ID: groupDecide, Title: "Decide, and deal with failures:"},
		&cobra.Group{ID: groupLimit, Title: "Limit and stop actions:"},
		&cobra.Group{ID: groupSetUp, Title: "Set up:"},
	)
	add := func(id string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	add(groupStart, setup.Dev(a))
	add(groupAct, actions.Command(a), actions.Submit(a), actions.Get(a), actions.List(a), actions.Watch(a), approvals.Undo(a), workflows.Command(a), mcp.Command(a))
	add(groupDecide, approvals.Inbox(a), approvals.Approve(a), approvals.Edit(a), approvals.Deny(a), deadletters.Command(a), top.Command(a), executions.Command(a), audit.Command(a))
	add(groupLimit, limits.Pause(a), limits.Resume(a), limits.Kill(a), limits.Buckets(a), limits.QuietHours(a), contacts.Command(a), limits.Employees(a), limits.Breakers(a), limits.Command(a))
	add(groupSetUp, tools.Sources(a), tools.Command(a), subscriptions.Command(a), approvals.Reviews(a), retention.Command(a), setup.Migrate(a), setup.Doctor(a), setup.Tenant(a), policy.Command(a), identity.Tokens(a), identity.Operators(a), identity.Providers(a), identity.Login(a), identity.Logout(a), identity.WhoAmI(a), setup.Version(a))
	root.SetHelpCommandGroupID(groupSetUp)
	root.SetCompletionCommandGroupID(groupSetUp)
	return root
}
