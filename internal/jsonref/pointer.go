package jsonref

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// Pointer is a parsed JSON Pointer (RFC 6901). The empty Pointer is the whole
// document.
type Pointer []string

// ParsePointer parses a pointer. It returns false for an invalid one.
func ParsePointer(text string) (Pointer, bool) {
	if text == "" {
		return nil, true
	}
	if text[0] != '/' {
		return nil, false
	}
	tokens := strings.Split(text[1:], "/")
	escapes := strings.NewReplacer("~0", "", "~1", "")
	for i, token := range tokens {
		if strings.Contains(escapes.Replace(token), "~") {
			return nil, false
		}
		tokens[i] = envelope.UnescapePointer(token)
	}
	return tokens, true
}

// String returns the pointer in the syntax of RFC 6901.
func (p Pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(envelope.EscapePointer(token))
	}
	return b.String()
}

// Find returns the value at the pointer in a result of Decode.
func (p Pointer) Find(doc any) (any, bool) {
	for _, token := range p {
		switch v := doc.(type) {
		case map[string]any:
			member, ok := v[token]
			if !ok {
				return nil, false
			}
			doc = member
		case []any:
			i, ok := Index(token)
			if !ok || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// Index parses a token as an array index: digits without leading zeros.
func Index(token string) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == token
}

// parseShort parses the path of the short form: a sequence of .name, [0] and ["a
// name"].
func parseShort(text string) (path Pointer, ok bool) {
	for text != "" {
		token := ""
		switch {
		case text[0] == '.':
			end := strings.IndexAny(text[1:], ".[") + 1
			if end == 0 {
				end = len(text)
			}
			if token = text[1:end]; token == "" || strings.Contains(token, "]") {
				return nil, false
			}
			text = text[end:]
		case strings.HasPrefix(text, `["`):
			dec := json.NewDecoder(strings.NewReader(text[1:]))
			if dec.Decode(&token) != nil {
				return nil, false
			}
			if text, ok = strings.CutPrefix(text[1+dec.InputOffset():], "]"); !ok {
				return nil, false
			}
		default:
			if token, text, ok = strings.Cut(text[1:], "]"); !ok {
				return nil, false
			}
			if _, ok = Index(token); !ok {
				return nil, false
			}
		}
		path = append(path, token)
	}
	return path, true
}
