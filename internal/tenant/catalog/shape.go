package catalog

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// texts reports whether a shape keeps descriptive keywords.
type texts bool

const (
	withTexts    texts = true
	withoutTexts texts = false
)

// position is the role of a value within a JSON Schema.
type position int

const (
	// verbatim is a value outside of the grammar, which counts unchanged.
	verbatim position = iota
	// aSchema is a schema.
	aSchema
	// schemas is a list of schemas, schemasByName an object of schemas.
	schemas
	schemasByName
	// aSet is a list in any order, setsByName an object of such lists.
	aSet
	setsByName
	// schemasOrSets is an object of schemas or sets, as in dependencies.
	schemasOrSets
	// aText is a descriptive text.
	aText
)

// positionOf returns the position of the value of a keyword.
func positionOf(keyword string, value any) position {
	_, list := value.([]any)
	switch keyword {
	case "title", "description", "default", "examples", "$comment", "deprecated":
		return aText
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return schemasByName
	case "items":
		if list {
			return schemas
		}
		return aSchema
	case "additionalProperties", "additionalItems", "contains", "contentSchema", "else", "if", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties":
		return aSchema
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return schemas
	case "required", "enum":
		return aSet
	case "type":
		if list {
			return aSet
		}
	case "dependentRequired":
		return setsByName
	case "dependencies":
		return schemasOrSets
	}
	return verbatim
}

// of returns the position of the value of a member.
func (p position) of(name string, value any) position {
	_, list := value.([]any)
	switch p {
	case aSchema:
		return positionOf(name, value)
	case schemasByName:
		return aSchema
	case setsByName:
		return aSet
	case schemasOrSets:
		if list {
			return aSet
		}
		return aSchema
	}
	return verbatim
}

// shape returns the same form for schemas that differ only in order, where that
// is irrelevant, and in texts if they are not kept. It returns nil for no
// schema.
func shape(raw json.RawMessage, t texts) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	doc, err := parseSchema(raw)
	if err != nil {
		return nil, err
	}
	if refersToTexts(doc) {
		t = withTexts
	}
	return write(shaped(doc, aSchema, t))
}

// parseSchema parses a schema by its canonical form, which bounds its depth.
func parseSchema(raw json.RawMessage) (any, error) {
	canonical, err := envelope.Canonical(raw)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var doc any
	return doc, dec.Decode(&doc)
}

func write(doc any) ([]byte, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return envelope.Canonical(raw)
}

// shaped returns a copy of a value in its shape.
func shaped(value any, at position, t texts) any {
	switch v := value.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			next := at.of(name, one)
			if next == aText && t == withoutTexts {
				continue
			}
			all[name] = shaped(one, next, t)
		}
		return all
	case []any:
		switch at {
		case aSet:
			return ordered(v)
		case schemas:
			all := make([]any, len(v))
			for i, one := range v {
				all[i] = shaped(one, aSchema, t)
			}
			return all
		}
	}
	return value
}

// ordered returns a list sorted by the encoding of its values, without
// duplicates.
func ordered(list []any) []any {
	type entry struct {
		text  string
		value any
	}
	entries := make([]entry, len(list))
	for i, v := range list {
		text, err := write(v)
		if err != nil { // it was read from a canonical form
			return list
		}
		entries[i] = entry{string(text), v}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.text, b.text) })
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.text == b.text })
	values := make([]any, len(entries))
	for i, e := range entries {
		values[i] = e.value
	}
	return values
}

// refersToTexts reports whether a reference within a schema leads to or through
// a descriptive keyword: its value is then used as a schema, so texts must not
// be omitted.
func refersToTexts(doc any) bool {
	switch v := doc.(type) {
	case map[string]any:
		for name, one := range v {
			if target, ok := one.(string); ok && strings.HasPrefix(name, "$") && strings.HasSuffix(strings.ToLower(name), "ref") && throughText(target) {
				return true
			}
			if refersToTexts(one) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, refersToTexts)
	}
	return false
}

func throughText(reference string) bool {
	_, fragment, found := strings.Cut(reference, "#")
	if !found {
		return false
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	return slices.ContainsFunc(strings.Split(fragment, "/"), func(part string) bool {
		return positionOf(envelope.UnescapePointer(part), nil) == aText
	})
}
