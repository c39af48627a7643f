package command

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Assign sets one argument: a.b=value, where the path leads through objects,
// and lists by their numbers from 0. The value is JSON or else a text; where the
// tool's schema, which may be nil, or the value so far is a text, it is a text.
// Objects on the path that are missing are made.
func Assign(args, schema json.RawMessage, set string) (json.RawMessage, error) {
	name, text, ok := strings.Cut(set, "=")
	if !ok || name == "" {
		return nil, Misuse("an argument must be a name and a value, such as to=ana@example.org")
	}
	doc, err := exact(args)
	if err != nil {
		return nil, Misuse("the arguments are not a JSON object, so %s cannot be set", name)
	}
	path := strings.Split(name, ".")
	value, err := exact(json.RawMessage(text))
	if _, isText := value.(string); err != nil || !isText && wantsText(doc, schema, path) {
		value = text
	}
	if doc, ok = put(doc, path, value); !ok {
		return nil, Misuse("%s: the path leads through a value that is not an object", name)
	}
	return json.Marshal(doc)
}

// wantsText reports whether the schema allows only a text at a path or, without
// a type there, the value so far is a text.
func wantsText(doc any, schema json.RawMessage, path []string) bool {
	at, _ := exact(schema)
	for _, name := range path {
		doc = child(doc, name)
		object, _ := at.(map[string]any)
		if at = child(object["properties"], name); at == nil {
			at = object["items"]
		}
	}
	object, _ := at.(map[string]any)
	switch kind := object["type"].(type) {
	case string:
		return kind == "string"
	case []any:
		return !slices.ContainsFunc(kind, func(k any) bool { return k != "string" && k != "null" })
	}
	_, isText := doc.(string)
	return isText
}

// child returns a member of an object or an element of a list; nil for none.
func child(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// exact reads JSON without losing digits of its numbers.
func exact(raw json.RawMessage) (v any, err error) {
	if !json.Valid(raw) {
		return nil, Misuse("it is not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func put(at any, path []string, value any) (any, bool) {
	if len(path) == 0 {
		return value, true
	}
	ok := false
	switch here := at.(type) {
	case nil:
		return put(map[string]any{}, path, value)
	case map[string]any:
		here[path[0]], ok = put(here[path[0]], path[1:], value)
		return here, ok
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(here) {
			return nil, false
		}
		here[i], ok = put(here[i], path[1:], value)
		return here, ok
	}
	return nil, false
}
