package command

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Assign sets one argument: a.b=value, where the path leads through objects,
// and lists by their numbers from 0. The value is JSON or, if it is none, a
// text. An object on the way that is not there is made.
func Assign(args json.RawMessage, set string) (json.RawMessage, error) {
	path, text, ok := strings.Cut(set, "=")
	if !ok || path == "" {
		return nil, Misuse("--set must be a name and a value, such as to=ana@example.org")
	}
	value, err := exact(json.RawMessage(text))
	if err != nil {
		value = text
	}
	doc, err := exact(args)
	if err != nil {
		return nil, Misuse("the arguments are no JSON object that --set could change")
	}
	if doc, ok = put(doc, strings.Split(path, "."), value); !ok {
		return nil, Misuse("--set %s: there is something else in the arguments where that leads", path)
	}
	return json.Marshal(doc)
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
