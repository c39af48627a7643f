package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

const (
	urlEnv      = "COUNTERSIGN_URL"
	tokenEnv    = "COUNTERSIGN_TOKEN"
	databaseEnv = "DATABASE_URL"

	defaultURL = "http://127.0.0.1:8080"
)

const rootHelp = `Countersign is the outbox for AI agents' actions. An agent proposes an action;
policy and, where needed, a person decide; a fleet of workers does what was
agreed, once; and everything that happened can be read back.

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
  2  wrong words or flags; nothing was done
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

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "countersign",
		Short: "The outbox for AI agents' actions",
		Long:  rootHelp,
		Example: `  countersign dev
  countersign submit --tool notes:notes.list --external-id first-try --wait
  countersign list --approval required
  countersign approve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b
  countersign watch --json | jq .phase`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          group,

		DisableFlagsInUseLine: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.begun = true
			a.fillConnection()
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misuse("%v", err) })
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write JSON: one document, or one object a line for streams")
	root.PersistentFlags().StringVar(&a.url, "url", "", "the `address` of the API (default $"+urlEnv+" or "+defaultURL+")")
	root.PersistentFlags().StringVar(&a.token, "token", "", "a `token` (default $"+tokenEnv+", which is safer)")
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start here:"},
		&cobra.Group{ID: groupAct, Title: "Propose and follow actions:"},
		&cobra.Group{ID: groupDecide, Title: "Decide, and look after what failed:"},
		&cobra.Group{ID: groupLimit, Title: "Keep to limits, and stop what must stop:"},
		&cobra.Group{ID: groupSetUp, Title: "Set up:"},
	)
	add := func(id string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	add(groupStart, a.dev())
	add(groupAct, a.actions(), a.submit(), a.get(), a.list(), a.watch(), a.undo(), a.batches(), a.mcp())
	add(groupDecide, a.inbox(), a.approve(), a.edit(), a.deny(), a.deadLetters(), a.top(), a.executions(), a.audit())
	add(groupLimit, a.pauses(), a.resume(), a.kill(), a.buckets(), a.quiet(), a.contacts(), a.employees(), a.breakers(), a.limits())
	add(groupSetUp, a.sources(), a.toolSettings(), a.subscriptions(), a.reviews(), a.retention(), a.migrate(), a.doctor(), a.tenant(), a.policies(), a.tokens(), a.operators(), a.providers(), a.login(), a.logout(), a.whoami(), a.version())
	root.SetHelpCommandGroupID(groupSetUp)
	root.SetCompletionCommandGroupID(groupSetUp)
	return root
}

// fillConnection takes what no flag said from the environment.
func (a *app) fillConnection() {
	if a.url == "" {
		a.url = a.sys.Getenv(urlEnv)
	}
	if a.url == "" {
		a.url = defaultURL
	}
	if a.token == "" {
		a.token = a.sys.Getenv(tokenEnv)
	}
}

// group is what a command does that only has others below it: it shows them,
// unless it was given a word that it does not know.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	text := "there is no command " + cmd.CommandPath() + " " + args[0]
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return misuse("%s", text)
}

// arguments counts a command's arguments in words that say what they are.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least && most == 1:
			return misuse("%s needs %s", cmd.CommandPath(), what)
		case len(args) < least:
			return misuse("%s needs at least %d argument(s): %s", cmd.CommandPath(), least, what)
		case most == 0 && len(args) > 0:
			return misuse("%s takes no arguments, and was given %d", cmd.CommandPath(), len(args))
		case most >= 0 && len(args) > most:
			return misuse("%s takes only %s, and was given %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// many bounds nothing.
const many = -1
