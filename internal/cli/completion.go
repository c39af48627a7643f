package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// lister lists words for completion, each with a description after a tab if it
// has one.
type lister func(ctx context.Context, c *client.Client) ([]string, error)

const (
	// maxCompletion bounds the time that a shell waits for words.
	maxCompletion = 3 * time.Second
	// completedIDs is the number of the newest actions that are offered.
	completedIDs = 50
)

// addCompletion has the shell offer words of the API for the arguments and the
// flags of a command, and of those below it.
func addCompletion(a *command.App, cmd *cobra.Command) {
	var listers []lister
	placeholders := strings.Fields(cmd.Use)[1:]
	for _, placeholder := range placeholders {
		listers = append(listers, argumentLister(cmd, strings.Trim(placeholder, "[].")))
	}
	if cmd.ValidArgsFunction == nil && slices.ContainsFunc(listers, func(l lister) bool { return l != nil }) {
		repeated := strings.Contains(placeholders[len(placeholders)-1], "...")
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			at := len(args)
			if repeated {
				at = min(at, len(listers)-1)
			}
			if at >= len(listers) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(cmd, a, listers[at], args, begun)
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		list := map[string]lister{"tool": listTools, "source": listSources, "bucket": listBuckets, "rate-bucket": listBuckets}[flag.Name]
		if _, done := cmd.GetFlagCompletionFunc(flag.Name); done || list == nil || cmd.Parent().Name() == "dnc" {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return complete(cmd, a, list, nil, begun)
		}) // the flag exists, and has no function
	})
	for _, below := range cmd.Commands() {
		addCompletion(a, below)
	}
}

// argumentLister returns the lister for an argument by its name in a command's
// use; nil without one.
func argumentLister(cmd *cobra.Command, placeholder string) lister {
	group := ""
	if cmd.HasParent() {
		group = cmd.Parent().Name()
	}
	switch placeholder {
	case "TOOL", "SOURCE:TOOL", "KEY":
		return listTools
	case "SOURCE":
		return listSources
	case "MODE":
		if cmd.Name() == "danger" { // a danger is never allowed as such
			return listModes(envelope.ModeDeny, envelope.ModeRequireApproval)
		}
		return listModes(envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeDeny)
	case "NAME":
		if group == "bucket" {
			return listBuckets
		}
	case "ID":
		byGroup := map[string]lister{"source": listSources, "dlq": listDeadLetters}
		byName := map[string]lister{"get": listNewest, "history": listNewest, "revert": listNewest, "undo": listNewest, "approve": listWaiting, "deny": listWaiting, "edit": listWaiting, "respond": listWaiting}
		if group == cmd.Root().Name() {
			return byName[cmd.Name()]
		}
		return byGroup[group]
	}
	return nil
}

// plain matches the words that are offered. Names come from sources, and a
// shell inserts the chosen word as it is: no word is a flag, or has a character
// with a meaning to a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

// complete returns the words of a list that begin as the one begun, without
// those that the arguments have already. Errors offer nothing.
func complete(cmd *cobra.Command, a *command.App, list lister, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if list == nil {
		return nil, directive
	}
	c, err := a.Client()
	if err != nil {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), maxCompletion)
	defer cancel()
	all, err := list(ctx, c)
	if err != nil {
		return nil, directive
	}
	return slices.DeleteFunc(all, func(word string) bool {
		name, about, _ := strings.Cut(word, "\t")
		return !plain.MatchString(name) || about != "" && !plain.MatchString(about) || !strings.HasPrefix(name, begun) || slices.Contains(args, name)
	}), directive
}

func listTools(ctx context.Context, c *client.Client) ([]string, error) {
	all, err := c.Tools(ctx, client.ToolFilter{})
	return words(all.Items, err, func(t wire.Tool) string { return t.Tool })
}

func listSources(ctx context.Context, c *client.Client) ([]string, error) {
	all, err := c.Sources(ctx)
	return words(all, err, func(src wire.Source) string { return src.ID })
}

func listBuckets(ctx context.Context, c *client.Client) ([]string, error) {
	all, err := c.Buckets(ctx)
	return words(all, err, func(b wire.BucketState) string { return b.Name })
}

func listModes(modes ...envelope.Mode) lister {
	return func(context.Context, *client.Client) ([]string, error) {
		return words(modes, nil, func(m envelope.Mode) string { return string(m) })
	}
}

func listNewest(ctx context.Context, c *client.Client) ([]string, error) {
	page, err := c.Actions(ctx, client.ActionFilter{Summary: true, Limit: completedIDs})
	return words(page.Items, err, func(it wire.Action) string {
		return described(it.Envelope.ActionID, it.Envelope.Tool.Source+":"+it.Envelope.Tool.Name)
	})
}

func listWaiting(ctx context.Context, c *client.Client) ([]string, error) {
	page, err := c.Inbox(ctx, client.InboxFilter{Kinds: []string{wire.InboxApproval, wire.InboxQuestion, wire.InboxReview}, Summary: true, Limit: completedIDs})
	return words(page.Items, err, func(it wire.InboxItem) string { return described(it.ActionID, it.Tool) })
}

func listDeadLetters(ctx context.Context, c *client.Client) ([]string, error) {
	page, err := c.DeadLetters(ctx, wire.DeadLetterFilter{})
	return words(page.Items, err, func(it wire.DeadLetter) string { return described(it.ActionID, it.Tool) })
}

// described returns the id of an action with its tool as the description, where
// that is plain.
func described(id envelope.ActionID, tool string) string {
	if !plain.MatchString(tool) {
		return id.String()
	}
	return id.String() + "\t" + tool
}

func words[T any](all []T, err error, word func(T) string) ([]string, error) {
	texts := make([]string, len(all))
	for i, it := range all {
		texts[i] = word(it)
	}
	return texts, err
}
