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

// maxReversalBytes bounds the arguments of a reversal, in bytes.
const maxReversalBytes = 16 << 10

// Reversal is a call of another tool that reverts a call.
type Reversal struct {
	// Tool is the reverting tool.
	Tool policy.Key
	// Args are the arguments of that call, a JSON object with the references of
	// ReversalScope. Empty means {}.
	Args json.RawMessage
}

// MarshalJSON encodes the tool as source:action.
func (r Reversal) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire.Reversal{Tool: r.Tool.String(), Args: r.Args})
}

// UnmarshalJSON decodes the output of MarshalJSON.
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

// defaultReversal returns the stored form of the reversal that an adapter
// declares for a tool of a source; nil if it declares none.
func defaultReversal(id string, declared *source.Reversal) (json.RawMessage, error) {
	if declared == nil {
		return nil, nil
	}
	return json.Marshal(Reversal{Tool: policy.Key{Source: id, Action: declared.Tool}, Args: declared.Args})
}

// parseReversal decodes a stored reversal; it returns nil for NULL.
func parseReversal(raw []byte) (*Reversal, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	r := new(Reversal)
	return r, json.Unmarshal(raw, r)
}

// ReversalScope returns the references that are valid in the arguments of a
// reversal: $inputs and $outputs of the reverted call.
func ReversalScope() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Inputs, jsonref.Outputs}}
}

// check adds the errors of the reversal's arguments to p.
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
