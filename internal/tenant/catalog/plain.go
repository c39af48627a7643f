package catalog

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/visible"
)

// PlainSchema returns a schema with every text and name replaced by
// visible.Plain. Arguments are validated against the original schema. For an
// unreadable schema it returns one that accepts any object.
func PlainSchema(raw json.RawMessage) json.RawMessage {
	if !bytes.ContainsFunc(raw, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf || r < ' ' }) {
		return raw
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var schema any
	if decoder.Decode(&schema) != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	if _, hidden := revealAll(schema); !hidden {
		return raw
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(plainAll(schema)) != nil { // cannot happen: its parts were just decoded
		return json.RawMessage(`{"type":"object"}`)
	}
	return bytes.TrimSpace(b.Bytes())
}

func plainAll(value any) any {
	switch v := value.(type) {
	case string:
		return visible.Plain(v)
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = plainAll(one)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[visible.Plain(name)] = plainAll(one)
		}
		return all
	}
	return value
}
