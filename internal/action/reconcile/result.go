package reconcile

import (
	"encoding/json"

	"github.com/countersign-dev/countersign/internal/jsonref"
)

// Result is what the answer of a read says about a call.
type Result string

// The results.
const (
	// Happened: the call had its effect.
	Happened Result = "happened"
	// NotFound: there is no trace of it.
	NotFound Result = "not_found"
	// Unclear: the answer says neither.
	Unclear Result = "unclear"
)

// Interpret returns what an answer means. A result of MCP is read by its structured
// part or, without one, by its only text, if that is JSON; any other as it is.
func (r Rule) Interpret(result json.RawMessage) Result {
	at, ok := jsonref.ParsePointer(r.Happened)
	if !ok {
		return Unclear
	}
	doc, ok := document(result)
	if !ok {
		return Unclear
	}
	found, ok := at.Find(doc)
	switch {
	case !ok:
		return Unclear
	case empty(found):
		return NotFound
	}
	return Happened
}

// document finds the value that an answer is about.
func document(result json.RawMessage) (any, bool) {
	var wire struct {
		Structured json.RawMessage
		Content    []struct{ Type, Text string }
	}
	// What is no result of MCP leaves the parts empty.
	_ = json.Unmarshal(result, &wire)
	switch {
	case len(wire.Structured) > 0:
		result = wire.Structured
	case len(wire.Content) == 1 && wire.Content[0].Type == "text":
		result = json.RawMessage(wire.Content[0].Text)
	case len(wire.Content) > 0:
		return nil, false
	}
	doc, err := jsonref.Decode(result)
	return doc, err == nil
}

// empty reports whether a value is false, null, 0 or holds nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		n, err := v.Float64()
		return err == nil && n == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
