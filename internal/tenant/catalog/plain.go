package catalog

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain returns a text for a model to read, without the characters that Reveal
// would escape: a model reads them, and people who looked at the text did not.
// Spaces of another kind become spaces, and separators of lines become ends of
// lines.
func Plain(text string) string {
	if !hides(text) {
		return text
	}
	var b strings.Builder
	before := rune(0)
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			continue
		}
		if hiddenRune(r, before) {
			switch {
			case unicode.Is(unicode.Zs, r):
				r = ' '
			case unicode.In(r, unicode.Zl, unicode.Zp):
				r = '\n'
			default:
				continue
			}
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// PlainSchema returns a schema with every text and name in it as Plain returns
// it. Arguments are validated against the schema as its source wrote it. A
// schema that cannot be read is returned as one of any object.
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
		return Plain(v)
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = plainAll(one)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[Plain(name)] = plainAll(one)
		}
		return all
	}
	return value
}
