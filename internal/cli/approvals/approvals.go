// Package approvals has the commands by which people decide about actions:
// inbox, approve, edit, deny, undo and review.
package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// decision is how one action is approved or edited, in flags.
type decision struct {
	wire.Approval
	sets  []string
	grant wire.Always
	// preview shows the grant and decides nothing.
	preview bool
	yes     bool
	wait    time.Duration
}

// changes reports whether the flags change arguments.
func (f *decision) changes() bool { return len(f.Args) > 0 || len(f.sets) > 0 }

// onlyOne reports whether the flags are about one action.
func (f *decision) onlyOne() bool {
	return f.ETag != "" || f.changes() || f.grant.ExpiresIn > 0 || f.loosens()
}

// loosens reports whether the flags shape a grant.
func (f *decision) loosens() bool {
	return f.preview || f.grant.Scope != "" || len(f.grant.Pins) > 0 || len(f.grant.Loose) > 0
}

// always returns the grant to ask for; nil for none.
func (f *decision) always() *wire.Always {
	if f.grant.ExpiresIn == 0 {
		return nil
	}
	always := f.grant
	always.Loose, always.Pins = command.LooseFlags(f.grant.Loose), command.LooseFlags(f.grant.Pins)
	return &always
}

func (f *decision) changeFlags(a *command.App, cmd *cobra.Command) {
	a.JSONFlag(cmd, &f.Args, "args", "replace all arguments with this JSON `object` or @FILE")
	cmd.Flags().StringArrayVar(&f.sets, "set", nil, "replace one argument: a.b=`value`, JSON or a string (repeatable)")
	etagFlag(cmd, &f.ETag)
}

func etagFlag(cmd *cobra.Command, etag *string) {
	cmd.Flags().StringVar(etag, "etag", "", "only if the action's `ETag` still matches; \"get\" prints it")
}

// Approve returns the command approve.
func Approve(a *command.App) *cobra.Command {
	var f decision
	var in cohort
	cmd := command.New(a, "approve ID...", in.arguments, func(ctx context.Context, c *client.Client, args []string) error {
		switch {
		case in.name != "" && (f.onlyOne() || f.wait > 0):
			return command.Misuse("--cohort cannot be combined with --args, --set, --etag, --always or --wait")
		case in.name != "":
			return in.decide(ctx, a, c, "Approve", wire.BulkDecision{Note: f.Note}, f.asks(a), f.yes, c.ApproveMany)
		case f.onlyOne() && len(args) > 1:
			return command.Misuse("--args, --set, --etag and --always apply to one action; approve the others separately")
		case f.grant.ExpiresIn == 0 && f.loosens():
			return command.Misuse("--scope, --loose, --pin and --preview require --always")
		case f.preview:
			return f.showGrant(ctx, a, c, args[0])
		case len(args) > 1 && f.wait == 0:
			return decideMany(ctx, a, args, f.Note, c.ApproveMany)
		}
		return actions.Each(ctx, a, args, f.wait, func(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			in, err := f.approval(ctx, a, c, id)
			if err != nil {
				return wire.Action{}, err
			}
			return c.Approve(ctx, id, in, f.wait)
		})
	})
	flags := cmd.Flags()
	flags.StringVar(&f.Note, "note", "", "reason, for the audit log and the agent")
	in.flag(cmd)
	f.changeFlags(a, cmd)
	command.LifetimeFlag(cmd, &f.grant.ExpiresIn, "always", "also approve calls with the same arguments for this `time`")
	flags.Lookup("always").NoOptDefVal = "8h"
	command.EnumFlag(cmd, &f.grant.Scope, "scope", "with --always: whose calls to approve: `session`, employee, automation or tenant",
		"session", "employee", "automation", "tenant")
	flags.StringArrayVar(&f.grant.Loose, "loose", nil, "with --always: JSON `pointer` to an argument that may differ, or all (repeatable)")
	flags.StringArrayVar(&f.grant.Pins, "pin", nil, "with --always, instead of --loose: JSON `pointer` to an argument that must stay the same, or all; the others may differ (repeatable)")
	flags.BoolVar(&f.preview, "preview", false, "with --always: show the grant and the past calls that it would have approved, without approving")
	flags.BoolVarP(&f.yes, "yes", "y", false, "skip the confirmation prompt")
	command.WaitFlag(cmd, &f.wait, "wait until each one ends, for at most this `duration`")
	return cmd
}

// approval returns the approval of an action. Changes are made to the version
// of the action that it shows, and bind the approval to it.
func (f *decision) approval(ctx context.Context, a *command.App, c *client.Client, id envelope.ActionID) (wire.Approval, error) {
	in := f.Approval
	in.Always = f.always()
	asks := f.asks(a)
	if in.ETag != "" && !f.changes() {
		return in, nil
	}
	action, err := c.Action(ctx, id)
	if err != nil {
		return in, err
	}
	d := action.Decision
	if in.ETag == "" {
		if in.ETag, err = seenETag(action, "approve", asks || f.changes() || f.yes); err != nil {
			return in, err
		}
	}
	if in.Args, err = f.arguments(action.Envelope.Args); err != nil {
		return in, err
	}
	if asks && d != nil && d.At == nil {
		action.Envelope.Args = in.Args
		var grant *wire.GrantPreview
		if in.Always != nil && !f.changes() {
			g, err := c.PreviewAlways(ctx, id, in.ETag, *in.Always)
			if err != nil {
				return in, err
			}
			grant = &g
		}
		if err := confirm(a, action, grant); err != nil {
			return in, err
		}
	}
	if !f.changes() {
		in.Args = nil
	}
	return in, nil
}

