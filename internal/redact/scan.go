package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// The functions in this file walk text that is known to be valid JSON, and so
// need not look for errors.

// asJSON returns raw if it is JSON in UTF-8, else the nearest thing that is: a
// JSON string of the text, or null for none at all.
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
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == 0:
			b.WriteString("\uFFFD")
		case c < ' ':
			b.WriteString(`\u00`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// skipSpace returns the first place at or after i that is not white space.
func skipSpace(text string, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// stringEnd returns the place after the string that begins at i.
func stringEnd(text string, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// numberEnd returns the place after the number that begins at i.
func numberEnd(text string, i int) int {
	for i < len(text) && (isDigit(text[i]) || strings.IndexByte("+-.eE", text[i]) >= 0) {
		i++
	}
	return i
}

// valueEnd returns the place after the value that begins at i.
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

// compact returns text without the white space between its tokens.
func compact(text string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = stringEnd(text, i)
		case isSpace(c):
			b.WriteString(text[kept:i])
			i = skipSpace(text, i)
			kept = i
		default:
			i++
		}
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
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
