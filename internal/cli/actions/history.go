package actions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// History returns the command history.
func History(a *command.App) *cobra.Command {
	return command.New(a, "history ID", command.Arguments(1, 1, "an action id"), func(ctx context.Context, c *client.Client, args []string) error {
		ids, err := command.IDs(args)
		if err != nil {
			return err
		}
		items, err := c.History(ctx, ids[0])
		return historyView().Show(a)(items, err)
	})
}

// Search returns the command search.
func Search(a *command.App) *cobra.Command {
	return command.New(a, "search TEXT", command.Arguments(1, 1, "the first characters of an id or name"), func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.Search(ctx, args[0])
		return command.View[wire.SearchResult]{
			Empty: "No ids or names begin with that text.", Head: []string{"KIND", "ID", "NAME"},
			Row: func(r wire.SearchResult) []string { return []string{r.Kind, r.ID, r.Label} },
		}.Show(a)(found, err)
	})
}

func historyView() command.View[wire.HistoryItem] {
	return command.View[wire.HistoryItem]{
		Empty: "Nothing happened.", Head: []string{"AT", "WHAT", "WHO", "MORE"},
		Row: func(it wire.HistoryItem) []string {
			return []string{command.Local(&it.At), string(it.Kind), it.Actor.Brief(), historyText(it)}
		},
	}
}

// historyText describes an item in one line.
func historyText(it wire.HistoryItem) string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if d := it.Detail; d != nil {
		if d.Origin != nil {
			add(strings.TrimSpace("by " + d.Origin.Via + " " + d.Origin.IP))
		}
		if d.Mode != "" {
			add(string(d.Mode) + " (" + d.Source + ")")
		}
		if d.Needed > 1 {
			add(fmt.Sprintf("%d people must agree", d.Needed))
		}
		if d.ExpiresAt != nil {
			add("until " + command.Local(d.ExpiresAt))
		}
		add(strings.Join(d.Pointers, " "))
		if d.Waiting != nil {
			add(d.Waiting.Message)
		}
		if d.Reversal != nil {
			add(d.Reversal.ActionID.String() + " (" + string(d.Reversal.Phase) + ")")
		}
	}
	if at := it.Attempt; at != nil && it.Kind != wire.HistoryResolved {
		add(attemptText(at))
	} else if at != nil {
		add(string(at.Status))
	}
	if it.Note != "" {
		add("\"" + it.Note + "\"")
	}
	return strings.Join(parts, ", ")
}

// attemptText returns in one line how an attempt ended.
func attemptText(at *wire.Attempt) string {
	text := string(at.Status)
	if at.StartedAt != nil {
		text = fmt.Sprintf("%d: %s after %s", at.Attempt, at.Status, at.FinishedAt.Sub(*at.StartedAt).Round(time.Millisecond))
	}
	if why := strings.Trim(at.Code+": "+at.Message, ": "); why != "" {
		text += ", " + why
	}
	return text
}