// seenETag returns the ETag of an action that waits for a decision, or "" if it
// waits for none. An action that was edited is only decided about by somebody
// who saw it, or was told that it was.
func seenETag(action wire.Action, decide string, seen bool) (string, error) {
	d, id := action.Decision, action.Envelope.ActionID
	if d == nil || d.At != nil {
		return "", nil
	}
	if d.Edited != nil && !seen {
		return "", command.Misuse("%s was edited by %s after it was proposed: check it with `countersign get %s`, then %s it with --etag %s",
			id, command.Line(d.Edited.By.Brief()), id, decide, d.ETag)
	}
	return d.ETag, nil
}

// arguments returns the arguments of an action with the changes of the flags.
func (f *decision) arguments(args json.RawMessage) (_ json.RawMessage, err error) {
	if len(f.Args) > 0 {
		args = f.Args
	}
	for _, set := range f.sets {
		if args, err = command.Assign(args, nil, set); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// asks reports whether a person can be asked.
func (f *decision) asks(a *command.App) bool {
	return !f.yes && f.ETag == "" && a.Interactive()
}

// errNotConfirmed means that a person answered otherwise than yes.
var errNotConfirmed = errors.New("not approved")

// showGrant shows the grant of an approval that is not made.
func (f *decision) showGrant(ctx context.Context, a *command.App, c *client.Client, text string) error {
	ids, err := command.IDs([]string{text})
	if err != nil {
		return err
	}
	action, err := c.Action(ctx, ids[0])
	if err != nil {
		return err
	}
	etag := f.ETag
	if d := action.Decision; etag == "" && d != nil {
		etag = d.ETag
	}
	g, err := c.PreviewAlways(ctx, ids[0], etag, *f.always())
	if err != nil {
		return err
	}
	return command.ShowGrant(a, g)
}

// confirm shows an action, and a grant for it, and asks whether to approve it.
func confirm(a *command.App, action wire.Action, grant *wire.GrantPreview) error {
	if err := actions.ShowDetail(a, action, nil); err != nil {
		return err
	}
	if grant != nil {
		fmt.Fprintln(a.Out)
		if err := command.ShowGrant(a, *grant); err != nil {
			return err
		}
	}
	if a.Ask("Approve this?") != nil {
		return errNotConfirmed
	}
	return nil
}

// Edit returns the command edit.
func Edit(a *command.App) *cobra.Command {
	var f decision
	cmd := command.New(a, "edit ID", command.Arguments(1, 1, "an action id"), func(ctx context.Context, c *client.Client, args []string) error {
		if !f.changes() {
			return command.Misuse("nothing to change: give --args or --set")
		}
		f.yes = true
		return actions.Each(ctx, a, args, 0, func(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			in, err := f.approval(ctx, a, c, id)
			if err != nil {
				return wire.Action{}, err
			}
			return c.EditAction(ctx, id, in)
		})
	})
	cmd.Flags().StringVar(&f.Note, "note", "", "reason, for the audit log")
	f.changeFlags(a, cmd)
	return cmd
}

// Deny returns the command deny.
func Deny(a *command.App) *cobra.Command {
	var in wire.Denial
	var all cohort
	var yes bool
	cmd := command.New(a, "deny ID...", all.arguments, func(ctx context.Context, c *client.Client, args []string) error {
		switch {
		case all.name != "" && in.ETag != "":
			return command.Misuse("--cohort cannot be combined with --etag")
		case all.name != "":
			f := decision{yes: yes}
			return all.decide(ctx, a, c, "Deny", wire.BulkDecision{Note: in.Note}, f.asks(a), yes, c.DenyMany)
		case in.ETag != "" && len(args) > 1:
			return command.Misuse("--etag applies to one action; deny the others separately")
		case len(args) > 1:
			return decideMany(ctx, a, args, in.Note, c.DenyMany)
		}
		return actions.Intended(actions.Each(ctx, a, args, 0, func(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			in := in
			if in.ETag == "" {
				action, err := c.Action(ctx, id)
				if err != nil {
					return wire.Action{}, err
				}
				if in.ETag, err = seenETag(action, "deny", false); err != nil {
					return wire.Action{}, err
				}
			}
			return c.Deny(ctx, id, in)
		}))
	})
	cmd.Flags().StringVar(&in.Note, "note", "", "reason, for the audit log and the agent")
	all.flag(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --cohort: skip the confirmation prompt")
	etagFlag(cmd, &in.ETag)
	return cmd
}

// decideMany decides about several actions at once and shows the result of
// each. The error is that of the first action that could not be decided about.
func decideMany(ctx context.Context, a *command.App, args []string, note string, decide func(context.Context, wire.BulkDecision) ([]wire.Decided, error)) error {
	ids, err := command.IDs(args)
	if err != nil {
		return err
	}
	all, err := decide(ctx, wire.BulkDecision{IDs: ids, Note: note})
	if err != nil {
		return err
	}
	return showDecided(a, all)
}

// showDecided shows the result of each decision. The error is that of the first
// action that could not be decided about.
func showDecided(a *command.App, all []wire.Decided) error {
	err := command.View[wire.Decided]{Head: []string{"ID", "RESULT", "WHY"}, Row: func(d wire.Decided) []string {
		text := ""
		switch {
		case d.Problem != nil:
			text = actions.Refusal(d.Problem)
		case d.Needed > 1:
			text = fmt.Sprintf("%d of %d agree", d.Given, d.Needed)
		}
		return []string{d.ActionID.String(), d.Result, text}
	}}.Show(a)(all, nil)
	for _, d := range all {
		if err == nil && d.Problem != nil {
			return &client.Problem{Problem: *d.Problem}
		}
	}
	return err
}

// Undo returns the command undo.
func Undo(a *command.App) *cobra.Command {
	return command.New(a, "undo ID...", command.Arguments(1, command.Many, "one or more action ids"), func(ctx context.Context, c *client.Client, args []string) error {
		return actions.Intended(actions.Each(ctx, a, args, 0, c.Undo))
	})
}

// Reviews returns the command review.
func Reviews(a *command.App) *cobra.Command {
	return command.NewGroup("review", command.NewList(a, command.View[wire.ReviewRule]{
		Empty: "No review rules: one approval is enough.",
		Head:  []string{"KEY", "FROM RISK", "APPROVALS", "WAIT", "WARN", "ESCALATE", "EDITS", "SET BY"},
		Row: func(r wire.ReviewRule) []string {
			return []string{r.Tool, string(r.Risk), strconv.Itoa(r.Approvals), timeText(r.Wait), timeText(r.Warn), timeText(r.Escalate), r.Edits, r.UpdatedBy.Brief()}
		},
	}, (*client.Client).Reviews),
		a.CreateFlag(reviewSet(a)), reviewDelete(a))
}

// timeText shows a time of a rule; one that is left to other rules is empty.
func timeText(d *envelope.Duration) string {
	switch {
	case d == nil:
		return ""
	case *d == 0:
		return "never"
	}
	return d.String()
}

// editsAnother is the value of a review rule's edits.
const editsAnother = "another"

func reviewSet(a *command.App) *cobra.Command {
	var approvals int
	var risk envelope.Risk
	var edits string
	var wait, warn, escalate envelope.Duration
	cmd := command.New(a, "set KEY", command.Arguments(1, 1, "a key, such as mail:send or mail:*"), nil)
	command.RiskFlag(cmd, &risk, "apply to actions of at least this `risk`: low (all), medium or high")
	command.PositiveFlag(cmd, &approvals, "approvals", "number of `people` who must approve")
	command.DurationFlag(cmd, &wait, "wait", "expire undecided actions after this `time`")
	command.DurationFlag(cmd, &warn, "warn", "send a warning event this `time` before an action expires")
	command.DurationFlag(cmd, &escalate, "escalate", "send an escalation event after this `time` without a decision")
	command.EnumFlag(cmd, &edits, "edits", "who may approve an edited action: `anyone`, or another person than the editor", "anyone", editsAnother)
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		all, err := c.Reviews(ctx)
		if err != nil {
			return err
		}
		r := wire.ReviewRule{Tool: args[0], Risk: cmp.Or(risk, envelope.RiskLow), Approvals: 1}
		if i := slices.IndexFunc(all, func(was wire.ReviewRule) bool { return was.Tool == r.Tool && was.Risk == r.Risk }); i >= 0 {
			r = all[i]
		}
		r.Approvals = cmp.Or(approvals, r.Approvals)
		switch edits {
		case editsAnother:
			r.Edits = editsAnother
		case "anyone":
			r.Edits = ""
		}
		for name, field := range map[string]struct {
			set *envelope.Duration
			to  **envelope.Duration
		}{"wait": {&wait, &r.Wait}, "warn": {&warn, &r.Warn}, "escalate": {&escalate, &r.Escalate}} {
			if flag := cmd.Flags().Lookup(name); flag.Changed {
				if *field.to = nil; flag.Value.String() != "" {
					*field.to = field.set
				}
			}
		}
		return a.Done(c.PutReview(ctx, r), "set the review of %s from risk %s on", r.Tool, r.Risk)
	})
	return cmd
}

func reviewDelete(a *command.App) *cobra.Command {
	var risk envelope.Risk
	cmd := command.NewChange(a, "delete KEY", "the key of a rule", "removed the review of %s", func(c *client.Client, ctx context.Context, key string) error {
		return c.DeleteReview(ctx, key, risk)
	})
	command.RiskFlag(cmd, &risk, "`risk` of the rule (default low)")
	return cmd
}
