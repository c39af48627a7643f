package actions

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const submitHelp = `Propose one action in flags, or any number of them from a file or, for -, from
standard input: an object, an array, {"items": [...]}, or one object a line.

Every proposal has a name of your own, its external id. It makes sending it
again safe: the same name with the same content is the same action, and is done
once. In flags it may be left out, and one is made up; in a file it must be
there.

What happens next is for policy to say: the action runs at once, waits for a
person (see "countersign approve"), or is denied. With --wait the command
answers when it has ended. The exit code is 3 if it was denied, expired or
failed.`

type submitFlags struct {
	proposalFlags
	wait time.Duration
}

// Submit returns the command submit.
func Submit(a *command.App) *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:   "submit [FILE | -]",
		Short: "Propose one action, or many",
		Long:  submitHelp,
		Example: `  countersign submit --tool notes:notes.create --args '{"title":"Hi","body":"…"}'
  countersign submit --tool mail:send --args @letter.json --external-id welcome-4711 --wait
  countersign submit --tool mail:send --args '{}' --not-before 2h --must-run-before 2026-01-31T08:00:00Z
  countersign submit proposals.jsonl
  jq -c '.[]' export.json | countersign submit - --wait=2m --json`,
		Args: command.Arguments(0, 1, "one file, or - for standard input"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error { return runSubmit(ctx, a, c, f, args) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tool, "tool", "", "the tool's `name`, with its source before it if you like: source:name")
	flags.StringVar(&f.source, "source", "", "the `id` of the source that has the tool")
	flags.StringVar(&f.args, "args", "{}", "the tool's arguments as a `JSON` object; @FILE reads them from a file")
	flags.StringVar(&f.externalID, "external-id", "", "your own `name` for the action, so that sending it again is safe")
	flags.StringVar(&f.risk, "risk", "", "what `risk` you think it has: low, medium or high")
	flags.StringVar(&f.bucket, "bucket", "", "the `name` of the bucket whose limits hold; see \"countersign bucket list\"")
	flags.StringVar(&f.employee, "employee", "", "the `id` of the employee on whose behalf it is")
	flags.BoolVar(&f.urgent, "urgent", false, "go out in quiet hours too, if the employee may")
	flags.StringVar(&f.notBefore, "not-before", "", "do not start it before this `time`, or this long from now: 15m")
	flags.StringVar(&f.mustRunBefore, "must-run-before", "", "skip it unless it was started by this `time`, or this long from now")
	command.WaitFlag(cmd, &f.wait, "answer when it has ended, or after this `duration`")
	command.Fixed(cmd, "risk", "low", "medium", "high")
	return cmd
}

func runSubmit(ctx context.Context, a *command.App, c *client.Client, f submitFlags, args []string) error {
	proposals, err := proposals(a, f, args)
	if err != nil {
		return err
	}
	if len(proposals) == 1 {
		return submitOne(ctx, a, c, proposals[0], f.wait)
	}
	return submitMany(ctx, a, c, proposals, f.wait)
}

// proposals are those of the file or of the flags.
func proposals(a *command.App, f submitFlags, args []string) ([]json.RawMessage, error) {
	switch {
	case len(args) == 0 && f.tool == "":
		return nil, command.Misuse("say what to do: --tool SOURCE:NAME, or a file of proposals")
	case len(args) == 1 && f.proposalFlags != (proposalFlags{args: "{}"}):
		return nil, command.Misuse("give a file or a proposal in flags, not both")
	case len(args) == 1:
		in, err := a.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }()
		all, err := readProposals(in)
		if err == nil && len(all) == 0 {
			err = errors.New("the input holds no proposals")
		}
		return all, err
	}
	var err error
	if f.args, err = a.ReadArgs(f.args); err != nil {
		return nil, err
	}
	one, err := f.proposal(time.Now())
	return []json.RawMessage{one}, err
}

func submitOne(ctx context.Context, a *command.App, c *client.Client, proposal json.RawMessage, wait time.Duration) error {
	s, err := c.Submit(ctx, proposal, wait)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Action != nil {
		s, err = client.Submitted{Action: *p.Action}, nil
	}
	if err != nil {
		return err
	}
	if s.Known {
		a.Note("It was known already, with the same content; nothing was proposed a second time.")
	}
	return ShowOutcome(a, []client.Action{s.Action}, wait)
}

// submitMany sends proposals in lots, each as large as the API takes.
func submitMany(ctx context.Context, a *command.App, c *client.Client, proposals []json.RawMessage, wait time.Duration) error {
	began, refused := time.Now(), false
	var all []client.BatchItem
	for sent := 0; sent < len(proposals); {
		lot := nextLot(proposals[sent:])
		items, err := c.SubmitMany(ctx, lot)
		if err != nil {
			a.Note("%d of %d were sent before this; submit the same again, which is safe.", sent, len(proposals))
			return err
		}
		for i := range items {
			items[i].Index += sent
			refused = refused || items[i].Result == "refused"
		}
		all = append(all, items...)
		if sent += len(lot); len(proposals) > len(lot) {
			a.Note("submitted %d of %d", sent, len(proposals))
		}
	}
	if wait > 0 {
		return waitForAll(ctx, a, c, all, began.Add(wait), refused)
	}
	if err := showBatch(a, all); err != nil {
		return err
	}
	return batchError(all, refused)
}

// waitForAll shows the actions of a batch when they have ended, or as they
// stand when the time is over.
func waitForAll(ctx context.Context, a *command.App, c *client.Client, all []client.BatchItem, until time.Time, refused bool) error {
	var actions []client.Action
	var rest []client.BatchItem
	for _, it := range all {
		if it.ActionID == nil {
			rest = append(rest, it)
			continue
		}
		action, _, err := c.Wait(ctx, *it.ActionID, max(time.Until(until), time.Millisecond))
		if err != nil {
			return err
		}
		actions = append(actions, action)
	}
	if len(rest) > 0 {
		if err := showBatch(a, rest); err != nil {
			return err
		}
	}
	err := ShowOutcome(a, actions, time.Until(until))
	if refused {
		return batchError(all, refused)
	}
	return err
}

func batchError(all []client.BatchItem, refused bool) error {
	if refused {
		n := 0
		for _, it := range all {
			if it.Result == "refused" {
				n++
			}
		}
		return &refusedError{n, len(all)}
	}
	for _, it := range all {
		if it.Result == "denied" || ended(it.Phase) {
			return command.ErrAction
		}
	}
	return nil
}

// maxLot bounds the bytes of one batch, below what the API takes.
const maxLot = 16 << 20

// nextLot returns as many proposals as fit into one batch.
func nextLot(proposals []json.RawMessage) []json.RawMessage {
	size := 0
	for i, p := range proposals {
		if size += len(p) + 1; i == envelope.MaxItems || i > 0 && size > maxLot {
			return proposals[:i]
		}
	}
	return proposals
}
