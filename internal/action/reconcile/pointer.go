package reconcile

import (
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// pointer is a JSON Pointer (RFC 6901), in its parts.
type pointer []string

// parsePointer reads a pointer; ok is false for a text that is none.
func parsePointer(text string) (p pointer, ok bool) {
	if text == "" {
		return nil, true
	}
	if text[0] != '/' {
		return nil, false
	}
	parts := strings.Split(text[1:], "/")
	for i, part := range parts {
		bare := strings.NewReplacer("~0", "", "~1", "").Replace(part)
		if strings.Contains(bare, "~") {
			return nil, false
		}
		parts[i] = envelope.UnescapePointer(part)
	}
	return parts, true
}

// find returns what stands at the pointer in a value as encoding/json reads
// it.
func (p pointer) find(doc any) (any, bool) {
	for _, part := range p {
		switch at := doc.(type) {
		case map[string]any:
			next, ok := at[part]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) || strconv.Itoa(i) != part {
				return nil, false
			}
			doc = at[i]
		default:
			return nil, false
		}
	}
	return doc, true
}
