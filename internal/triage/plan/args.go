package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/jsonref"
)

func isIndex(token string) bool {
	_, ok := jsonref.Index(token)
	return ok
}

// Args builds the arguments of a call from its rows. Leaves is its inverse.
func Args(rows []Row) (json.RawMessage, error) {
	root := &node{members: map[string]*node{}}
	for _, row := range rows {
		path, ok := jsonref.ParsePointer(row.Pointer)
		if !ok || len(path) == 0 {
			return nil, fmt.Errorf("invalid pointer %q to a field", row.Pointer)
		}
		if !utf8.ValidString(row.Value) || strings.ContainsRune(row.Value, 0) {
			return nil, fmt.Errorf("invalid text in the field %q", row.Pointer)
		}
		if !root.put(path, row.Value) {
			return nil, fmt.Errorf("the field %q conflicts with another field", row.Pointer)
		}
	}
	if root.indexed() {
		return nil, errors.New("arguments are an object, not a list")
	}
	value, err := root.value()
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// node is a text or has members. A node whose members are all indices is a
// list.
type node struct {
	text    string
	members map[string]*node // nil for a text
}

func (n *node) put(path []string, text string) bool {
	if n.members == nil {
		return false
	}
	next, there := n.members[path[0]]
	if len(path) == 1 {
		if !there {
			n.members[path[0]] = &node{text: text}
		}
		return !there
	}
	if !there {
		next = &node{members: map[string]*node{}}
		n.members[path[0]] = next
	}
	return next.put(path[1:], text)
}

func (n *node) indexed() bool {
	for name := range n.members {
		if isIndex(name) {
			return true
		}
	}
	return false
}

func (n *node) value() (any, error) {
	if n.members == nil {
		return n.text, nil
	}
	list := n.indexed()
	object, items := map[string]any{}, make([]any, len(n.members))
	for name, member := range n.members {
		value, err := member.value()
		if err != nil {
			return nil, err
		}
		if !list {
			object[name] = value
			continue
		}
		at, ok := jsonref.Index(name)
		if !ok || at >= len(items) {
			return nil, errors.New("the indices of a list are 0, 1, and so on")
		}
		items[at] = value
	}
	if list {
		return items, nil
	}
	return object, nil
}

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
