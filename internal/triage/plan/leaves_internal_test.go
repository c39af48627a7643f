package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/internal/jsonref"
)

// Leaves returns the rows of arguments, with pointer and value only, sorted by
// pointer. It fails for arguments that rows cannot represent: a value that is
// not text, an empty object or list, a number as a member name.
func Leaves(args json.RawMessage) ([]Row, error) {
	object, err := jsonref.DecodeObject(args)
	if err != nil {
		return nil, err
	}
	if len(object) == 0 {
		return nil, nil
	}
	return leaves(nil, object, nil)
}

func leaves(rows []Row, value any, path jsonref.Pointer) ([]Row, error) {
	members := map[string]any{}
	switch v := value.(type) {
	case string:
		return append(rows, Row{Pointer: path.String(), Value: v}), nil
	case map[string]any:
		for name := range v {
			if isIndex(name) {
				return nil, fmt.Errorf("a member of %q has a number as its name", path.String())
			}
		}
		members = v
	case []any:
		for i, item := range v {
			members[strconv.Itoa(i)] = item
		}
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("the value of %q is not made of texts", path.String())
	}
	var err error
	for _, name := range slices.SortedFunc(maps.Keys(members), byIndex) {
		if rows, err = leaves(rows, members[name], append(slices.Clone(path), name)); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// byIndex orders indices as numbers, and other names as texts.
func byIndex(a, b string) int {
	i, first := jsonref.Index(a)
	j, second := jsonref.Index(b)
	if first && second {
		return i - j
	}
	return strings.Compare(a, b)
}
