package guide

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// How many arguments, and values of one, a guide lists.
const (
	maxArguments = 50
	maxValues    = 20
	maxValue     = 100
)

// argument is as much of a property's schema as a guide tells.
type argument struct {
	Type        json.RawMessage   `json:"type"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
}

// arguments lists what a tool takes, by its schema: what is required first. A
// schema that it cannot read says nothing.
func arguments(b *strings.Builder, schema json.RawMessage) {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &object) != nil || len(object.Properties) == 0 {
		b.WriteString("- Arguments: its schema names none.\n")
		return
	}
	required := make(map[string]bool, len(object.Required))
	for _, name := range object.Required {
		required[name] = true
	}
	names := slices.SortedFunc(maps.Keys(object.Properties), func(a, b string) int {
		if required[a] != required[b] {
			return cmp.Compare(rank(required[a]), rank(required[b]))
		}
		return strings.Compare(a, b)
	})
	b.WriteString("- Arguments:\n")
	for _, name := range names[:min(len(names), maxArguments)] {
		var a argument
		_ = json.Unmarshal(object.Properties[name], &a) // what cannot be read is any value
		fmt.Fprintf(b, "  - %s: %s, %s", quote(name, maxName), typeText(a.Type), need(required[name]))
		if len(a.Enum) > 0 {
			fmt.Fprintf(b, ", one of %s", values(a.Enum))
		}
		if a.Description != "" {
			fmt.Fprintf(b, ". Its source says: %s", quote(a.Description, maxDescription))
		}
		b.WriteByte('\n')
	}
	if more := len(names) - maxArguments; more > 0 {
		fmt.Fprintf(b, "  - and %d more; `GET /api/v1/tools` has the whole schema\n", more)
	}
}

func rank(required bool) int {
	if required {
		return 0
	}
	return 1
}

func need(required bool) string {
	if required {
		return "required"
	}
	return "optional"
}

// typeText says of what type a value is to be, in the words that JSON Schema
// has for that and no others.
func typeText(raw json.RawMessage) string {
	var names []string
	if json.Unmarshal(raw, &names) != nil {
		var one string
		_ = json.Unmarshal(raw, &one) // no type at all is any
		names = []string{one}
	}
	var known []string
	for _, name := range names {
		switch name {
		case "string", "number", "integer", "boolean", "object", "array", "null":
			known = append(known, name)
		}
	}
	if len(known) == 0 {
		return "any value"
	}
	return strings.Join(known, " or ")
}

// values are what an enumeration allows.
func values(allowed []json.RawMessage) string {
	var spans []string
	for _, v := range allowed[:min(len(allowed), maxValues)] {
		var compact bytes.Buffer
		if json.Compact(&compact, v) == nil {
			spans = append(spans, span(strings.ReplaceAll(escaped(compact.String(), maxValue), `\"`, `"`)))
		}
	}
	if more := len(allowed) - maxValues; more > 0 {
		spans = append(spans, fmt.Sprintf("or %d more", more))
	}
	return strings.Join(spans, ", ")
}
