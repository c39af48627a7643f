package headline

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// maxOrderDepth bounds the nesting in which arguments are ordered.
const maxOrderDepth = 6

// Ordered returns arguments with the members of objects in the order of the properties
// of a schema, and others after these. Local references are followed. Arguments that it
// cannot read stay as they are.
func Ordered(args, schema json.RawMessage) json.RawMessage {
	return order{root: schema}.of(args, schema, 0)
}

// order orders values by the parts of one schema.
type order struct{ root json.RawMessage }

// maxReferences bounds the references that are followed from one place.
const maxReferences = 8

// resolved returns the schema that a chain of local references ends at; nil if it is
// not found.
func (o order) resolved(schema json.RawMessage) json.RawMessage {
	for range maxReferences {
		var ref string
		raw := members(schema).find("$ref")
		if raw == nil || json.Unmarshal(raw, &ref) != nil {
			return schema
		}
		fragment, ok := strings.CutPrefix(ref, "#")
		path, err := url.PathUnescape(fragment)
		if !ok || err != nil {
			return nil
		}
		schema = o.root
		for i, token := range strings.Split(path, "/") {
			if i > 0 {
				schema = members(schema).find(strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
			}
		}
	}
	return nil
}

func (o order) of(value, schema json.RawMessage, depth int) json.RawMessage {
	if trimmed := bytes.TrimLeft(value, " \t\r\n"); depth > maxOrderDepth || len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid(value) {
		return value
	} else if trimmed[0] == '[' {
		return o.list(value, members(o.resolved(schema)).find("items"), depth)
	}
	properties := members(members(o.resolved(schema)).find("properties"))
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
		b.Write(o.of(m.value, properties.find(m.name), depth+1))
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (o order) list(value, items json.RawMessage, depth int) json.RawMessage {
	var list []json.RawMessage
	if items == nil || json.Unmarshal(value, &list) != nil {
		return value
	}
	for i := range list {
		list[i] = o.of(list[i], items, depth+1)
	}
	whole, err := json.Marshal(list)
	if err != nil {
		return value
	}
	return whole
}
