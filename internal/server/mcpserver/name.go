package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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

// shortened begins the hash at the end of a name that would be too long. An
// escaped name never contains it, since an escape is two dots, two digits of
// upper-case hexadecimal and a dot.
const shortened = "..h"

// nameOf returns the name under which a tool of the catalog is offered:
// notes:notes.create is notes__notes.create. No two tools share a name, and
// none has that of a built-in tool. Characters that the protocol does not allow
// are escaped; a name that would be too long ends in a hash.
func nameOf(key policy.Key) string {
	name := escape(key.Source, true) + separator + escape(key.Action, false)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(key.String()))
	tail := shortened + hex.EncodeToString(sum[:16])
	return name[:maxName-len(tail)] + tail
}

// keyOf returns the key of a name. ok is false for a text that is no name, or a
// shortened one.
func keyOf(name string) (policy.Key, bool) {
	left, right, found := strings.Cut(name, separator)
	if !found {
		return policy.Key{}, false
	}
	source, ok := unescape(left)
	if !ok {
		return policy.Key{}, false
	}
	action, ok := unescape(right)
	key := policy.Key{Source: source, Action: action}
	return key, ok && nameOf(key) == name
}

// findTool returns the tool that is offered under a name, if its source is
// enabled.
func findTool(snap *settings.Settings, name string) (*catalog.Tool, bool) {
	key, whole := keyOf(name)
	if !whole {
		for _, t := range snap.Tools() {
			if nameOf(t.Key) == name {
				key = t.Key
				break
			}
		}
	}
	tool, ok := snap.Tool(key)
	return tool, ok && sourceEnabled(snap, tool)
}

// sourceEnabled reports whether a tool's source is enabled.
func sourceEnabled(snap *settings.Settings, t *catalog.Tool) bool {
	src, ok := snap.Source(t.Key.Source)
	return ok && src.Enabled
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

// unescape returns the text that escape was given; ok is false if there is
// none.
func unescape(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if !strings.HasPrefix(text[i:], "..") {
			b.WriteByte(text[i])
			continue
		}
		const size = len("..00.")
		if len(text) < i+size || text[i+size-1] != '.' {
			return "", false
		}
		c, err := strconv.ParseUint(text[i+2:i+4], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += size - 1
	}
	return b.String(), true
}
