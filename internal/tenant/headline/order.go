package headline

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/envelope"
)

// Order is the order of a tool's arguments: members of objects stand in the order of the
// properties of its schema, and others after these. Local references are followed. A nil
// Order keeps arguments as they are.
type Order struct {
	schema json.RawMessage
	once   sync.Once
	top    *ranks
}

// NewOrder returns the order of a schema, which is read when the order is first used.
func NewOrder(schema json.RawMessage) *Order { return &Order{schema: schema} }

// maxPlaces bounds the places that are read of a schema. Values at the others keep their order.
const maxPlaces = 1_000

// ranks orders the values at one place of a schema. A nil *ranks orders none.
type ranks struct {
	properties map[string]property
	// items is the order of the elements of a list.
	items *ranks
}

// property is the position of a property, and the order of its value.
type property struct {
	at     int
	inside *ranks
}

func (o *Order) ranks() *ranks {
	if o == nil {
		return nil
	}
	o.once.Do(func() {
		s := schemaReader{root: o.schema, known: make(map[string]*ranks), left: maxPlaces}
		o.top = s.ranks(o.schema)
	})
	return o.top
}

// at returns the position of a member. Members without a property have the last one.
func (r *ranks) at(name string) int {
	if p, ok := r.properties[name]; ok {
		return p.at
	}
	return len(r.properties)
}

// member returns the order of a member's value; nil if the schema has none.
func (r *ranks) member(name string) *ranks {
	if r == nil {
		return nil
	}
	return r.properties[name].inside
}

// element returns the order of the elements of a list; nil if the schema has none.
func (r *ranks) element() *ranks {
	if r == nil {
		return nil
	}
	return r.items
}

// schemaReader reads the orders of one schema.
type schemaReader struct {
	root json.RawMessage
	// known has the orders that references lead to.
	known map[string]*ranks
	// left is the number of places that may still be read.
	left int
}

func (s *schemaReader) ranks(schema json.RawMessage) *ranks {
	schema, ref := s.resolved(schema)
	if r, ok := s.known[ref]; ok || s.left == 0 {
		return r
	}
	s.left--
	r := &ranks{properties: make(map[string]property)}
	if ref != "" {
		s.known[ref] = r // before its parts, which may refer to it
	}
	parts := members(schema)
	for _, p := range members(parts.find("properties")) {
		if _, twice := r.properties[p.name]; !twice {
			r.properties[p.name] = property{len(r.properties), s.ranks(p.value)}
		}
	}
	if items := parts.find("items"); items != nil {
		r.items = s.ranks(items)
	}
	return r
}

// maxReferences bounds the references that are followed from one place.
const maxReferences = 8

// resolved returns the schema that a chain of local references ends at, nil if it is not
// found, and the last of the references.
func (s *schemaReader) resolved(schema json.RawMessage) (end json.RawMessage, last string) {
	for range maxReferences {
		var ref string
		raw := members(schema).find("$ref")
		if raw == nil || json.Unmarshal(raw, &ref) != nil {
			return schema, last
		}
		fragment, ok := strings.CutPrefix(ref, "#")
		path, err := url.PathUnescape(fragment)
		if !ok || err != nil {
			return nil, ref
		}
		schema, last = s.root, ref
		for i, token := range strings.Split(path, "/") {
			if i > 0 {
				schema = members(schema).find(envelope.UnescapePointer(token))
			}
		}
	}
	return nil, last
}

// sort sorts the members of an object.
func (r *ranks) sort(o []memberValue) {
	if r != nil && len(r.properties) > 0 {
		slices.SortStableFunc(o, func(a, b memberValue) int { return r.at(a.name) - r.at(b.name) })
	}
}
