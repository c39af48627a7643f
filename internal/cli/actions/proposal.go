package actions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// maxInput bounds what is read of proposals, in bytes.
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
			return nil, fmt.Errorf("value %d of the input is not JSON: it breaks off or goes wrong near byte %d", n, decoder.InputOffset())
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
	return f.Tool.Name != "" || f.source != "" || f.ExternalID != "" || f.Risk != "" || f.EmployeeID != (envelope.EmployeeID{}) ||
		f.Constraints != (envelope.Constraints{})
}

func (f *proposalFlags) add(a *command.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.Args = json.RawMessage("{}")
	flags.StringVar(&f.Tool.Name, "tool", "", "the tool's `name`, with its source before it if you like: source:name")
	flags.StringVar(&f.source, "source", "", "the `id` of the source that has the tool")
	a.JSONFlag(cmd, &f.Args, "args", "the tool's arguments as a `JSON` object; @FILE reads them from a file")
	flags.StringVar(&f.ExternalID, "external-id", "", "your own `name` for the action, so that sending it again is safe")
	command.RiskFlag(cmd, &f.Risk, "what `risk` you think it has: low, medium or high")
	flags.StringVar(&f.Constraints.RateBucket, "bucket", "", "the `name` of the bucket whose limits hold; see \"countersign bucket list\"")
	command.EmployeeFlag(cmd, &f.EmployeeID, "the `id` of the employee on whose behalf it is")
	flags.BoolVar(&f.Constraints.Urgent, "urgent", false, "send it in quiet hours too, if the employee may")
	command.FutureFlag(cmd, &f.Constraints.NotBefore, "not-before", "do not start it before this `time`, or this long from now: 15m")
	command.FutureFlag(cmd, &f.Constraints.MustRunBefore, "must-run-before", "skip it unless it was started by this `time`, or this long from now")
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
