package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const approveHelp = `Let actions run that wait for a person. They are due at once; with --wait the
command answers when they have ended. Where a review rule asks for several
people, this is one of their votes.

Look before you sign: "countersign inbox" and "countersign get ID" show what
would be done. What is approved is bound to it: if the arguments, the tool or
the policy change before the action is sent, it is not sent.

One action can be approved with other arguments: all of them from --args, or
some with --set. The agent is told what was changed. With --always, what is like
it goes through without a person from then on: the same tool in the same
session, for 8 hours, with any arguments; --scope, a time and --pin say
otherwise.

It takes an operator's token, and nobody approves what they proposed themselves.
The exit code is 3 if one was approved and then failed.`

// approveFlags are how an action is approved, in flags.
type approveFlags struct {
	note, etag, args, always, scope string
	sets, pins                      []string
	wait                            time.Duration
}

// alone says that the flags are about one action.
func (f *approveFlags) alone() bool {
	return f.etag != "" || f.changes() || f.always != "" || f.scope != "" || len(f.pins) > 0
}

func (f *approveFlags) changes() bool { return f.args != "" || len(f.sets) > 0 }

// Approve returns the command approve.
func Approve(a *command.App) *cobra.Command {
	var f approveFlags
	cmd := &cobra.Command{
		Use:   "approve ID...",
		Short: "Let actions run that wait for a person",
		Long:  approveHelp,
		Example: `  countersign inbox
  countersign approve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "as agreed" --wait
  countersign approve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --set to=ana@example.org --set copies=2
  countersign approve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --always=1d --pin /to`,
		Args: command.Arguments(1, command.Many, "the ids of actions"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			switch {
			case f.alone() && len(args) > 1:
				return command.Misuse("--args, --set, --etag and --always are about one action; approve the others by themselves")
			case len(args) > 1 && f.wait == 0:
				return decideMany(a, args, func(ids []envelope.ActionID) ([]client.Decided, error) { return c.ApproveMany(ctx, ids, f.note) })
			}
			return actions.Each(ctx, a, args, f.wait, func(ctx context.Context, id envelope.ActionID) (client.Action, error) {
				in, err := approval(ctx, a, c, id, &f)
				if err != nil {
					return client.Action{}, err
				}
				return c.Approve(ctx, id, in, f.wait)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.note, "note", "", "why, for the record and for the agent")
	changeFlags(cmd, &f)
	flags.StringVar(&f.always, "always", "", "also let through what is like it, for this `time`")
	flags.Lookup("always").NoOptDefVal = "8h"
	flags.StringVar(&f.scope, "scope", "", "with --always: whose: `session`, employee, automation or tenant (everybody)")
	flags.StringArrayVar(&f.pins, "pin", nil, "with --always: a `pointer` to what must be the same, or all (may be given again)")
	command.Fixed(cmd, "scope", "session", "employee", "automation", "tenant")
	command.WaitFlag(cmd, &f.wait, "answer when each has ended, or after this `duration`")
	return cmd
}

func changeFlags(cmd *cobra.Command, f *approveFlags) {
	cmd.Flags().StringVar(&f.args, "args", "", "send these arguments instead, as a JSON `object` or @FILE")
	cmd.Flags().StringArrayVar(&f.sets, "set", nil, "send this one instead: a.b=`value`, JSON or a text (may be given again)")
	cmd.Flags().StringVar(&f.etag, "etag", "", "only if it is as it was when \"get\" showed this `etag`")
}

// approval is what the flags say of an action. What they change, they change
// of the action as it stands.
func approval(ctx context.Context, a *command.App, c *client.Client, id envelope.ActionID, f *approveFlags) (client.Approval, error) {
	in := client.Approval{Note: f.note, ETag: f.etag}
	if f.always == "" && (f.scope != "" || len(f.pins) > 0) {
		return in, command.Misuse("--scope and --pin need --always")
	}
	if f.always != "" {
		d, err := envelope.ParseDuration(f.always)
		if err != nil {
			return in, command.Misuse("--always must be a time such as 8h or 1d; mind the equals sign: --always=1d")
		}
		if err := command.OneOf("scope", f.scope, "session", "employee", "automation", "tenant"); err != nil {
			return in, err
		}
		in.Always = &client.Always{ExpiresIn: d, Scope: f.scope}
		for _, pin := range f.pins {
			if pin == "all" {
				pin = ""
			}
			in.Always.Pins = append(in.Always.Pins, pin)
		}
	}
	if !f.changes() {
		return in, nil
	}
	var err error
	if in.Args, in.ETag, err = changed(ctx, a, c, id, f); err != nil {
		return in, err
	}
	return in, nil
}

// changed are the arguments that the flags ask for, and what they are a change
// of.
func changed(ctx context.Context, a *command.App, c *client.Client, id envelope.ActionID, f *approveFlags) (args json.RawMessage, etag string, err error) {
	action, err := c.Action(ctx, id)
	if err != nil {
		return nil, "", err
	}
	args, etag = action.Envelope.Args, f.etag
	if etag == "" && action.Decision != nil {
		etag = action.Decision.ETag
	}
	if f.args != "" {
		given, err := a.ReadArgs(f.args)
		if err != nil {
			return nil, "", err
		}
		if args = json.RawMessage(given); !json.Valid(args) {
			return nil, "", command.Misuse(`--args must be a JSON object, such as '{"id":"4711"}'; mind the shell's quotes`)
		}
	}
	for _, set := range f.sets {
		if args, err = command.Assign(args, set); err != nil {
			return nil, "", err
		}
	}
	return args, etag, nil
}

const editHelp = `Change what will be sent of an action that waits for a person, and leave it
waiting. Votes that it had are void, since they were for something else. The
arguments are held to the tool's schema, and policy is asked about them.

To change and approve at once, use "approve" with --args or --set.`

// Edit returns the command edit.
func Edit(a *command.App) *cobra.Command {
	var f approveFlags
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change the arguments of an action that waits for a person",
		Long:  editHelp,
		Example: `  countersign edit 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --set to=ana@example.org --note "a typo"
  countersign edit 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --args @letter.json`,
		Args: command.Arguments(1, 1, "the id of an action"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if !f.changes() {
				return command.Misuse("say what to change, with --args or --set")
			}
			return actions.Each(ctx, a, args, 0, func(ctx context.Context, id envelope.ActionID) (client.Action, error) {
				in, err := approval(ctx, a, c, id, &f)
				if err != nil {
					return client.Action{}, err
				}
				return c.EditAction(ctx, id, in)
			})
		}),
	}
	cmd.Flags().StringVar(&f.note, "note", "", "why, for the record")
	changeFlags(cmd, &f)
	return cmd
}

const denyHelp = `Refuse actions that wait for a person. One who denies is enough, however many
must agree. The note says why, and reaches the agent. It takes an operator's
token.`

// Deny returns the command deny.
func Deny(a *command.App) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     "deny ID...",
		Short:   "Refuse actions that wait for a person",
		Long:    denyHelp,
		Example: `  countersign deny 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "not before the board has met"`,
		Args:    command.Arguments(1, command.Many, "the ids of actions"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) > 1 {
				return decideMany(a, args, func(ids []envelope.ActionID) ([]client.Decided, error) { return c.DenyMany(ctx, ids, note) })
			}
			return actions.Intended(a, actions.Each(ctx, a, args, 0, func(ctx context.Context, id envelope.ActionID) (client.Action, error) {
				return c.Deny(ctx, id, note)
			}))
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "why, for the record and for the agent")
	return cmd
}

