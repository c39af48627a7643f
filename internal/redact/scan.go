package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// The functions in this file parse valid JSON and do not check for errors.

// asJSON returns raw if it is JSON in UTF-8, else the text as a JSON string, or
// null for an empty raw.
func asJSON(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if !json.Valid(raw) {
		return []byte(quote(string(raw)))
	}
	return raw
}

// quote returns s, which is valid UTF-8, as a JSON string. A NUL, which jsonb
// cannot hold, becomes U+FFFD.
func quote(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(strings.ReplaceAll(s, "\x00", "\uFFFD")) // a string has no error
	return strings.TrimSuffix(b.String(), "\n")
}

// skipSpace returns the first index at or after i that is not white space.
func skipSpace(text string, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// stringEnd returns the index after the string that begins at i.
func stringEnd(text string, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// numberEnd returns the index after the number that begins at i.
func numberEnd(text string, i int) int {
	for i < len(text) && (isDigit(text[i]) || strings.IndexByte("+-.eE", text[i]) >= 0) {
		i++
	}
	return i
}

// valueEnd returns the index after the value that begins at i.
func valueEnd(text string, i int) int {
	depth := 0
	for {
		switch c := text[i]; {
		case c == '"':
			i = stringEnd(text, i)
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			depth--
			i++
		case c == '-' || isDigit(c):
			i = numberEnd(text, i)
		case 'a' <= c && c <= 'z': // true, false, null
			for i < len(text) && 'a' <= text[i] && text[i] <= 'z' {
				i++
			}
		default: // white space, a comma or a colon inside a container
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
}

// deeper reports whether containers are nested more than limit deep.
func deeper(text string, limit int) bool {
	if len(text) <= 2*limit {
		return false
	}
	depth := 0
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
			continue
		case '{', '[':
			depth++
			if depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
		i++
	}
	return false
}
