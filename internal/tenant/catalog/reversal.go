package catalog

import (
	"encoding/json"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// maxReversalBytes is the most bytes that the arguments of a reversal may have.
const maxReversalBytes = 16 << 10

// Reversal is how a call of a tool is reverted by a call of another one.
type Reversal struct {
	// Tool is what reverts it.
	Tool policy.Key
	// Args are the arguments of that call, a JSON object with the references
	// of ReversalScope. Empty is {}.
	Args json.RawMessage
}

// MarshalJSON writes the tool as source:action.
func (r Reversal) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire.Reversal{Tool: r.Tool.String(), Args: r.Args})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Reversal) UnmarshalJSON(raw []byte) error {
	var s wire.Reversal
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	key, err := policy.ParseKey(s.Tool)
	if err != nil {
		return check.Invalid("/reversal/tool", envelope.RuleFormat, "must be a tool, as source:name")
	}
	*r = Reversal{Tool: key, Args: s.Args}
	return nil
}

// defaultReversal returns what is stored of the reversal that an adapter declares
// for a tool of a source; nil if it declares none.
func defaultReversal(id string, declared *source.Reversal) (json.RawMessage, error) {
	if declared == nil {
		return nil, nil
	}
	return json.Marshal(Reversal{Tool: policy.Key{Source: id, Action: declared.Tool}, Args: declared.Args})
}

// parseReversal reads a reversal as it is stored; nil for none.
func parseReversal(raw []byte) (*Reversal, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	r := new(Reversal)
	return r, json.Unmarshal(raw, r)
}

// ReversalScope returns the references that the arguments of a reversal may
// hold: $inputs and $outputs, of the call that is reverted.
func ReversalScope() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Inputs, jsonref.Outputs}}
}

// check adds to p what is wrong with the reversal's arguments.
func (r *Reversal) check(p *check.Problems, at string) {
	if len(r.Args) > maxReversalBytes {
		p.Add(at, envelope.RuleMaxLength, "must have at most %d bytes", maxReversalBytes)
		return
	}
	template, err := jsonref.DecodeObject(r.Args)
	if err != nil {
		p.Add(at, envelope.RuleType, "must be a JSON object")
		return
	}
	ReversalScope().Check(at, template, func(at string, err error) { p.Add(at, envelope.RuleFormat, "%s", err) })
}
