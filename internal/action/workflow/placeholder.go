package workflow

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// hole is a place in the inputs of a step whose value is not known before an
// earlier step has answered.
type placeholder struct {
	// at is a JSON Pointer into the inputs.
	at  string
	ref *reference
	// types are those that the answer declares for the value; nil if it
	// declares none.
	types []string
}

// covers says that a pointer is that of the hole or below it.
func (h placeholder) covers(at string) bool { return at == h.at || strings.HasPrefix(at, h.at+"/") }

// plain returns the inputs without what is not known, and its places. What is
// wrong with a reference is reported.
func plain(inputs json.RawMessage, wrong func(at, message string)) (doc any, holes []placeholder) {
	given, err := decode(inputs)
	if err != nil {
		wrong("", "must be a JSON object")
		return nil, nil
	}
	doc, _ = walk("", given, func(at, text string) (any, error) { // the function has no error
		ref, said, err := parseText(text)
		switch {
		case err != nil:
			wrong(at, err.Error())
		case ref != nil:
			holes = append(holes, placeholder{at: at, ref: ref})
			return text, nil
		}
		return said, nil
	})
	slices.SortFunc(holes, func(a, b placeholder) int { return strings.Compare(a.at, b.at) })
	return doc, holes
}

// with returns a copy of a value in which holes have values.
func with(doc any, holes []placeholder, values []any) any {
	filled, _ := walk("", doc, func(at, text string) (any, error) { // the function has no error
		for i, h := range holes {
			if h.at == at {
				return values[i], nil
			}
		}
		return text, nil
	})
	return filled
}

// checkHoles checks inputs against the tool's schema, as far as that does not
// depend on what is not known yet: a type that the answer declares must fit,
// and everything beside the holes is held to the schema, unless that has
// choices, in which what fits one place depends on another. What remains is
// checked when the step's turn comes.
func checkHoles(tool *catalog.Tool, doc any, holes []placeholder) ([]envelope.FieldError, error) {
	if len(holes) == 0 {
		return check(tool, doc)
	}
	if hasChoice(tool.InputSchema) {
		return nil, nil
	}
	values := make([]any, len(holes))
	var fields []envelope.FieldError
	for i, h := range holes {
		var misfits []envelope.FieldError
		for _, c := range candidates(h.types) {
			values[i] = c
			found, err := check(tool, with(doc, holes, values))
			if err != nil {
				return nil, err
			}
			misfits = slices.DeleteFunc(found, func(f envelope.FieldError) bool {
				return argsPointer(f.Pointer) != h.at || f.Rule != envelope.RuleType && f.Rule != envelope.RuleUnknownField
			})
			if len(misfits) == 0 {
				break
			}
		}
		for _, f := range misfits {
			if f.Rule == envelope.RuleType {
				f.Message = h.ref.String() + " is " + strings.Join(h.types, " or ") + " by the output schema of its tool, and this " + f.Message
			}
			fields = append(fields, f)
		}
	}
	rest, err := check(tool, with(doc, holes, values))
	if err != nil {
		return nil, err
	}
	for _, f := range rest {
		if !unsure(argsPointer(f.Pointer), f.Rule, holes) {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// unsure says that a finding may be another one once the holes are filled.
func unsure(at string, rule envelope.Rule, holes []placeholder) bool {
	for _, h := range holes {
		if h.covers(at) {
			return true
		}
		if strings.HasPrefix(h.at, at+"/") && rule != envelope.RuleRequired && rule != envelope.RuleUnknownField && rule != envelope.RuleType {
			return true
		}
	}
	return false
}

func argsPointer(at string) string { return strings.TrimPrefix(at, "/args") }

// check holds a value to the tool's input schema.
func check(tool *catalog.Tool, doc any) ([]envelope.FieldError, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var found problems
	if err := found.below(tool.Check(raw), func(at string) string { return at }); err != nil {
		return nil, err
	}
	return found, nil
}

// candidates are values of the types that a hole may have, one for each.
func candidates(types []string) []any {
	all := []struct {
		name  string
		value any
	}{
		{"string", ""},
		{"integer", json.Number("0")},
		{"number", json.Number("0")},
		{"boolean", true},
		{"object", map[string]any{}},
		{"array", []any{}},
		{"null", nil},
	}
	var some []any
	for _, c := range all {
		if len(types) == 0 || slices.Contains(types, c.name) {
			some = append(some, c.value)
		}
	}
	return some
}

// hasChoice says that a schema makes what fits one place depend on another.
func hasChoice(schema json.RawMessage) bool {
	doc, err := decode(schema)
	return err != nil || choice(doc)
}

func choice(value any) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, choice)
	case map[string]any:
		for name, one := range v {
			switch name {
			case "anyOf", "oneOf", "not", "if", "contains", "uniqueItems", "dependentSchemas", "dependentRequired", "dependencies",
				"unevaluatedProperties", "unevaluatedItems":
				return true
			}
			if choice(one) {
				return true
			}
		}
	}
	return false
}

// declared says what an output schema declares of the value at a reference:
// its types, nil if it leaves them open, and whether there cannot be one.
func declared(schema json.RawMessage, ref *reference) (types []string, absent bool) {
	doc, err := decode(schema)
	if len(schema) == 0 || err != nil {
		return nil, false
	}
	for _, h := range ref.path {
		at, ok := doc.(map[string]any)
		if !ok || refers(at) {
			return nil, false
		}
		if h.name == nil {
			doc = at["items"]
			continue
		}
		properties, _ := at["properties"].(map[string]any)
		next, ok := properties[*h.name]
		if !ok {
			return nil, at["additionalProperties"] == false && at["patternProperties"] == nil
		}
		doc = next
	}
	at, ok := doc.(map[string]any)
	if !ok || refers(at) {
		return nil, false
	}
	switch t := at["type"].(type) {
	case string:
		return []string{t}, false
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok {
				types = append(types, name)
			}
		}
	}
	return types, false
}

// refers says that a schema leaves what it says to others.
func refers(schema map[string]any) bool {
	for _, name := range []string{"$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "not"} {
		if _, ok := schema[name]; ok {
			return true
		}
	}
	return false
}
