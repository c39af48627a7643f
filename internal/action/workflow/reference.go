package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// A reference is a string that stands for a value in an answer. In the inputs
// of a step it is wholly $<n>.<path> or $<n>[<i>]…, n being the number of an
// earlier step; in the template of a reversal it is wholly $.inputs… or
// $.outputs…. A path is names after dots and indexes in brackets; a name that
// holds dots or brackets stands in brackets, quoted as in JSON. Any other
// string is what it says, except that $$ at its beginning stands for one
// dollar sign.
type reference struct {
	// step is the number of a step, or -1 where root names what is meant.
	step int
	root string
	path []hop
}

// hop is a name in an object or, if name is nil, an index in a list.
type hop struct {
	name  *string
	index int
}

// The roots of a reversal's template.
const (
	rootInputs  = "inputs"
	rootOutputs = "outputs"
)

// errReference says that a string looks like a reference and is none.
var errReference = errors.New("looks like a reference and is none; a path is .name and [0] in turn, and $$ at the beginning of a text is a dollar sign")

// parseText reads a string of a step's inputs: it is a reference, or else the
// text that it stands for.
func parseText(text string) (ref *reference, plain string, err error) {
	rest, special := strings.CutPrefix(text, "$")
	switch {
	case !special:
		return nil, text, nil
	case strings.HasPrefix(rest, "$"):
		return nil, rest, nil
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits == 0 || digits == len(rest) || rest[digits] != '.' && rest[digits] != '[' {
		return nil, text, nil
	}
	step, err := strconv.Atoi(rest[:digits])
	if err != nil {
		return nil, "", errReference
	}
	path, err := parsePath(rest[digits:])
	if err != nil {
		return nil, "", err
	}
	return &reference{step: step, path: path}, "", nil
}

// parseTemplate reads a string of a reversal's template likewise.
func parseTemplate(text string) (ref *reference, plain string, err error) {
	rest, special := strings.CutPrefix(text, "$")
	switch {
	case !special:
		return nil, text, nil
	case strings.HasPrefix(rest, "$"):
		return nil, rest, nil
	case !strings.HasPrefix(rest, "."):
		return nil, text, nil
	}
	for _, root := range []string{rootInputs, rootOutputs} {
		below, ok := strings.CutPrefix(rest, "."+root)
		if !ok || below != "" && below[0] != '.' && below[0] != '[' {
			continue
		}
		path, err := parsePath(below)
		return &reference{step: -1, root: root, path: path}, "", err
	}
	return nil, "", errReference
}

func parsePath(text string) (path []hop, err error) {
	for text != "" {
		var next hop
		if text[0] == '.' {
			end := strings.IndexAny(text[1:], ".[") + 1
			if end == 0 {
				end = len(text)
			}
			name := text[1:end]
			if name == "" || strings.Contains(name, "]") {
				return nil, errReference
			}
			next.name, text = &name, text[end:]
		} else if next, text, err = parseBracket(text); err != nil {
			return nil, err
		}
		path = append(path, next)
	}
	return path, nil
}

// parseBracket reads [0] or ["a name"] at the beginning of a text.
func parseBracket(text string) (next hop, rest string, err error) {
	if text[0] != '[' {
		return next, "", errReference
	}
	if strings.HasPrefix(text, `["`) {
		dec := json.NewDecoder(strings.NewReader(text[1:]))
		var name string
		if dec.Decode(&name) != nil {
			return next, "", errReference
		}
		rest, ok := strings.CutPrefix(text[1+dec.InputOffset():], "]")
		if !ok {
			return next, "", errReference
		}
		return hop{name: &name}, rest, nil
	}
	inner, rest, ok := strings.Cut(text[1:], "]")
	index, err := strconv.Atoi(inner)
	if !ok || err != nil || index < 0 || strconv.Itoa(index) != inner {
		return next, "", errReference
	}
	return hop{index: index}, rest, nil
}

// find returns what stands at the path in a value as decode reads it.
func (r *reference) find(doc any) (any, bool) {
	for _, h := range r.path {
		switch at := doc.(type) {
		case map[string]any:
			if h.name == nil {
				return nil, false
			}
			next, ok := at[*h.name]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			if h.name != nil || h.index >= len(at) {
				return nil, false
			}
			doc = at[h.index]
		default:
			return nil, false
		}
	}
	return doc, true
}

// String writes the reference in its canonical form.
func (r *reference) String() string {
	var b strings.Builder
	b.WriteByte('$')
	if r.root != "" {
		b.WriteString("." + r.root)
	} else {
		b.WriteString(strconv.Itoa(r.step))
	}
	for _, h := range r.path {
		switch {
		case h.name == nil:
			b.WriteString("[" + strconv.Itoa(h.index) + "]")
		case *h.name == "" || strings.ContainsAny(*h.name, `.[]"`):
			quoted, _ := json.Marshal(*h.name) // a string always is JSON
			b.WriteString("[" + string(quoted) + "]")
		default:
			b.WriteString("." + *h.name)
		}
	}
	return b.String()
}

// replacer says what a text at a place, which is a JSON Pointer, becomes.
type replacer func(at, text string) (any, error)

// walk returns a copy of a value in which every text is replaced.
func walk(at string, value any, replace replacer) (any, error) {
	switch v := value.(type) {
	case string:
		return replace(at, v)
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			next, err := walk(at+"/"+strconv.Itoa(i), one, replace)
			if err != nil {
				return nil, err
			}
			all[i] = next
		}
		return all, nil
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			next, err := walk(at+"/"+envelope.EscapePointer(name), one, replace)
			if err != nil {
				return nil, err
			}
			all[name] = next
		}
		return all, nil
	}
	return value, nil
}

// decode reads one JSON value and keeps numbers as they are written.
func decode(raw json.RawMessage) (any, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not one JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	return value, dec.Decode(&value)
}
