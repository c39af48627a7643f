package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
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

func (a *app) submit() *cobra.Command {
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
		Args: arguments(0, 1, "one file, or - for standard input"),
		RunE: a.run(func(ctx context.Context, c *client.Client, args []string) error { return a.runSubmit(ctx, c, f, args) }),
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
	waitFlag(cmd, &f.wait, "answer when it has ended, or after this `duration`")
	fixed(cmd, "risk", "low", "medium", "high")
	return cmd
}

func (a *app) runSubmit(ctx context.Context, c *client.Client, f submitFlags, args []string) error {
	proposals, err := a.proposals(f, args)
	if err != nil {
		return err
	}
	if len(proposals) == 1 {
		return a.submitOne(ctx, c, proposals[0], f.wait)
	}
	return a.submitMany(ctx, c, proposals, f.wait)
}

// proposals are those of the file or of the flags.
func (a *app) proposals(f submitFlags, args []string) ([]json.RawMessage, error) {
	switch {
	case len(args) == 0 && f.tool == "":
		return nil, misuse("say what to do: --tool SOURCE:NAME, or a file of proposals")
	case len(args) == 1 && f.proposalFlags != (proposalFlags{args: "{}"}):
		return nil, misuse("give a file or a proposal in flags, not both")
	case len(args) == 1:
		in, err := a.open(args[0])
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
	if err := a.readArgs(&f.proposalFlags); err != nil {
		return nil, err
	}
	one, err := f.proposal(time.Now())
	return []json.RawMessage{one}, err
}

func (a *app) submitOne(ctx context.Context, c *client.Client, proposal json.RawMessage, wait time.Duration) error {
	s, err := c.Submit(ctx, proposal, wait)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Action != nil {
		s, err = client.Submitted{Action: *p.Action}, nil
	}
	if err != nil {
		return err
	}
	if s.Known {
		a.note("It was known already, with the same content; nothing was proposed a second time.")
	}
	return a.showOutcome([]client.Action{s.Action}, wait)
}

// submitMany sends proposals in lots, each as large as the API takes.
func (a *app) submitMany(ctx context.Context, c *client.Client, proposals []json.RawMessage, wait time.Duration) error {
	began, refused := time.Now(), false
	var all []client.BatchItem
	for sent := 0; sent < len(proposals); {
		lot := nextLot(proposals[sent:])
		items, err := c.SubmitMany(ctx, lot)
		if err != nil {
			a.note("%d of %d were sent before this; submit the same again, which is safe.", sent, len(proposals))
			return err
		}
		for i := range items {
			items[i].Index += sent
			refused = refused || items[i].Result == "refused"
		}
		all = append(all, items...)
		if sent += len(lot); len(proposals) > len(lot) {
			a.note("submitted %d of %d", sent, len(proposals))
		}
	}
	if wait > 0 {
		return a.waitForAll(ctx, c, all, began.Add(wait), refused)
	}
	if err := a.showBatch(all); err != nil {
		return err
	}
	return batchError(all, refused)
}

// waitForAll shows the actions of a batch when they have ended, or as they
// stand when the time is over.
func (a *app) waitForAll(ctx context.Context, c *client.Client, all []client.BatchItem, until time.Time, refused bool) error {
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
		if err := a.showBatch(rest); err != nil {
			return err
		}
	}
	err := a.showOutcome(actions, time.Until(until))
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
			return errEnvelope
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
