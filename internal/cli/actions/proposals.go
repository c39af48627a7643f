package actions

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Proposals returns the command with those that list and show proposals in SQL
// that did not become actions.
func Proposals(a *command.App) *cobra.Command {
	return command.NewGroup("proposals", listProposals(a), showProposal(a))
}

func listProposals(a *command.App) *cobra.Command {
	var f client.SQLProposalFilter
	view := command.View[wire.SQLProposal]{
		Empty: "No matching proposals.", Head: []string{"ID", "LOGIN", "STATE", "PROPOSED", "WHY"},
		Row: func(p wire.SQLProposal) []string {
			return []string{p.ID.String(), p.Login, p.State, command.Local(&p.ProposedAt), whyNoAction(p)}
		},
	}
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view.ShowPage(a)(c.SQLProposals(ctx, f))
	})
	command.EnumFlag(cmd, &f.State, "state", "filter by `state`: waiting, refused or duplicate (default refused and duplicate)", "waiting", "refused", "duplicate")
	cmd.Flags().StringVar(&f.Login, "login", "", "filter by database login `name`")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

// why describes in one line why a proposal did not become an action.
func whyNoAction(p wire.SQLProposal) string {
	switch {
	case p.Problem != nil && len(p.Problem.Errors) > 0:
		return place(p.Problem.Errors[0])
	case p.Problem != nil:
		return p.Problem.Kind + ": " + p.Problem.Detail
	case p.ActionID != nil:
		return "the same as " + p.ActionID.String()
	default:
		return ""
	}
}

// place describes the error of a field.
func place(e envelope.FieldError) string {
	return fmt.Sprintf("%s %s: %s", e.Pointer, e.Rule, e.Message)
}

func showProposal(a *command.App) *cobra.Command {
	return command.New(a, "show ID", command.Arguments(1, 1, "a proposal id"), func(ctx context.Context, c *client.Client, args []string) error {
		ids, err := command.IDs(args)
		if err != nil {
			return err
		}
		return command.Show(a, showDetail)(c.SQLProposal(ctx, ids[0]))
	})
}

func showDetail(a *command.App, d wire.SQLProposalDetail) error {
	pairs := []string{
		"id", d.ID.String(),
		"login", d.Login,
		"state", d.State,
		"proposed", command.Local(&d.ProposedAt),
		"answered", command.Local(d.AnsweredAt),
	}
	if d.ActionID != nil {
		pairs = append(pairs, "the same as", d.ActionID.String())
	}
	if d.Problem != nil {
		pairs = append(pairs, "problem", d.Problem.Kind+": "+d.Problem.Detail)
		for _, e := range d.Problem.Errors {
			pairs = append(pairs, "error", place(e))
		}
	}
	return a.Fields(append(pairs, "envelope", command.Compact(d.Envelope))...)
}
