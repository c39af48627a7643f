package headline

import (
	"bytes"
	"encoding/json"
	"slices"
)

// maxOrderDepth bounds the nesting in which arguments are ordered.
const maxOrderDepth = 6

// Ordered returns arguments with the members of objects in the order of the properties
// of a schema, and others after these. Arguments that it cannot read stay as they are.
func Ordered(args, schema json.RawMessage) json.RawMessage { return ordered(args, schema, 0) }

func ordered(value, schema json.RawMessage, depth int) json.RawMessage {
	if trimmed := bytes.TrimLeft(value, " \t\r\n"); depth > maxOrderDepth || len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid(value) {
		return value
	} else if trimmed[0] == '[' {
		return orderedList(value, members(schema).find("items"), depth)
	}
	properties := members(members(schema).find("properties"))
	rank := func(m member) int {
		if i := slices.IndexFunc(properties, func(p member) bool { return p.name == m.name }); i >= 0 {
			return i
		}
		return len(properties)
	}
	parts := members(value)
	slices.SortStableFunc(parts, func(a, b member) int { return rank(a) - rank(b) })
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return value
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(ordered(m.value, properties.find(m.name), depth+1))
	}
	b.WriteByte('}')
	return b.Bytes()
}

func orderedList(value, items json.RawMessage, depth int) json.RawMessage {
	var list []json.RawMessage
	if items == nil || json.Unmarshal(value, &list) != nil {
		return value
	}
	for i := range list {
		list[i] = ordered(list[i], items, depth+1)
	}
	whole, err := json.Marshal(list)
	if err != nil {
		return value
	}
	return whole
}
