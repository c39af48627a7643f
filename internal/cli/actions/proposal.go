package actions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

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
	tool, source, args, externalID, risk, bucket, employee, notBefore, mustRunBefore string
	urgent                                                                           bool
}

// proposal makes a proposal out of flags. Without a name it gets one, so that
// it is accepted; a script that may run twice gives its own.
func (f proposalFlags) proposal(now time.Time) (json.RawMessage, error) {
	source, tool := f.source, f.tool
	if before, after, ok := strings.Cut(tool, ":"); ok && source == "" {
		source, tool = before, after
	}
	p := envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: f.externalID, Risk: envelope.Risk(f.risk),
		Tool: envelope.Tool{Source: source, Name: tool}, Args: json.RawMessage(f.args),
	}
	if p.ExternalID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		p.ExternalID = "cli-" + id.String()
	}
	if !json.Valid(p.Args) {
		return nil, command.Misuse(`--args must be a JSON object, such as '{"id":"4711"}'; mind the shell's quotes`)
	}
	p.Constraints.RateBucket, p.Constraints.Urgent = f.bucket, f.urgent
	if f.employee != "" {
		id, err := uuid.Parse(f.employee)
		if err != nil {
			return nil, command.Misuse("--employee must be a UUID")
		}
		p.EmployeeID = envelope.EmployeeID(id)
	}
	var err error
	if p.Constraints.NotBefore, err = command.Moment("not-before", f.notBefore, now); err != nil {
		return nil, err
	}
	if p.Constraints.MustRunBefore, err = command.Moment("must-run-before", f.mustRunBefore, now); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, command.Misuse("%v", err)
	}
	return json.Marshal(p)
}