// decideMany decides about several actions at once and shows what became of
// each. The error is that of the first that nothing was decided about.
func decideMany(a *command.App, args []string, decide func(ids []envelope.ActionID) ([]client.Decided, error)) error {
	wanted, err := command.Ids(args)
	if err != nil {
		return err
	}
	all, err := decide(wanted)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	var first error
	for i, d := range all {
		text := ""
		switch {
		case d.Problem != nil:
			if text = actions.Refusal(d.Problem); first == nil {
				first = d.Problem
			}
		case d.Needed > 1:
			text = fmt.Sprintf("%d of %d agree", d.Given, d.Needed)
		}
		rows[i] = []string{d.ActionID.String(), d.Result, text}
	}
	if a.JSON {
		err = command.WriteJSONLines(a, all)
	} else {
		err = command.Table(a.Out, []string{"ID", "RESULT", "WHY"}, rows)
	}
	if err != nil {
		return err
	}
	return first
}

const undoHelp = `Take an action back before it is sent: one that waits for a person, for its time
or for its next try. What was sent cannot be undone, and what is being sent is
too late. Agents take back what their own session proposed.`

// Undo returns the command undo.
func Undo(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "undo ID...",
		Short:   "Take actions back before they are sent",
		Long:    undoHelp,
		Example: `  countersign undo 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b`,
		Args:    command.Arguments(1, command.Many, "the ids of actions"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return actions.Intended(a, actions.Each(ctx, a, args, 0, c.Undo))
		}),
	}
}
