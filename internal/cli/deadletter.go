package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
)

const deadLettersHelp = `Dead letters are actions that ended without their effect, or without anyone
knowing. Their reason is one of:

  refused    the tool's answer was final
  exhausted  every attempt that was allowed has been made
  unknown    it was sent, and nobody knows what happened

They wait here until somebody replays or discards them, or says what became of
an unknown one. Replay and discard change nothing unless --apply is given:
without it they show what they would do. It takes an operator's token.`

const (
	reasonRefused   = "refused"
	reasonExhausted = "exhausted"
	reasonUnknown   = "unknown"
)

func (a *app) deadLetters() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "Look after dead letters: list, show, export, replay, resolve, discard",
		Long:  deadLettersHelp,
		Example: `  countersign dlq list
  countersign dlq replay --reason exhausted --since 24h
  countersign dlq replay --reason exhausted --since 24h --rate 50 --apply
  countersign dlq resolve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --happened --note "it is in their log"`,
		Args: cobra.ArbitraryArgs,
		RunE: group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(a.letterList(), a.letterShow(), a.letterExport(), a.letterReplay(), a.letterResolve(), a.letterDiscard())
	return cmd
}

func (a *app) letterList() *cobra.Command {
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
		Args: arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			narrowed, err := filter.read()
			if err != nil {
				return err
			}
			narrowed.Limit, narrowed.Cursor = f.Limit, f.Cursor
			return a.runLetterList(ctx, c, narrowed, all)
		}),
	}
	filter.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "every page")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many a page, at most 200")
	cmd.Flags().StringVar(&f.Cursor, "cursor", "", "go on where the page before ended")
	return cmd
}

func (a *app) runLetterList(ctx context.Context, c *client.Client, f client.LetterFilter, all bool) error {
	if f.Limit < 1 || f.Limit > maxPage {
		return misuse("--limit must be from 1 to %d", maxPage)
	}
	if all {
		letters, err := everyLetter(ctx, c, f)
		if err != nil {
			return err
		}
		return a.showLetters(letters)
	}
	page, err := c.Letters(ctx, f)
	if err != nil {
		return err
	}
	if a.json {
		return a.document(page)
	}
	if err := a.showLetters(page.Items); err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.note("There are more: add --cursor %s, or --all", *page.NextCursor)
	}
	return nil
}

// maxPage is the largest page that the API gives.
const maxPage = 200

func everyLetter(ctx context.Context, c *client.Client, f client.LetterFilter) ([]client.Letter, error) {
	f.Limit = maxPage
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

func (a *app) showLetters(letters []client.Letter) error {
	if a.json {
		for _, l := range letters {
			if err := a.document(l); err != nil {
				return err
			}
		}
		return nil
	}
	if len(letters) == 0 {
		a.note("There are no such dead letters.")
		return nil
	}
	rows := make([][]string, len(letters))
	for i, l := range letters {
		rows[i] = []string{l.ActionID.String(), l.Source + ":" + l.Tool, l.Reason, fmt.Sprint(l.Attempts), local(&l.At), strings.Trim(l.Code+": "+l.Message, ": ")}
	}
	return table(a.sys.Out, []string{"ID", "TOOL", "REASON", "TRIES", "SINCE", "WHY"}, rows)
}

func (a *app) letterShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show a dead letter with its action and attempts",
		Long:    "Show a dead letter with its action, every attempt, and how to go on.",
		Example: "  countersign dlq show 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		Args:    arguments(1, 1, "the id of an action"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error {
			wanted, err := ids(args)
			if err != nil {
				return err
			}
			story, err := c.Letter(ctx, wanted[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.document(story)
			}
			if err := a.showLetters([]client.Letter{story.Letter}); err != nil {
				return err
			}
			fmt.Fprintln(a.sys.Out)
			if err := a.showStory(story.Action, story.Attempts); err != nil {
				return err
			}
			a.noteLetter(story.Letter)
			return nil
		}),
	}
}

// noteLetter says how to go on with a dead letter.
func (a *app) noteLetter(l client.Letter) {
	if l.Reason != reasonUnknown {
		a.note("To try it again: countersign dlq replay %s --apply", l.ActionID)
		return
	}
	if v := l.Verify; v != nil {
		a.note("Looked into %d times by itself; the last time came to: %s.", v.Tries, line(cmp.Or(v.Said, "nothing yet")))
	}
	a.note("Nobody knows whether it happened. Look at %s first; then say so:", line(l.Source))
	a.note("  countersign dlq resolve %s --happened (or --did-not) --note \"how you know\"", l.ActionID)
}
