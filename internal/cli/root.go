// Package cli assembles the command line: its groups of commands, and their
// help, whose texts are in help.txt. What commands share is in package command,
// and each noun has a package of its own below.
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
	"github.com/countersign-dev/countersign/internal/cli/mailsetup"
	"github.com/countersign-dev/countersign/internal/cli/policy"
	"github.com/countersign-dev/countersign/internal/cli/setup"
	"github.com/countersign-dev/countersign/internal/cli/subscriptions"
	"github.com/countersign-dev/countersign/internal/cli/tools"
	"github.com/countersign-dev/countersign/internal/cli/top"
	"github.com/countersign-dev/countersign/internal/cli/triage"
	"github.com/countersign-dev/countersign/internal/cli/workflows"
)

// Run runs the command in the arguments and returns the exit code. When ctx
// ends, the command ends.
func Run(ctx context.Context, args []string, sys command.System) int {
	return command.Execute(ctx, args, sys, root)
}

// versionFlag adds --version, which prints the same as the command version.
func versionFlag(root, version *cobra.Command) {
	var given bool
	root.Flags().BoolVar(&given, "version", false, "print the version")
	group := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if given && len(args) == 0 {
			return version.RunE(cmd, args)
		}
		return group(cmd, args)
	}
}

// root builds the tree of commands.
func root(a *command.App) *cobra.Command {
	root := command.NewGroup("countersign")
	version := setup.Version(a)
	versionFlag(root, version)
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"start", "Start here:", []*cobra.Command{setup.Dev(a), identity.UI(a)}},
		{"act", "Propose and follow actions:", []*cobra.Command{
			actions.Command(a), actions.Submit(a), actions.Get(a), actions.History(a), actions.List(a), actions.Search(a), actions.Watch(a),
			approvals.Undo(a), actions.Revert(a), workflows.Command(a), mcpCommand(a),
		}},
		{"decide", "Decide, and handle failures:", []*cobra.Command{
			approvals.Inbox(a), approvals.Acknowledge(a), approvals.Approve(a), approvals.Edit(a), approvals.Deny(a), approvals.Respond(a),
			deadletters.Command(a), top.Command(a), top.Workers(a), top.Activity(a), executions.Command(a), actions.Proposals(a), audit.Command(a),
		}},
		{"limit", "Limit and stop actions:", []*cobra.Command{
			limits.Pause(a), limits.Resume(a), limits.Kill(a), limits.Buckets(a), limits.QuietHours(a),
			contacts.Command(a), limits.Employees(a), limits.Breakers(a), limits.Command(a),
		}},
		{"setup", "Set up:", []*cobra.Command{
			tools.Sources(a), tools.Command(a), triage.Command(a, mailsetup.Command(a), mailsetup.Notice(a)), subscriptions.Command(a), approvals.Reviews(a), limits.Retention(a),
			setup.Migrate(a), setup.Doctor(a), setup.Recover(a), setup.Tenant(a), policy.Command(a),
			identity.Tokens(a), identity.DBLogins(a), identity.Operators(a), identity.Providers(a),
			identity.Login(a), identity.Logout(a), identity.WhoAmI(a), version,
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
			root.AddCommand(c)
		}
		root.SetHelpCommandGroupID(group.id)
		root.SetCompletionCommandGroupID(group.id)
	}
	addHelp(root, helps())
	addCompletion(a, root)
	return root
}
