// Package reconcile finds out the outcome of calls whose outcome is unknown. An
// operator says per tool which read of the same source shows whether a call
// happened; the fleet makes the read some time after such a call, and resolves
// the dead letter if the answer is clear. It owns those rules, what their
// templates and answers mean, and when a read is due. It does not guess: a read
// that fails, or that says neither, leaves the outcome unknown.
//
// That something is not there yet does not mean that it never comes: the first
// request may be on its way still, in a proxy or in a queue of the source. So
// no "it did not happen" is believed before Config.Grace is over. A call of
// class keyed or idempotent then runs again; should the first request arrive
// after all, it changes nothing. A call of class once stays unknown, unless
// its rule says Resend: there a late request doubles the effect.
package reconcile

import (
	"encoding/json"
	"strconv"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
)

// Rule says how a read finds out whether a call of a tool happened.
type Rule struct {
	// Tool is the read's name at the same source.
	Tool string `json:"tool"`
	// Args are its arguments, a JSON object; empty is {}. They may refer to
	// the call by $key, its idempotency key, and $inputs/…, its arguments.
	Args json.RawMessage `json:"args,omitempty"`
	// Happened is a JSON Pointer into the read's structured answer, or into
	// the JSON of its text. What it finds says that the call happened, unless
	// it is false, null, 0 or empty: that says that it did not.
	Happened string `json:"happened"`
	// Resend lets a call of class once run again that was not found.
	Resend bool `json:"resend,omitzero"`
}

// maxArgs bounds a template in bytes.
const maxArgs = 16 << 10

// Validate says which fields make no rule. The error is an
// *envelope.InvalidError.
func (r Rule) Validate() error {
	var fields []envelope.FieldError
	wrong := func(at string, rule envelope.Rule, message string) {
		fields = append(fields, envelope.FieldError{Pointer: at, Rule: rule, Message: message})
	}
	if r.Tool == "" {
		wrong("/tool", envelope.RuleRequired, "is required; name a tool of the same source that only reads")
	}
	if _, ok := jsonref.ParsePointer(r.Happened); !ok {
		wrong("/happened", envelope.RuleFormat, "must be a JSON Pointer, such as /found")
	}
	template, err := jsonref.DecodeObject(r.Args)
	switch {
	case len(r.Args) > maxArgs:
		wrong("/args", envelope.RuleMaxLength, "must have at most "+strconv.Itoa(maxArgs)+" bytes")
	case err != nil:
		wrong("/args", envelope.RuleType, "must be a JSON object")
	default:
		scope().Check("/args", template, func(at string, err error) { wrong(at, envelope.RuleFormat, err.Error()) })
	}
	if len(fields) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: fields}
}

// scope returns the references that the arguments of a rule may hold.
func scope() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Key, jsonref.Inputs}}
}

// errMissing is the error for a call whose arguments lack what a rule refers to.
var errMissing = fault.New(fault.Invalid, "the call has no such argument")

// Fill returns the arguments of the read that looks for a call.
func (r Rule) Fill(key string, args json.RawMessage) (json.RawMessage, error) {
	template, err := jsonref.DecodeObject(r.Args)
	if err != nil {
		return nil, err
	}
	inputs, err := jsonref.Decode(args)
	if err != nil {
		return nil, err
	}
	filled, err := scope().Fill("", template, func(_ string, ref jsonref.Ref, invalid error) (any, error) {
		if invalid != nil {
			return nil, invalid
		}
		if ref.Root == jsonref.Key {
			return key, nil
		}
		value, ok := ref.Path.Find(inputs)
		if !ok {
			return nil, errMissing
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(filled)
}
