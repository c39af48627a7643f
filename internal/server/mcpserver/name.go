package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// maxName is the longest name of a tool in bytes, by the protocol.
const maxName = 128

// separator stands between the source and the tool. An escaped source neither
// contains it nor ends in a part of it, so that its first occurrence is the
// separator.
const separator = "__"

// shortened begins the hash at the end of a shortened name. An
// escaped name never contains it, since an escape is two dots, two digits of
// upper-case hexadecimal and a dot.
const shortened = "..h"

// nameOf returns the name under which a tool of the catalog is offered:
// notes:notes.create is notes__notes.create. No two tools share a name, and
// none has that of a built-in tool. Characters that the protocol does not allow
// are escaped; a name that is too long is cut and ends in a hash.
func nameOf(key policy.Key) string {
	name := escape(key.Source, true) + separator + escape(key.Action, false)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(key.String()))
	tail := shortened + hex.EncodeToString(sum[:16])
	return name[:maxName-len(tail)] + tail
}

// findTool returns the tool that is offered under a name, if its source is
// enabled.
func findTool(snap *settings.Settings, name string) (*catalog.Tool, bool) {
	left, right, _ := strings.Cut(name, separator)
	key := policy.Key{Source: left, Action: right}
	if nameOf(key) != name { // an escaped or shortened name
		for _, t := range snap.Tools() {
			if nameOf(t.Key) == name {
				key = t.Key
				break
			}
		}
	}
	tool, ok := snap.Tool(key)
	if !ok {
		return nil, false
	}
	src, ok := snap.Source(key.Source)
	return tool, ok && src.Enabled
}

// escape returns a text in the characters that a name may have. A dot stays
// where it stands between characters that stay. In a source an underscore is
// escaped where it could be taken for a part of the separator.
func escape(text string, source bool) string {
	stays := func(i int) bool {
		if i < 0 || i >= len(text) {
			return true
		}
		if text[i] == '_' && source {
			return i+1 < len(text) && text[i+1] != '_'
		}
		return isPlain(text[i])
	}
	var b strings.Builder
	for i := range len(text) {
		if stays(i) || text[i] == '.' && stays(i-1) && stays(i+1) {
			b.WriteByte(text[i])
			continue
		}
		b.WriteString("..")
		b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{text[i]})))
		b.WriteByte('.')
	}
	return b.String()
}

// isPlain reports whether a byte stands for itself.
func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
