package triage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/cli/speech"
	"github.com/countersign-dev/countersign/internal/triage/brief"
)

// The formats of a brief.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatSlack    = "slack"
)

func showBrief(a *command.App) *cobra.Command {
	var f client.TriageBriefFilter
	var morning, evening, speak bool
	format := formatText
	cmd := command.New(a, "brief ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		switch {
		case morning && evening:
			return command.Misuse("--morning cannot be combined with --evening")
		case morning:
			f.Kind = string(brief.Morning)
		case evening:
			f.Kind = string(brief.Evening)
		}
		var speaker speech.Synthesizer
		if speak {
			var err error
			if speaker, err = speech.Find(a.Getenv("PATH")); err != nil {
				return err
			}
		}
		b, err := c.TriageBrief(ctx, args[0], f)
		if err != nil {
			return err
		}
		switch {
		case speak:
			return speaker.Speak(ctx, brief.Text(b))
		case a.JSON:
			return a.WriteJSON(b)
		case format == formatSlack:
			return a.WriteJSON(brief.Slack(b))
		case format == formatMarkdown:
			return a.Print("%s", brief.Markdown(b))
		}
		return a.Print("%s", brief.Text(b))
	})
	cmd.Flags().BoolVar(&morning, "morning", false, "write the morning brief")
	cmd.Flags().BoolVar(&evening, "evening", false, "write the evening brief (default: by the time of day)")
	cmd.Flags().BoolVar(&speak, "speak", false, "read the brief aloud with the speech synthesizer of the system instead: say, spd-say or espeak-ng")
	cmd.Flags().BoolVar(&f.Mail, "mail", false, "show senders and subjects even if the account's settings hide them")
	command.EnumFlag(cmd, &format, "format", "`format`: text, markdown or slack (Block Kit); --json writes the data", formatText, formatMarkdown, formatSlack)
	command.PastFlag(cmd, &f.Since, "since", "cover the mail since this `time`, or a duration ago (default: the last brief that was sent, or 24h)")
	cmd.AddCommand(scheduleBrief(a))
	return cmd
}

func prepare(a *command.App) *cobra.Command {
	var at time.Time
	var mail bool
	cmd := command.New(a, "prepare ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		m, err := c.TriageMeeting(ctx, args[0], at, mail)
		if err != nil {
			return err
		}
		if a.JSON {
			return a.WriteJSON(m)
		}
		return a.Print("%s", brief.MeetingText(m))
	})
	command.FutureFlag(cmd, &at, "at", "the meeting that begins at this `time` (default: the next one with other people)")
	cmd.Flags().BoolVar(&mail, "mail", false, "show addresses, senders and subjects even if the account's settings hide them")
	return cmd
}

func followUps(a *command.App) *cobra.Command {
	return command.NewGroup("followups", listFollowUps(a), closeFollowUp(a), putOffFollowUp(a))
}

func listFollowUps(a *command.App) *cobra.Command {
	var closed bool
	view := command.View[wire.TriageFollowUp]{
		Empty: "Nothing is owed.", Head: []string{"MESSAGE", "OWED BY", "BECAUSE", "SINCE", "DUE", "WITH", "SUBJECT", "DATE IN THE TEXT", "STATE"},
		Row: func(f wire.TriageFollowUp) []string {
			due, state := "-", "open"
			switch {
			case f.Due != nil && f.WholeDay:
				due = f.Due.Local().Format(time.DateOnly)
			case f.Due != nil:
				due = command.Local(f.Due)
			}
			switch {
			case f.DoneAt != nil:
				state = "done"
			case f.LaterUntil != nil && f.LaterUntil.After(time.Now()):
				state = "later: " + command.Local(f.LaterUntil)
			}
			return []string{f.MessageID.String(), f.OwedBy, f.Because, command.Local(&f.Since), due, f.With, f.Subject, f.DueText, state}
		},
	}
	cmd := command.New(a, "list ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		return view.Show(a)(c.TriageFollowUps(ctx, args[0], closed))
	})
	cmd.Flags().BoolVar(&closed, "closed", false, "add those that were closed or put off, unless they are answered")
	return cmd
}

func closeFollowUp(a *command.App) *cobra.Command {
	var reopen bool
	cmd := aboutMessage(a, "done MESSAGE", func(ctx context.Context, c *client.Client, id uuid.UUID) error {
		if err := c.ChangeTriageFollowUp(ctx, id, wire.TriageFollowUpChange{Done: new(!reopen)}); err != nil || reopen {
			return a.Done(err, "follow-up %s is open again", id)
		}
		return a.Done(nil, "follow-up %s is closed", id)
	})
	cmd.Flags().BoolVar(&reopen, "reopen", false, "open it again instead")
	return cmd
}

func putOffFollowUp(a *command.App) *cobra.Command {
	var until time.Time
	cmd := aboutMessage(a, "later MESSAGE", func(ctx context.Context, c *client.Client, id uuid.UUID) error {
		if until.IsZero() {
			return command.Misuse("--until is required")
		}
		return a.Done(c.ChangeTriageFollowUp(ctx, id, wire.TriageFollowUpChange{LaterUntil: &until}), "follow-up %s is put off until %s", id, command.Local(&until))
	})
	command.FutureFlag(cmd, &until, "until", "put it off until this `time`, or a duration ahead (required)")
	return cmd
}
