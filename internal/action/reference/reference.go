// Package reference resolves references in arguments to values of earlier
// calls, as they are stored: a call's arguments, and its answer, which is
// redacted and may be truncated. Its callers decide which calls may be
// referred to, and the consequence of a missing value.
package reference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/source"
)

// The codes of errors.
const (
	// CodeMissing: the value does not exist.
	CodeMissing = "reference_missing"
	// CodeRedacted: the value is a secret, which is not stored.
	CodeRedacted = "reference_redacted"
	// CodeTruncated: the value was too large to be stored whole.
	CodeTruncated = "reference_truncated"
)

// Error is the reason why arguments cannot be filled. Its message contains
// places and never values.
type Error struct {
	Code, Message string
	// Ref is the reference; its Root is empty if the error is not about one.
	Ref jsonref.Ref
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Value is a document that references point into.
type Value struct {
	doc any
	// name is the name of the value in messages.
	name string
	// empty reports whether there is nothing that a reference could lead into.
	empty bool
	// truncated reports whether the stored value is not whole.
	truncated bool
}

// Given returns a call's arguments as a Value.
func Given(args json.RawMessage) Value {
	doc, err := jsonref.Decode(args)
	return Value{doc: doc, name: "the call's input", empty: err != nil}
}

// Answered returns the stored answer of a completed call as a Value.
func Answered(result json.RawMessage) Value {
	outputs := source.Outputs(result)
	doc, err := jsonref.Decode(outputs)
	if len(outputs) == 0 || err != nil {
		return Value{name: "the answer", empty: true}
	}
	return Value{doc: doc, name: "the answer", truncated: isTruncated(result)}
}

// find returns the value of a reference. The error is a *Error.
func (v Value) find(ref jsonref.Ref) (any, error) {
	value, ok := ref.Path.Find(v.doc)
	switch {
	case v.truncated && (!ok || v.empty || holdsTruncation(value)):
		return nil, &Error{CodeTruncated, fmt.Sprintf("%s: %s was too large to be stored whole, and this part of it is missing", ref, v.name), ref}
	case !ok || v.empty:
		return nil, &Error{CodeMissing, fmt.Sprintf("%s: %s has no such part", ref, v.name), ref}
	case holdsRedaction(value):
		return nil, &Error{CodeRedacted, fmt.Sprintf("%s: is a secret, or holds one; a redacted value cannot be referred to", ref), ref}
	}
	return value, nil
}

// Fill returns a template with its references replaced by their values; of
// returns the Value that a reference points into. An empty template is {}. The
// error is a *Error.
func Fill(scope jsonref.Scope, template json.RawMessage, of func(jsonref.Ref) Value) (json.RawMessage, error) {
	if len(template) == 0 {
		return json.RawMessage("{}"), nil
	}
	doc, err := jsonref.Decode(template)
	if err != nil {
		return nil, &Error{Code: CodeMissing, Message: "the arguments cannot be read"}
	}
	filled, err := scope.Fill("", doc, func(at string, ref jsonref.Ref, invalid error) (any, error) {
		if invalid != nil {
			return nil, &Error{Code: CodeMissing, Message: at + ": " + invalid.Error()}
		}
		return of(ref).find(ref)
	})
	if err != nil {
		return nil, err
	}
	args, err := json.Marshal(filled)
	if err != nil {
		return nil, &Error{Code: CodeMissing, Message: "the arguments cannot be written"}
	}
	return args, nil
}

// The marks that redact.JSONTruncated leaves in place of removed values.
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

// anyText reports whether name or text returns true for a member's name or a
// text anywhere in a value.
func anyText(value any, name, text func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return text(v)
	case []any:
		return slices.ContainsFunc(v, func(element any) bool { return anyText(element, name, text) })
	case map[string]any:
		for n, member := range v {
			if name(n) || anyText(member, name, text) {
				return true
			}
		}
	}
	return false
}
