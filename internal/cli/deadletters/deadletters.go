// Package deadletters has the commands that list, export, replay, resolve and
// discard dead letters.
package deadletters

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const deadLettersHelp = `Dead letters are actions that ended without their effect, or without anyone
knowing. Their reason is one of:

  refused    the tool's answer was final
  exhausted  every attempt that was allowed has been made
  unknown    it was sent, and nobody knows what happened

They wait here until somebody replays or discards them, or says what became of
an unknown one. Replay and discard change nothing unless --apply is given:
without it they show what they would do. It takes an operator's token.`

// The reasons of dead letters.
const (
	ReasonRefused   = "refused"
	ReasonExhausted = "exhausted"
	ReasonUnknown   = "unknown"
)

// Command returns the command dlq.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "Look after dead letters: list, show, export, replay, resolve, discard",
		Long:  deadLettersHelp,
		Example: `  countersign dlq list
  countersign dlq replay --reason exhausted --since 24h
  countersign dlq replay --reason exhausted --since 24h --rate 50 --apply
  countersign dlq resolve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --happened --note "it is in their log"`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(letterList(a), letterShow(a), letterExport(a), letterReplay(a), letterResolve(a), letterDiscard(a))
	return cmd
}

func letterList(a *command.App) *cobra.Command {
	var filter letterFilter
	var f client.LetterFilter
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters",
		Long:  "List dead letters, the newest actions first. With --json it is one document,\n{\"items\": [...], \"next_cursor\": ...}; with --all as well, one object a line.",
		Example: `  countersign dlq list
  countersign dlq list --reason unknown
  countersign dlq list --source mail --code timeout --since 24h
  countersign dlq list --tool send_email --all --json`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			narrowed, err := filter.read()
			if err != nil {
				return err
			}
			narrowed.Limit, narrowed.Cursor = f.Limit, f.Cursor
			return runLetterList(ctx, a, c, narrowed, all)
		}),
	}
	filter.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "every page")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many a page, at most 200")
	cmd.Flags().StringVar(&f.Cursor, "cursor", "", "go on where the page before ended")
	return cmd
}

func runLetterList(ctx context.Context, a *command.App, c *client.Client, f client.LetterFilter, all bool) error {
	if f.Limit < 1 || f.Limit > command.MaxPage {
		return command.Misuse("--limit must be from 1 to %d", command.MaxPage)
	}
	if all {
		letters, err := everyLetter(ctx, c, f)
		if err != nil {
			return err
		}
		return showLetters(a, letters)
	}
	page, err := c.Letters(ctx, f)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(page)
	}
	if err := showLetters(a, page.Items); err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.Note("There are more: add --cursor %s, or --all", *page.NextCursor)
	}
	return nil
}

func everyLetter(ctx context.Context, c *client.Client, f client.LetterFilter) ([]client.Letter, error) {
	f.Limit = command.MaxPage
	var all []client.Letter
	for {
		page, err := c.Letters(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all, nil
		}
		f.Cursor = *page.NextCursor
	}
}

func showLetters(a *command.App, letters []client.Letter) error {
	if a.JSON {
		for _, l := range letters {
			if err := a.WriteJSON(l); err != nil {
				return err
			}
		}
		return nil
	}
	if len(letters) == 0 {
		a.Note("There are no such dead letters.")
		return nil
	}
	rows := make([][]string, len(letters))
	for i, l := range letters {
		rows[i] = []string{l.ActionID.String(), l.Source + ":" + l.Tool, l.Reason, fmt.Sprint(l.Attempts), command.Local(&l.At), strings.Trim(l.Code+": "+l.Message, ": ")}
	}
	return command.Table(a.Out, []string{"ID", "TOOL", "REASON", "TRIES", "SINCE", "WHY"}, rows)
}

func letterShow(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show a dead letter with its action and attempts",
		Long:    "Show a dead letter with its action, every attempt, and how to go on.",
		Example: "  countersign dlq show 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		Args:    command.Arguments(1, 1, "the id of an action"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			wanted, err := command.Ids(args)
			if err != nil {
				return err
			}
			story, err := c.Letter(ctx, wanted[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(story)
			}
			if err := showLetters(a, []client.Letter{story.Letter}); err != nil {
				return err
			}
			fmt.Fprintln(a.Out)
			if err := actions.ShowStory(a, story.Action, story.Attempts); err != nil {
				return err
			}
			noteLetter(a, story.Letter)
			return nil
		}),
	}
}

// noteLetter says how to go on with a dead letter.
func noteLetter(a *command.App, l client.Letter) {
	if l.Reason != ReasonUnknown {
		a.Note("To try it again: countersign dlq replay %s --apply", l.ActionID)
		return
	}
	if v := l.Verify; v != nil {
		a.Note("Looked into %d times by itself; the last time came to: %s.", v.Tries, command.Line(cmp.Or(v.Said, "nothing yet")))
	}
	a.Note("Nobody knows whether it happened. Look at %s first; then say so:", command.Line(l.Source))
	a.Note("  countersign dlq resolve %s --happened (or --did-not) --note \"how you know\"", l.ActionID)
}
