package triage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func summary(a *command.App) *cobra.Command {
	return text(a, "summary MESSAGE", "summary", nil)
}

func draft(a *command.App) *cobra.Command {
	var note string
	cmd := text(a, "draft MESSAGE", "draft", &note)
	cmd.Flags().StringVar(&note, "note", "", "instructions for the draft, in your own `words`")
	return cmd
}

// text returns the command that asks for a text about a message and waits for it.
func text(a *command.App, use, kind string, note *string) *cobra.Command {
	var wait time.Duration
	cmd := aboutMessage(a, use, func(ctx context.Context, c *client.Client, id uuid.UUID) error {
		in := wire.TriageTextInput{Kind: kind}
		if note != nil {
			in.Note = *note
		}
		return askText(ctx, a, c, id, in, wait)
	})
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "maximum `duration` to wait; 0 does not wait")
	return cmd
}

// askText asks for a text about a message and waits for it, for a while at most.
func askText(ctx context.Context, a *command.App, c *client.Client, id uuid.UUID, in wire.TriageTextInput, wait time.Duration) error {
	asked, err := c.AskTriageText(ctx, id, in)
	if err == nil && wait > 0 {
		asked, err = awaitText(ctx, c, id, asked, wait)
	}
	if err := command.Show(a, showText)(asked, err); err != nil {
		return err
	}
	if asked.State == "failed" {
		return fmt.Errorf("no text was written: %s", command.Safe(asked.Problem))
	}
	return nil
}

// awaitText waits until a text has ended, for a while at most.
func awaitText(ctx context.Context, c *client.Client, id uuid.UUID, asked wire.TriageText, longest time.Duration) (wire.TriageText, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for asked.EndedAt == nil {
		select {
		case <-ctx.Done():
			return asked, nil
		case <-ticker.C:
		}
		all, err := c.TriageTexts(ctx, id)
		if ctx.Err() != nil {
			return asked, nil
		}
		if err != nil {
			return asked, err
		}
		for _, t := range all {
			if t.Number == asked.Number {
				asked = t
			}
		}
	}
	return asked, nil
}

func showText(a *command.App, t wire.TriageText) error {
	if t.State == "waiting" {
		return a.Print("requested text %d from a triage process with a model for texts; \"countersign triage show\" shows it\n", t.Number)
	}
	for line := range strings.SplitSeq(t.Text, "\n") {
		if err := a.Print("%s\n", command.Safe(line)); err != nil {
			return err
		}
	}
	if t.Problem != "" && t.Text != "" {
		return a.Print("\n%s\n", command.Safe(t.Problem))
	}
	if t.ExternalID != "" {
		return a.Print("\nproposed as %s, to be stored in the folder for drafts\n", t.ExternalID)
	}
	return nil
}
