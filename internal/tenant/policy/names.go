package policy

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Name is a name that expressions may use, with its type.
type Name struct{ Name, Type string }

// Names returns the variables of expressions, ordered by name.
func Names() []Name {
	kinds := variables()
	names := make([]Name, 0, len(kinds))
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		names = append(names, Name{name, kinds[name].String()})
	}
	return names
}

// Bounds of the names of a tool's arguments: their number, and the depth of
// objects in objects.
const (
	maxNames = 200
	maxDepth = 4
)

// ArgumentNames returns the arguments of an input schema as expressions, ordered
// by name, with those in nested objects; none for a schema that cannot be
// parsed.
func ArgumentNames(schema json.RawMessage) []Name {
	var s argumentSchema
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.names(nil, variableArgs, maxDepth)
}

// argumentSchema is a part of a JSON Schema.
type argumentSchema struct {
	Type       any                        `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
}

func (s argumentSchema) names(found []Name, of string, depth int) []Name {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if len(found) >= maxNames {
			return found
		}
		var child argumentSchema
		_ = json.Unmarshal(s.Properties[name], &child) // a schema of another form has the type any
		at := member(of, name)
		if found = append(found, Name{at, child.kind()}); depth > 1 {
			found = child.names(found, at, depth-1)
		}
	}
	return found
}

// kind returns the type for people.
func (s argumentSchema) kind() string {
	switch kind := s.Type.(type) {
	case string:
		var item argumentSchema
		if kind == "array" && json.Unmarshal(s.Items, &item) == nil && item.kind() != "any" {
			return "array of " + item.kind()
		}
		return kind
	case []any:
		var kinds []string
		for _, one := range kind {
			if text, ok := one.(string); ok {
				kinds = append(kinds, text)
			}
		}
		return strings.Join(kinds, " or ")
	}
	return "any"
}

// selector matches the names that may follow a dot.
var selector = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// member returns the expression for a member of an object.
func member(of, name string) string {
	switch name {
	case "in", "true", "false", "null":
	default:
		if selector.MatchString(name) {
			return of + "." + name
		}
	}
	return of + "[" + strconv.QuoteToASCII(name) + "]"
}
