package envelope

import "strings"

// EscapePointer writes a name as one token of an RFC 6901 JSON Pointer: a tilde
// as ~0 and a slash as ~1. The pointers of field errors are made of such
// tokens, each after a slash.
func EscapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// UnescapePointer returns the unescaped form of one token of an RFC 6901 JSON
// Pointer. A tilde that escapes nothing is kept.
func UnescapePointer(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
