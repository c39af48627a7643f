package catalog

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// maxReversalBytes bounds the template of a reversal's arguments.
const maxReversalBytes = 16 << 10

// storedReversal is a Reversal as it is stored and as the API shows it.
type storedReversal struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
}

// MarshalJSON writes the tool as source:action.
func (r Reversal) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedReversal{r.Tool.String(), r.Args})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Reversal) UnmarshalJSON(raw []byte) error {
	var s storedReversal
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	key, err := policy.ParseKey(s.Tool)
	if err != nil {
		return invalidAt("/reversal/tool", envelope.RuleFormat, "must be a tool, as source:name")
	}
	*r = Reversal{Tool: key, Args: s.Args}
	return nil
}

// problems are what is wrong with the reversal's template.
func (r *Reversal) problems(at string) []envelope.FieldError {
	one := func(at string, rule envelope.Rule, message string) []envelope.FieldError {
		return []envelope.FieldError{{Pointer: at, Rule: rule, Message: message}}
	}
	if len(r.Args) > maxReversalBytes {
		return one(at+"/args", envelope.RuleMaxLength, "must have at most "+strconv.Itoa(maxReversalBytes)+" bytes")
	}
	template, err := r.template()
	if err != nil {
		return one(at+"/args", envelope.RuleType, "must be a JSON object")
	}
	var fields []envelope.FieldError
	_, _ = fill(at+"/args", template, func(at, text string) (any, error) {
		if _, err := parsePlace(text); err != nil {
			fields = append(fields, one(at, envelope.RuleFormat, err.Error())...)
		}
		return text, nil
	})
	return fields
}

func (r *Reversal) template() (map[string]any, error) {
	if len(r.Args) == 0 {
		return map[string]any{}, nil
	}
	doc, err := parseSchema(r.Args)
	if err != nil {
		return nil, err
	}
	template, ok := doc.(map[string]any)
	if !ok {
		return nil, fault.New(fault.Invalid, "the arguments of a reversal are an object")
	}
	return template, nil
}

// Fill returns the arguments of the call that undoes a call, from what that
// was given and what it answered. The error is fault.Conflict if one of them
// lacks what the template names, and names the place in the template, never a
// value.
func (r *Reversal) Fill(inputs, outputs json.RawMessage) (json.RawMessage, error) {
	template, err := r.template()
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	for name, raw := range map[string]json.RawMessage{placeInputs: inputs, placeOutputs: outputs} {
		if len(raw) == 0 {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, fault.Wrap(err, fault.Conflict, "the %s of the call cannot be read", name)
		}
		given[name] = value
	}
	filled, err := fill("", template, func(at, text string) (any, error) {
		p, err := parsePlace(text)
		if err != nil || p.from == "" {
			return p.text, err
		}
		value, ok := given[p.from]
		for _, step := range p.path {
			if value, ok = child(value, step); !ok {
				break
			}
		}
		if !ok {
			return nil, fault.New(fault.Conflict, "the call's %s have nothing at the place that the reversal names in %s", p.from, "/args"+at)
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(filled)
}

// The things that a template refers to.
const (
	placeInputs  = "inputs"
	placeOutputs = "outputs"
)

// place is what a text of a template stands for: a value below from, or
// itself.
type place struct {
	from string
	path []string
	text string
}

// child is what stands at a name of an object, or at [i] in a list.
func child(value any, step string) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		found, ok := v[step]
		return found, ok && !strings.HasPrefix(step, "[")
	case []any:
		digits, ok := strings.CutPrefix(step, "[")
		if !ok {
			return nil, false
		}
		i, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// parsePlace reads a text of a template. The error is fit for an operator.
func parsePlace(text string) (place, error) {
	rest, special := strings.CutPrefix(text, "$")
	switch {
	case !special:
		return place{text: text}, nil
	case strings.HasPrefix(rest, "$"):
		return place{text: rest}, nil
	}
	wrong := fault.New(fault.Invalid, "must be $.inputs.<path>, $.outputs.<path> or a text; $$ at its beginning is a dollar sign")
	for _, from := range []string{placeInputs, placeOutputs} {
		path, ok := strings.CutPrefix(rest, "."+from)
		if !ok {
			continue
		}
		steps, ok := parsePath(path)
		if !ok {
			return place{}, wrong
		}
		return place{from: from, path: steps}, nil
	}
	return place{}, wrong
}

// parsePath reads .name and [i], one behind the other.
func parsePath(path string) ([]string, bool) {
	var steps []string
	for path != "" {
		switch path[0] {
		case '.':
			end := strings.IndexAny(path[1:], ".[")
			if end < 0 {
				end = len(path) - 1
			}
			if end == 0 {
				return nil, false
			}
			steps, path = append(steps, path[1:1+end]), path[1+end:]
		case '[':
			digits, rest, found := strings.Cut(path[1:], "]")
			if i, err := strconv.Atoi(digits); !found || err != nil || i < 0 || strconv.Itoa(i) != digits {
				return nil, false
			}
			steps, path = append(steps, "["+digits+"]"), rest
		default:
			return nil, false
		}
	}
	return steps, true
}

// fill returns a copy of a value in which every text is replaced. The
// template's depth is bounded.
func fill(at string, value any, replace func(at, text string) (any, error)) (any, error) {
	switch v := value.(type) {
	case string:
		return replace(at, v)
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			next, err := fill(at+"/"+strconv.Itoa(i), one, replace)
			if err != nil {
				return nil, err
			}
			all[i] = next
		}
		return all, nil
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			next, err := fill(at+pointer([]string{name}), one, replace)
			if err != nil {
				return nil, err
			}
			all[name] = next
		}
		return all, nil
	}
	return value, nil
}

func invalidAt(pointer string, rule envelope.Rule, message string) error {
	return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: pointer, Rule: rule, Message: message}}}
}
