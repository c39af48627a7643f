package triage

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func labels(a *command.App) *cobra.Command {
	cmd := command.NewGroup("labels", listLabels(a), defineLabel(a, "try ACCOUNT NAME"), defineLabel(a, "set ACCOUNT NAME"), deleteLabel(a), confirmLabel(a))
	cmd.Aliases = []string{"label"}
	return cmd
}

func listLabels(a *command.App) *cobra.Command {
	return command.New(a, "list ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		return command.View[wire.TriageLabel]{
			Empty: "No labels; try one with `countersign triage labels try`.",
			Head:  []string{"LABEL", "APPLIED", "PROPOSED", "CONFIRMED", "REJECTED", "MATCHED", "WORDS", "DESCRIPTION"},
			Row: func(l wire.TriageLabel) []string {
				return []string{l.Name, fmt.Sprint(l.Applied), fmt.Sprint(l.Proposed), fmt.Sprint(l.Confirmed), fmt.Sprint(l.Rejected), command.Local(l.MatchedAt), strings.Join(l.Words, ", "), l.Description}
			},
		}.Show(a)(c.TriageLabels(ctx, args[0]))
	})
}

// defineLabel returns the command that tries a definition, or sets it.
func defineLabel(a *command.App, use string) *cobra.Command {
	var in wire.TriageLabelInput
	var yes, no []string
	try := strings.HasPrefix(use, "try ")
	cmd := command.New(a, use, command.Arguments(2, 2, "the account's name and the label's"), func(ctx context.Context, c *client.Client, args []string) error {
		var err error
		if in.For, err = findAll(ctx, c, yes); err != nil {
			return err
		}
		if in.Against, err = findAll(ctx, c, no); err != nil {
			return err
		}
		if try {
			return command.Show(a, showTrial)(c.TryTriageLabel(ctx, args[0], args[1], in))
		}
		made, err := c.PutTriageLabel(ctx, args[0], args[1], in)
		if err != nil {
			return err
		}
		return a.Result(made, "stored label %s; the next run matches past messages\n", made.Name)
	})
	cmd.Flags().StringVar(&in.Description, "description", "", "the messages that get the label, in your own `words`")
	cmd.Flags().StringArrayVar(&in.Words, "word", nil, "`word` or phrase that is enough for the label (repeatable)")
	cmd.Flags().StringArrayVar(&yes, "for", nil, "`message` that gets the label (repeatable)")
	cmd.Flags().StringArrayVar(&no, "against", nil, "`message` that does not (repeatable)")
	if !try {
		cmd.Flags().BoolVar(&in.Untried, "untried", false, "set a definition that was not tried")
	}
	return cmd
}

// findAll returns the ids of messages.
func findAll(ctx context.Context, c *client.Client, names []string) (ids []uuid.UUID, err error) {
	for _, name := range names {
		id, err := find(ctx, c, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func showTrial(a *command.App, t wire.TriageLabelTrial) error {
	if err := (command.View[wire.TriageLabelCohort]{
		Empty: "No messages.", Head: []string{"COHORT", "MESSAGES", "MATCHED", "STATE"},
		Row: func(n wire.TriageLabelCohort) []string {
			return []string{n.Cohort, fmt.Sprint(n.Messages), fmt.Sprint(n.Matched), n.State}
		},
	}).Show(a)(t.Cohorts, nil); err != nil || len(t.Items) == 0 {
		return err
	}
	if err := a.Print("\n"); err != nil {
		return err
	}
	if err := (command.View[wire.TriageLabelMatch]{
		Head: []string{"ID", "RECEIVED", "SCORE", "COHORT", "FROM", "SUBJECT", "BECAUSE"},
		Row: func(m wire.TriageLabelMatch) []string {
			return []string{m.MessageID.String(), command.Local(&m.ReceivedAt), fmt.Sprintf("%.2f", m.Score), m.Cohort, m.Sender, m.Subject, strings.Join(m.Because, ", ")}
		},
	}).Show(a)(t.Items, nil); err != nil {
		return err
	}
	a.Note("\n%d of %d messages would get the label; `set` with the same words makes it hold.", t.Matched, t.Messages)
	return nil
}

func labelReason(l wire.TriageMessageLabel) string {
	if len(l.Because) == 0 {
		return "by its owner"
	}
	return fmt.Sprintf("%.2f: %s", l.Score, strings.Join(l.Because, ", "))
}

func deleteLabel(a *command.App) *cobra.Command {
	return command.New(a, "remove ACCOUNT NAME", command.Arguments(2, 2, "the account's name and the label's"), func(ctx context.Context, c *client.Client, args []string) error {
		return a.Done(c.DeleteTriageLabel(ctx, args[0], args[1]), "removed label %s", args[1])
	})
}

func confirmLabel(a *command.App) *cobra.Command {
	var reject bool
	cmd := command.New(a, "confirm MESSAGE NAME", command.Arguments(2, 2, "a message and the label's name"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := find(ctx, c, args[0])
		if err != nil {
			return err
		}
		made, err := c.JudgeTriageLabel(ctx, id, args[1], wire.TriageLabelDecision{Holds: !reject})
		if err != nil {
			return err
		}
		return a.Result(made, "%s label %s\n", made.State, made.Label)
	})
	cmd.Flags().BoolVar(&reject, "reject", false, "reject the label instead")
	return cmd
}
