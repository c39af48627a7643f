package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// inputScope returns the references that the inputs of a step may hold. Agents
// write inputs, so a text such as "$5 each" stays what it is.
func inputScope() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Steps}, LooseText: true}
}

// stepError is why a step, or its reversal, cannot be proposed. Its message
// names places and never values.
type stepError struct{ code, message string }

// Error returns the message.
func (e *stepError) Error() string { return e.message }

// asStepError returns err, which a fill function returned, as a stepError.
func asStepError(err error) *stepError {
	if e, ok := errors.AsType[*stepError](err); ok {
		return e
	}
	return &stepError{CodeMissing, "the arguments cannot be written"}
}

// stepOutput is what is stored of the answer of a completed call.
type stepOutput struct {
	doc any
	// empty reports whether there is no answer that a reference could lead into.
	empty bool
	// truncated reports whether the stored answer is not whole.
	truncated bool
}

// outputOf reads a stored result.
func outputOf(result json.RawMessage) stepOutput {
	outputs := source.Outputs(result)
	doc, err := jsonref.Decode(outputs)
	if len(outputs) == 0 || err != nil {
		return stepOutput{empty: true}
	}
	return stepOutput{doc: doc, truncated: isTruncated(result)}
}

// find returns the value of a reference. The error is a *stepError.
func (o stepOutput) find(ref jsonref.Ref) (any, error) {
	value, ok := ref.Path.Find(o.doc)
	switch {
	case o.truncated && (!ok || o.empty || holdsTruncation(value)):
		return nil, &stepError{CodeTruncated, fmt.Sprintf("%s: the answer was too large to be stored whole, and this part of it is missing", ref)}
	case !ok || o.empty:
		return nil, &stepError{CodeMissing, fmt.Sprintf("%s: the answer has no such part", ref)}
	case holdsRedaction(value):
		return nil, &stepError{CodeRedacted, fmt.Sprintf("%s: is a secret, or holds one; what is redacted cannot be referred to", ref)}
	}
	return value, nil
}

// fillInputs replaces the references in a step's inputs by what earlier steps
// answered. The error is a *stepError.
func fillInputs(inputs json.RawMessage, output func(step int) stepOutput) (json.RawMessage, error) {
	return fill(inputScope(), inputs, func(ref jsonref.Ref) stepOutput { return output(ref.Step) })
}

// fillReversal returns the arguments of a reversal, from what the call was
// given and what it answered. The error is a *stepError.
func fillReversal(template, inputs, result json.RawMessage) (json.RawMessage, error) {
	given, err := jsonref.Decode(inputs)
	if err != nil {
		return nil, &stepError{CodeMissing, "the step's inputs cannot be read"}
	}
	answered := outputOf(result)
	return fill(catalog.ReversalScope(), template, func(ref jsonref.Ref) stepOutput {
		if ref.Root == jsonref.Inputs {
			return stepOutput{doc: given}
		}
		return answered
	})
}

func fill(scope jsonref.Scope, template json.RawMessage, output func(jsonref.Ref) stepOutput) (json.RawMessage, error) {
	doc, err := jsonref.Decode(template)
	if err != nil {
		return nil, &stepError{CodeMissing, "the arguments cannot be read"}
	}
	filled, err := scope.Fill("", doc, func(at string, ref jsonref.Ref, invalid error) (any, error) {
		if invalid != nil {
			return nil, &stepError{CodeMissing, at + ": " + invalid.Error()}
		}
		return output(ref).find(ref)
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(filled)
}

// What redact.JSONTruncated leaves where it took something out.
const (
	markRedacted  = "[REDACTED]"
	markTruncated = "_truncated"
	markEllipsis  = "…"
	markBytes     = " bytes more]"
)

// isTruncated reports whether a stored result is not whole.
func isTruncated(result json.RawMessage) bool {
	var head struct {
		Truncated  bool `json:"_truncated"`
		Unstorable bool `json:"_unstorable"`
	}
	return json.Unmarshal(result, &head) == nil && (head.Truncated || head.Unstorable)
}

// holdsTruncation reports whether something in a value of a truncated answer
// is not whole.
func holdsTruncation(value any) bool {
	return anyText(value, func(name string) bool { return strings.HasPrefix(name, "_omitted_") || name == markTruncated }, func(text string) bool {
		return text == markEllipsis || strings.HasSuffix(text, markBytes)
	})
}

// holdsRedaction reports whether something in a value was redacted.
func holdsRedaction(value any) bool {
	return anyText(value, func(string) bool { return false }, func(text string) bool { return strings.Contains(text, markRedacted) })
}

// anyText reports whether name or text holds for a member's name or a text
// anywhere in a value.
func anyText(value any, name, text func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return text(v)
	case []any:
		for _, element := range v {
			if anyText(element, name, text) {
				return true
			}
		}
	case map[string]any:
		for n, member := range v {
			if name(n) || anyText(member, name, text) {
				return true
			}
		}
	}
	return false
}
