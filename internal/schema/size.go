package schema

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// inspect rejects a document before it is compiled: one that has too many
// objects, declares an unknown dialect, or uses dynamic references.
func inspect(doc any) error {
	objects := 0
	var walk func(v any) error
	walk = func(v any) error {
		switch v := v.(type) {
		case bool:
			if objects++; objects > maxObjects {
				return unusable("has more than %d objects", maxObjects)
			}
		case []any:
			for _, one := range v {
				if err := walk(one); err != nil {
					return err
				}
			}
		case map[string]any:
			if objects++; objects > maxObjects {
				return unusable("has more than %d objects", maxObjects)
			}
			if err := inspectObject(v); err != nil {
				return err
			}
			for _, one := range v {
				if err := walk(one); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk(doc)
}

func inspectObject(v map[string]any) error {
	for _, keyword := range []string{"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"} {
		switch v[keyword].(type) {
		case string, bool:
			return unusable("uses %s, which is not supported", keyword)
		}
	}
	dialect, declared := v["$schema"].(string)
	if declared && !knownDialect(dialect) {
		return unusable("declares the dialect %s, which is not supported; JSON Schema 2020-12, 2019-09 and drafts 4, 6 and 7 are", quote(dialect))
	}
	return nil
}

// knownDialect reports whether the library supports a dialect.
func knownDialect(url string) bool {
	url = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(url, "#"), "http://"), "https://")
	switch url {
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/draft/2019-09/schema",
		"json-schema.org/draft-07/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-04/schema", "json-schema.org/schema":
		return true
	}
	return false
}

// expansion counts the subschemas that one value is checked against.
type expansion struct {
	sizes map[*jsonschema.Schema]int
	// open are the schemas on the path to the current one.
	open map[*jsonschema.Schema]bool
	// pending are schemas for other values, which are counted separately.
	pending []*jsonschema.Schema
}

// measure rejects a schema that one value would be checked against too many
// times, or without end.
func measure(root *jsonschema.Schema) error {
	x := expansion{sizes: make(map[*jsonschema.Schema]int), open: make(map[*jsonschema.Schema]bool), pending: []*jsonschema.Schema{root}}
	for len(x.pending) > 0 {
		last := len(x.pending) - 1
		next := x.pending[last]
		x.pending = x.pending[:last]
		if _, err := x.size(next); err != nil {
			return err
		}
	}
	return nil
}

// size returns the number of subschemas that a value is checked against when it
// is checked against s.
func (x *expansion) size(s *jsonschema.Schema) (int, error) {
	if n, known := x.sizes[s]; known {
		return n, nil
	}
	if x.open[s] {
		return 0, unusable("refers to itself without end")
	}
	if len(x.open) == maxNesting {
		return 0, unusable("has more than %d references and combinators within each other", maxNesting)
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		return 0, unusable("refers to a dialect of JSON Schema, which is not supported")
	}
	x.open[s] = true
	defer delete(x.open, s)
	total := 1
	for _, sub := range sameValue(s) {
		n, err := x.size(sub)
		if err != nil {
			return 0, err
		}
		if total += n; total > maxExpansion {
			return 0, unusable("checks one value against more than %d subschemas; its references, anyOf, oneOf and allOf multiply", maxExpansion)
		}
	}
	x.sizes[s] = total
	for _, sub := range otherValues(s) {
		if _, known := x.sizes[sub]; !known {
			x.pending = append(x.pending, sub)
		}
	}
	return total, nil
}

// sameValue returns the subschemas that a value is checked against when it is
// checked against s.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	for _, sub := range s.DependentSchemas {
		all = append(all, sub)
	}
	for _, sub := range s.Dependencies {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			all = append(all, sub)
		}
	}
	return slices.DeleteFunc(all, func(sub *jsonschema.Schema) bool { return sub == nil })
}

// otherValues returns the subschemas of s for the values within a value.
func otherValues(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}, s.PrefixItems)
	for _, sub := range s.Properties {
		all = append(all, sub)
	}
	for _, sub := range s.PatternProperties {
		all = append(all, sub)
	}
	for _, either := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch sub := either.(type) {
		case *jsonschema.Schema:
			all = append(all, sub)
		case []*jsonschema.Schema:
			all = append(all, sub...)
		}
	}
	return slices.DeleteFunc(all, func(sub *jsonschema.Schema) bool { return sub == nil })
}
