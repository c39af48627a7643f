package approval

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
)

// maxChanges bounds the pointers that are kept of one edit. What is beyond
// them is shown as the pointer of the whole.
const maxChanges = 100

// parseArgs holds arguments to the rules for those of a proposal.
func parseArgs(args json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(args) {
		return nil, fault.New(fault.Invalid, "the arguments must be one JSON object")
	}
	const before, after = `{"type":"mcp.exec","external_id":"edit","tool":{"name":"edit"},"args":`, `}`
	p, err := envelope.Parse(slices.Concat([]byte(before), args, []byte(after)))
	if err != nil {
		return nil, err
	}
	return p.Args, nil
}

// changes are the JSON Pointers of what differs between two objects, in
// order. What was added or removed is named as well.
func changes(was, now json.RawMessage) ([]string, error) {
	a, _, err := jsonref.DecodeCanonical(was)
	if err != nil {
		return nil, err
	}
	b, _, err := jsonref.DecodeCanonical(now)
	if err != nil {
		return nil, err
	}
	var found []string
	compare(a, b, "", &found)
	if len(found) > maxChanges {
		return []string{""}, nil
	}
	return found, nil
}

func compare(a, b any, at string, found *[]string) {
	switch was := a.(type) {
	case map[string]any:
		if now, ok := b.(map[string]any); ok {
			keys := maps.Clone(was)
			maps.Copy(keys, now)
			for _, k := range slices.Sorted(maps.Keys(keys)) {
				x, had := was[k]
				y, has := now[k]
				if had && has {
					compare(x, y, at+"/"+envelope.EscapePointer(k), found)
				} else {
					*found = append(*found, at+"/"+envelope.EscapePointer(k))
				}
			}
			return
		}
	case []any:
		if now, ok := b.([]any); ok && len(was) == len(now) {
			for i := range was {
				compare(was[i], now[i], at+"/"+strconv.Itoa(i), found)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		*found = append(*found, at)
	}
}
