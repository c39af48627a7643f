// Package deadletters has the commands that list, export, replay, resolve and
// discard dead letters.
package deadletters

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command dlq, which is also called dead-letters.
func Command(a *command.App) *cobra.Command {
	cmd := command.NewGroup("dlq", list(a), show(a), export(a), replay(a), resolve(a), discard(a))
	cmd.Aliases = []string{"dead-letters"}
	return cmd
}

// filterFlags adds the flags that select dead letters.
func filterFlags(cmd *cobra.Command, f *wire.DeadLetterFilter) {
	flags := cmd.Flags()
	command.EnumFlag(cmd, &f.Reason, "reason", "only those of this `reason`: refused, exhausted or unknown",
		wire.ReasonRefused, wire.ReasonExhausted, wire.ReasonUnknown)
	flags.StringVar(&f.Source, "source", "", "only those of the source of this `id`")
	command.ToolFlag(cmd, &f.Tool)
	flags.StringVar(&f.Code, "code", "", "only those whose last attempt ended with this `code`, such as timeout")
	command.RangeFlags(cmd, &f.Since, &f.Until, "those that became dead letters")
}

func view() command.View[wire.DeadLetter] {
	return command.View[wire.DeadLetter]{
		Empty: "There are no such dead letters.", Head: []string{"ID", "TOOL", "REASON", "TRIES", "SINCE", "WHY"},
		Row: func(l wire.DeadLetter) []string {
			return []string{
				l.ActionID.String(), l.Tool, l.Reason, fmt.Sprint(l.Attempts), command.Local(&l.At),
				strings.Trim(l.Code+": "+l.Message, ": "),
			}
		},
	}
}

func list(a *command.App) *cobra.Command {
	var f wire.DeadLetterFilter
	var all bool
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		if !all {
			return view().ShowPage(a)(c.DeadLetters(ctx, f))
		}
		f.Limit = 200
		var found []wire.DeadLetter
		for l, err := range client.Items(func(cursor string) (wire.Page[wire.DeadLetter], error) {
			f.Cursor = cmp.Or(cursor, f.Cursor)
			return c.DeadLetters(ctx, f)
		}) {
			if err != nil {
				return err
			}
			found = append(found, l)
		}
		return view().Show(a)(found, nil)
	})
	filterFlags(cmd, &f)
	cmd.Flags().BoolVar(&all, "all", false, "every page")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

func show(a *command.App) *cobra.Command {
	return command.New(a, "show ID", command.Arguments(1, 1, "the id of an action"), func(ctx context.Context, c *client.Client, args []string) error {
		ids, err := command.IDs(args)
		if err != nil {
			return err
		}
		return command.Show(a, showDetail)(c.DeadLetter(ctx, ids[0]))
	})
}

func showDetail(a *command.App, d wire.DeadLetterDetail) error {
	if err := view().Show(a)([]wire.DeadLetter{d.DeadLetter}, nil); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	if err := actions.ShowDetail(a, d.Action, d.Attempts); err != nil {
		return err
	}
	noteNext(a, d.DeadLetter)
	return nil
}

// noteNext says how to go on with a dead letter.
func noteNext(a *command.App, l wire.DeadLetter) {
	if l.Reason != wire.ReasonUnknown {
		a.Note("To try it again: countersign dlq replay %s --apply", l.ActionID)
		return
	}
	if v := l.Reconciliation; v != nil {
		a.Note("Reads have looked for it %d times; the result of the last: %s.", v.Attempts, command.Line(cmp.Or(v.LastResult, "nothing yet")))
	}
	source, _, _ := strings.Cut(l.Tool, ":")
	a.Note("It is unknown whether it happened. Look at %s first; then say so:", command.Line(source))
	a.Note("  countersign dlq resolve %s --happened (or --did-not) --note \"how you know\"", l.ActionID)
}

func resolve(a *command.App) *cobra.Command {
	var r wire.Resolution
	var didNot bool
	cmd := command.New(a, "resolve ID...", command.Arguments(1, command.Many, "the ids of actions"), func(ctx context.Context, c *client.Client, args []string) error {
		switch {
		case r.Happened == didNot:
			return command.Misuse("say either --happened or --did-not")
		case r.Happened && r.GiveUp:
			return command.Misuse("--give-up goes with --did-not alone")
		case r.Note == "":
			return command.Misuse("--note must say how you know, for the record")
		}
		return actions.Intended(actions.Each(ctx, a, args, 0, func(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			return c.Resolve(ctx, id, r)
		}))
	})
	cmd.Flags().BoolVar(&r.Happened, "happened", false, "it had its effect")
	cmd.Flags().BoolVar(&didNot, "did-not", false, "it did not, and is to run again")
	cmd.Flags().BoolVar(&r.GiveUp, "give-up", false, "with --did-not: it is not to run again")
	cmd.Flags().StringVar(&r.Note, "note", "", "how you know, for the record (required)")
	return cmd
}

func export(a *command.App) *cobra.Command {
	var f wire.DeadLetterFilter
	cmd := command.New(a, "export", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		f.Limit = 100
		return command.Export(a, func(cursor string) (wire.Page[json.RawMessage], error) {
			f.Cursor = cursor
			return c.ExportDeadLetters(ctx, f)
		})
	})
	filterFlags(cmd, &f)
	return cmd
}
