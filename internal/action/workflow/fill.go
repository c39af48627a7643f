package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/internal/source"
)

// trouble is why a step, or its reversal, cannot be proposed. Its message
// names places and never values.
type stepError struct{ code, message string }

// Error is the message.
func (t *stepError) Error() string { return t.message }

// answer is what is stored of a call that was done.
type answer struct {
	// doc is what it says to a program, absent that there is nothing.
	doc    any
	absent bool
	// cut says that not all of it was stored.
	cut bool
}

// read makes an answer out of a stored result.
func read(result json.RawMessage) answer {
	outputs := source.Outputs(result)
	doc, err := decode(outputs)
	if len(outputs) == 0 || err != nil {
		return answer{absent: true}
	}
	return answer{doc: doc, cut: wasCut(result)}
}

// at returns what stands at a reference.
func (a answer) at(ref *reference) (any, error) {
	value, ok := ref.find(a.doc)
	switch {
	case a.cut && (!ok || a.absent || marked(value)):
		return nil, &stepError{CodeTruncated, fmt.Sprintf("%s: the answer was too large to be stored whole, and this part of it is missing", ref)}
	case !ok || a.absent:
		return nil, &stepError{CodeMissing, fmt.Sprintf("%s: the answer has no such part", ref)}
	case hidden(value):
		return nil, &stepError{CodeRedacted, fmt.Sprintf("%s: is a secret, or holds one; what is redacted cannot be referred to", ref)}
	}
	return value, nil
}

// fillInputs replaces the references of a step's inputs by what earlier steps
// answered. The error is a *trouble.
func fillInputs(inputs json.RawMessage, of func(step int) answer) (json.RawMessage, error) {
	return fill(inputs, parseText, func(ref *reference) answer { return of(ref.step) })
}

// fillTemplate makes the arguments of a reversal out of what the call was
// given and what it answered. The error is a *trouble.
func fillTemplate(template, inputs, result json.RawMessage) (json.RawMessage, error) {
	given, err := decode(inputs)
	if err != nil {
		return nil, &stepError{CodeMissing, "the step's inputs cannot be read"}
	}
	answered := read(result)
	return fill(template, parseTemplate, func(ref *reference) answer {
		if ref.root == rootInputs {
			return answer{doc: given}
		}
		return answered
	})
}

func fill(template json.RawMessage, parse func(string) (*reference, string, error), of func(*reference) answer) (json.RawMessage, error) {
	doc, err := decode(template)
	if err != nil {
		return nil, &stepError{CodeMissing, "the template cannot be read"}
	}
	filled, err := walk("", doc, func(at, text string) (any, error) {
		ref, plain, err := parse(text)
		if err != nil {
			return nil, &stepError{CodeMissing, at + ": " + err.Error()}
		}
		if ref == nil {
			return plain, nil
		}
		return of(ref).at(ref)
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

// wasCut says that a stored result is not whole.
func wasCut(result json.RawMessage) bool {
	var head struct {
		Truncated  bool `json:"_truncated"`
		Unstorable bool `json:"_unstorable"`
	}
	return json.Unmarshal(result, &head) == nil && (head.Truncated || head.Unstorable)
}

// marked says that something in a value of an answer that was cut is not
// whole.
func marked(value any) bool {
	return some(value, func(name string) bool { return strings.HasPrefix(name, "_omitted_") || name == markTruncated }, func(text string) bool {
		return text == markEllipsis || strings.HasSuffix(text, markBytes)
	})
}

// hidden says that something in a value was redacted.
func hidden(value any) bool {
	return some(value, func(string) bool { return false }, func(text string) bool { return strings.Contains(text, markRedacted) })
}

// some says that a name or a text in a value is one of those.
func some(value any, name, text func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return text(v)
	case []any:
		for _, one := range v {
			if some(one, name, text) {
				return true
			}
		}
	case map[string]any:
		for n, one := range v {
			if name(n) || some(one, name, text) {
				return true
			}
		}
	}
	return false
}

// asTrouble is err, which fill returned, as what it is.
func asStepError(err error) *stepError {
	if t, ok := errors.AsType[*stepError](err); ok {
		return t
	}
	return &stepError{CodeMissing, "the arguments cannot be written"}
}
