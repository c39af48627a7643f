package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reference"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// inputScope returns the references that the inputs of a step may contain.
// Agents write inputs, so a text such as "$5 each" is kept.
func inputScope() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Steps}, LooseText: true}
}

// stepError is the reason why a step, or its reversal, cannot be proposed. Its
// message contains places and never values.
type stepError struct{ code, message string }

// Error returns the message.
func (e *stepError) Error() string { return e.message }

// asStepError returns an error about references, or a fault, as a stepError.
func asStepError(err error) *stepError {
	if e, ok := errors.AsType[*reference.Error](err); ok {
		return &stepError{e.Code, e.Message}
	}
	return &stepError{CodeRefused, textOf(err)}
}

// fillInputs replaces the references in a step's inputs by values from the
// answers of earlier steps. The error is a *reference.Error.
func fillInputs(inputs json.RawMessage, output func(step int) reference.Value) (json.RawMessage, error) {
	return reference.Fill(inputScope(), inputs, func(ref jsonref.Ref) reference.Value { return output(ref.Step) })
}

// placeholder is a place in the inputs of a step whose value is known only
// after an earlier step has answered.
type placeholder struct {
	// at is a JSON Pointer into the inputs.
	at  string
	ref jsonref.Ref
	// types are the types that the earlier step's output schema declares for the
	// value; nil if it declares none.
	types []string
}

// contains reports whether a pointer is that of the placeholder or below it.
func (h placeholder) contains(at string) bool { return at == h.at || strings.HasPrefix(at, h.at+"/") }

// parseInputs returns the inputs of a step with literal texts in place of $$,
// and their placeholders in order of their pointers. It reports every text that
// is not a valid reference.
func parseInputs(inputs json.RawMessage, report func(at, message string)) (doc any, placeholders []placeholder) {
	given, err := jsonref.Decode(inputs)
	if err != nil {
		report("", "must be a JSON object")
		return nil, nil
	}
	doc, _ = inputScope().Fill("", given, func(at string, ref jsonref.Ref, invalid error) (any, error) { // the function has no error
		if invalid != nil {
			report(at, invalid.Error())
			return "", nil
		}
		placeholders = append(placeholders, placeholder{at: at, ref: ref})
		return ref.String(), nil
	})
	slices.SortFunc(placeholders, func(a, b placeholder) int { return strings.Compare(a.at, b.at) })
	return doc, placeholders
}

// with returns a copy of a value in which placeholders have values.
func with(doc any, placeholders []placeholder, values []any) any {
	filled, _ := jsonref.Walk("", doc, func(at, text string) (any, error) { // the function has no error
		for i, h := range placeholders {
			if h.at == at {
				return values[i], nil
			}
		}
		return text, nil
	})
	return filled
}

// checkInputs checks inputs against the tool's schema, except for values that
// are not known yet: a type declared by an output schema must fit, and
// everything but the placeholders must be valid. A schema with choices, in
// which the valid values of one place depend on another, is checked only when
// the step is proposed.
func checkInputs(ctx context.Context, budget *schema.Budget, tool *catalog.Tool, doc any, placeholders []placeholder) ([]envelope.FieldError, error) {
	if len(placeholders) == 0 {
		return checkDoc(ctx, budget, tool, doc)
	}
	if hasChoice(tool.InputSchema) {
		return nil, nil
	}
	values := make([]any, len(placeholders))
	var fields []envelope.FieldError
	for i, h := range placeholders {
		var misfits []envelope.FieldError
		for _, c := range candidates(h.types) {
			values[i] = c
			found, err := checkDoc(ctx, budget, tool, with(doc, placeholders, values))
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
	rest, err := checkDoc(ctx, budget, tool, with(doc, placeholders, values))
	if err != nil {
		return nil, err
	}
	for _, f := range rest {
		if !unsure(argsPointer(f.Pointer), f.Rule, placeholders) {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// unsure reports whether a finding may go away once the placeholders are
// filled.
func unsure(at string, rule envelope.Rule, placeholders []placeholder) bool {
	for _, h := range placeholders {
		if h.contains(at) {
			return true
		}
		if strings.HasPrefix(h.at, at+"/") && rule != envelope.RuleRequired && rule != envelope.RuleUnknownField && rule != envelope.RuleType {
			return true
		}
	}
	return false
}

func argsPointer(at string) string { return strings.TrimPrefix(at, "/args") }

// checkDoc returns the problem of a value by the tool's input schema.
func checkDoc(ctx context.Context, budget *schema.Budget, tool *catalog.Tool, doc any) ([]envelope.FieldError, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var found check.Problems
	if err := below(&found, tool.CheckWithin(ctx, budget, raw), func(at string) string { return at }); err != nil {
		return nil, err
	}
	return found, nil
}

// candidates returns one value of each type that a placeholder may have.
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
	var values []any
	for _, c := range all {
		if len(types) == 0 || slices.Contains(types, c.name) {
			values = append(values, c.value)
		}
	}
	return values
}

// hasChoice reports whether in a schema the valid values of one place may
// depend on another.
func hasChoice(schema json.RawMessage) bool {
	doc, err := jsonref.Decode(schema)
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

// declaredTypes returns the types that an output schema declares for the value
// at a path, nil if it leaves them open, and whether there cannot be a value.
func declaredTypes(schema json.RawMessage, path jsonref.Pointer) (types []string, absent bool) {
	doc, err := jsonref.Decode(schema)
	if len(schema) == 0 || err != nil {
		return nil, false
	}
	for _, token := range path {
		at, ok := doc.(map[string]any)
		if !ok || isComposed(at) {
			return nil, false
		}
		properties, _ := at["properties"].(map[string]any)
		next, ok := properties[token]
		if _, isIndex := jsonref.Index(token); !ok && isIndex && at["items"] != nil {
			next, ok = at["items"], true
		}
		if !ok {
			return nil, at["additionalProperties"] == false && at["patternProperties"] == nil
		}
		doc = next
	}
	at, ok := doc.(map[string]any)
	if !ok || isComposed(at) {
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

// isComposed reports whether a schema is made of other schemas.
func isComposed(schema map[string]any) bool {
	return slices.ContainsFunc([]string{"$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "not"}, func(name string) bool {
		_, ok := schema[name]
		return ok
	})
}
