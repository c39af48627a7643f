package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/jsonref"
)

func isIndex(token string) bool {
	_, ok := jsonref.Index(token)
	return ok
}

// Args builds the arguments of a call from its rows. Leaves, of the tests, is its inverse.
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
