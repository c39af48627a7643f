package approvals

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// maxDecisions bounds the actions of one request, which is one transaction.
const maxDecisions = 500

// cohort selects actions of triage by the cohort of their mail, in place of ids.
type cohort struct{ name string }

func (in *cohort) flag(cmd *cobra.Command) {
	cohortFlag(cmd, &in.name, "instead of ids: all waiting actions about mail of this `cohort`; needs the scope mail:read")
}

// arguments checks that a command has either ids or a cohort.
func (in *cohort) arguments(cmd *cobra.Command, args []string) error {
	if in.name == "" {
		return command.Arguments(1, command.Many, "one or more action ids, or --cohort")(cmd, args)
	}
	if len(args) > 0 {
		return command.Misuse("give either ids or --cohort")
	}
	return nil
}

// decide lists the waiting actions of the cohort and decides about the versions
// that it listed, in sets of one transaction each. Those that changed, or were
// decided or withdrawn since, are left and reported.
func (in *cohort) decide(ctx context.Context, a *command.App, c *client.Client, verb string, with wire.BulkDecision, asks, yes bool, many func(context.Context, wire.BulkDecision) ([]wire.Decided, error)) error {
	if !asks && !yes {
		return command.Misuse("without a terminal, --cohort needs --yes")
	}
	items, err := in.list(ctx, c)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		a.Note("Nothing waits for a person.")
		return nil
	}
	if asks {
		err := command.View[wire.InboxItem]{Head: []string{"ID", "TOOL", "RISK", "MAIL", "ARGUMENTS"}, Row: func(it wire.InboxItem) []string {
			return []string{it.ActionID.String(), it.Tool, string(it.Risk), actions.MailText(it.Mail), command.Compact(it.Args)}
		}}.Show(a)(items, nil)
		if err != nil {
			return err
		}
		if err := a.Ask(fmt.Sprintf("%s these %d?", verb, len(items))); err != nil {
			return err
		}
	}
	var all []wire.Decided
	for set := range slices.Chunk(items, maxDecisions) {
		with.IDs, with.ETags = nil, make(map[envelope.ActionID]string)
		for _, it := range set {
			with.IDs, with.ETags[it.ActionID] = append(with.IDs, it.ActionID), it.ETag
		}
		decided, err := many(ctx, with)
		if err != nil {
			return errorsAfter(a, all, err)
		}
		all = append(all, decided...)
	}
	return showDecided(a, all)
}

// errorsAfter shows the decisions before a request failed, and returns its
// error.
func errorsAfter(a *command.App, all []wire.Decided, err error) error {
	if len(all) > 0 {
		_ = showDecided(a, all)
	}
	return err
}

// list returns the waiting actions of the cohort.
func (in *cohort) list(ctx context.Context, c *client.Client) (items []wire.InboxItem, err error) {
	f := client.InboxFilter{Cohort: in.name, Kinds: []string{wire.InboxApproval, wire.InboxQuestion, wire.InboxReview}, Limit: 200}
	for {
		page, err := c.Inbox(ctx, f)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.NextCursor == nil {
			return items, nil
		}
		f.Cursor = *page.NextCursor
	}
}
