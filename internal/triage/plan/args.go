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
		if row.Origin == Literal && !isLiteral(row.Value) {
			return nil, fmt.Errorf("the field %q is not a number or a boolean", row.Pointer)
		}
		if !root.put(path, row.Value, row.Origin == Literal) {
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

// isLiteral reports whether a text is a number or a boolean in JSON.
func isLiteral(text string) bool {
	return json.Valid([]byte(text)) && strings.IndexAny(text, "-0123456789tf") == 0
}

// node is a text, a number or a boolean in JSON, or has members. A node whose members are
// all indices is a list.
type node struct {
	text    string
	literal bool
	members map[string]*node // nil for a text and a literal
}

func (n *node) put(path []string, text string, literal bool) bool {
	if n.members == nil {
		return false
	}
	next, there := n.members[path[0]]
	if len(path) == 1 {
		if !there {
			n.members[path[0]] = &node{text: text, literal: literal}
		}
		return !there
	}
	if !there {
		next = &node{members: map[string]*node{}}
		n.members[path[0]] = next
	}
	return next.put(path[1:], text, literal)
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
	switch {
	case n.literal:
		return json.RawMessage(n.text), nil
	case n.members == nil:
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
