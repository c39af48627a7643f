package actions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Submit returns the command submit.
func Submit(a *command.App) *cobra.Command {
	var f proposalFlags
	var wait time.Duration
	cmd := command.New(a, "submit [FILE | -]", command.Arguments(0, 1, "one file, or - for standard input"), nil)
	f.add(a, cmd)
	command.WaitFlag(cmd, &wait, "wait until it ends, for at most this `duration`")
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		proposals, err := readInput(a, cmd, f, args)
		switch {
		case err != nil:
			return err
		case len(proposals) == 1:
			return submitOne(ctx, a, c, proposals[0], wait)
		}
		return submitMany(ctx, a, c, proposals, wait)
	})
	return cmd
}

// readInput returns the proposals of the file or of the flags.
func readInput(a *command.App, cmd *cobra.Command, f proposalFlags, args []string) ([]json.RawMessage, error) {
	inFlags := cmd.Flags().Changed("args") || f.given()
	switch {
	case len(args) == 0 && f.Tool.Name == "":
		return nil, command.Misuse("nothing to submit: give --tool SOURCE:NAME or a file of proposals")
	case len(args) == 1 && inFlags:
		return nil, command.Misuse("give a file or a proposal in flags, not both")
	case len(args) == 0:
		one, err := f.proposal()
		return []json.RawMessage{one}, err
	}
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

func submitOne(ctx context.Context, a *command.App, c *client.Client, proposal json.RawMessage, wait time.Duration) error {
	s, err := c.Submit(ctx, proposal, wait)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Action != nil {
		s, err = client.Submitted{Action: *p.Action}, nil
	}
	if err != nil {
		return err
	}
	if s.Known {
		a.Note("Already proposed with the same content; nothing was proposed again.")
	}
	return ShowOutcome(a, []wire.Action{s.Action}, wait)
}

// submitMany submits proposals in batches, each as large as the API takes.
func submitMany(ctx context.Context, a *command.App, c *client.Client, proposals []json.RawMessage, wait time.Duration) error {
	began, refused := time.Now(), 0
	var all []wire.BatchItem
	for sent := 0; sent < len(proposals); {
		batch := nextBatch(proposals[sent:])
		items, err := c.SubmitBatch(ctx, batch)
		if err != nil {
			a.Note("%d of %d were submitted before the error; submitting all of them again is safe.", sent, len(proposals))
			return err
		}
		for i := range items {
			items[i].Index += sent
			if items[i].Result == wire.ResultRefused {
				refused++
			}
		}
		all = append(all, items...)
		if sent += len(batch); len(proposals) > len(batch) {
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
func waitForAll(ctx context.Context, a *command.App, c *client.Client, all []wire.BatchItem, until time.Time, refused int) error {
	var actions []wire.Action
	var rest []wire.BatchItem
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
	if refused > 0 {
		return batchError(all, refused)
	}
	return err
}

// batchError returns the error of a batch. Why proposals were refused has been
// shown.
func batchError(all []wire.BatchItem, refused int) error {
	if refused > 0 {
		return fmt.Errorf("%d of %d proposals were refused; correct them and submit the whole input again, which is safe", refused, len(all))
	}
	for _, it := range all {
		if it.Result == wire.ResultDenied || ended(it.Phase) {
			return command.ErrAction
		}
	}
	return nil
}

// maxBatchBytes bounds the bytes of one batch, below the API's bound.
const maxBatchBytes = 16 << 20

// nextBatch returns as many proposals as fit into one batch.
func nextBatch(proposals []json.RawMessage) []json.RawMessage {
	size := 0
	for i, p := range proposals {
		if size += len(p) + 1; i == envelope.MaxItems || i > 0 && size > maxBatchBytes {
			return proposals[:i]
		}
	}
	return proposals
}

// maxInput bounds the input that holds proposals, in bytes.
const maxInput = 512 << 20

// readProposals reads one proposal or many: an object, an array of them, an
// object whose only field is items, or any of these one after the other, as in
// JSON lines. Each stays as it was written, for the server's strict parser.
func readProposals(r io.Reader) ([]json.RawMessage, error) {
	limited := &io.LimitedReader{R: r, N: maxInput + 1}
	decoder := json.NewDecoder(limited)
	var all []json.RawMessage
	for n := 1; ; n++ {
		var value json.RawMessage
		err := decoder.Decode(&value)
		switch {
		case limited.N == 0:
			return nil, fmt.Errorf("the input is larger than %d MiB; submit it in parts", maxInput>>20)
		case errors.Is(err, io.EOF) && n == 1:
			return nil, errors.New("the input is empty; it must hold a proposal, an array of them, or one on each line")
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("value %d of the input is not valid JSON: error near byte %d", n, decoder.InputOffset())
		}
		found, err := unpack(value)
		if err != nil {
			return nil, fmt.Errorf("value %d of the input: %w", n, err)
		}
		all = append(all, found...)
	}
}

// unpack returns the proposals that a value holds.
func unpack(value json.RawMessage) ([]json.RawMessage, error) {
	switch value[0] {
	case '[':
		var list []json.RawMessage
		err := json.Unmarshal(value, &list)
		return list, err
	case '{':
	default:
		return nil, errors.New("it is neither an object nor an array")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return nil, errors.New("it is not an object")
	}
	if items, ok := fields["items"]; ok && len(fields) == 1 && bytes.HasPrefix(items, []byte("[")) {
		return unpack(items)
	}
	return []json.RawMessage{value}, nil
}

// proposalFlags are a proposal in flags.
type proposalFlags struct {
	envelope.Proposal
	source string
}

// given reports whether any flag but --args is set.
func (f *proposalFlags) given() bool {
	return f.Tool.Name != "" || f.source != "" || f.ExternalID != "" || f.Risk != "" || f.EmployeeID != (envelope.EmployeeID{}) || f.AutomationID != "" ||
		f.Constraints != (envelope.Constraints{})
}

func (f *proposalFlags) add(a *command.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.Args = json.RawMessage("{}")
	flags.StringVar(&f.Tool.Name, "tool", "", "`name` of the tool, optionally with its source: source:name")
	flags.StringVar(&f.source, "source", "", "`id` of the tool's source")
	a.JSONFlag(cmd, &f.Args, "args", "arguments of the tool as a `JSON` object; @FILE reads a file")
	flags.StringVar(&f.ExternalID, "external-id", "", "external id: your own `name` for the action, which makes it safe to send again")
	command.RiskFlag(cmd, &f.Risk, "your estimate of the `risk`: low, medium or high")
	flags.StringVar(&f.Constraints.RateBucket, "bucket", "", "`name` of the rate-limit bucket; see \"countersign bucket list\"")
	command.EmployeeFlag(cmd, &f.EmployeeID, "`id` of the employee that the agent acts for")
	command.AutomationFlag(cmd, &f.AutomationID, "`automation` that proposes the action")
	flags.BoolVar(&f.Constraints.Urgent, "urgent", false, "send in quiet hours too, if the employee may")
	command.FutureFlag(cmd, &f.Constraints.NotBefore, "not-before", "earliest start: a `time`, or a duration from now such as 15m")
	command.FutureFlag(cmd, &f.Constraints.MustRunBefore, "must-run-before", "latest start: a `time`, or a duration from now; skip the action after it")
}

// proposal returns the proposal of the flags. Without an external id it gets
// one, so that it is accepted; a script that may run twice gives its own.
func (f *proposalFlags) proposal() (json.RawMessage, error) {
	p := f.Proposal
	p.Type = envelope.TypeExec
	p.Tool.Source = f.source
	if source, name, ok := strings.Cut(p.Tool.Name, ":"); ok && p.Tool.Source == "" {
		p.Tool = envelope.Tool{Source: source, Name: name}
	}
	p.ExternalID = cmp.Or(p.ExternalID, "cli-"+uuid.NewString())
	if err := p.Validate(); err != nil {
		return nil, command.Misuse("%v", err)
	}
	return json.Marshal(p)
}
