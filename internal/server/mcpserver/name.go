package mcpserver

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// maxName is the longest name of a tool in bytes. The protocol allows 128, but
// there are clients that drop a whole list for one longer name, or for one with
// other characters than letters, digits, hyphens and underscores.
const maxName = 64

// separator separates the source and the tool. An escaped source neither
// contains it nor ends in a part of it, so its first occurrence is the
// separator.
const separator = "__"

// escaped begins the escape of a byte, two digits of upper-case hexadecimal.
const escaped = "-_"

// shortened begins the hash at the end of a shortened name. No other name
// contains it, since h is no digit.
const shortened = escaped + "h"

// nameOf returns the name under which a tool of the catalog is offered:
// notes:notes.create is notes__notes--create. No two tools share a name, and
// none has that of a built-in tool. A name that is too long is cut and ends in a
// hash.
func nameOf(key policy.Key) string {
	name := escape(key.Source, true) + separator + escape(key.Action, false)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := shortened + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
	return name[:maxName-len(tail)] + tail
}

// resolve returns the tool that is offered under a name. A shortened name can
// only be found among the tools that there are.
func resolve(name string, tools func() []*catalog.Tool) (key policy.Key, ok bool) {
	if left, right, found := strings.Cut(name, separator); found {
		key = policy.Key{Source: unescape(left), Action: unescape(right)}
		if nameOf(key) == name {
			return key, true
		}
	}
	if len(name) == maxName && strings.Contains(name, shortened) {
		for _, t := range tools() {
			if nameOf(t.Key) == name {
				return t.Key, true
			}
		}
	}
	return policy.Key{}, false
}

// findTool returns the tool that is offered under a name, if its source is
// enabled and one of the patterns covers it; nil is all tools.
func findTool(snap *settings.Settings, name string, within []string) (*catalog.Tool, bool) {
	key, ok := resolve(name, snap.Tools)
	if !ok {
		return nil, false
	}
	tool, ok := snap.Tool(key)
	if !ok || !tool.Within(within) {
		return nil, false
	}
	src, ok := snap.Source(key.Source)
	return tool, ok && src.Enabled
}

// marks are the characters that are written as hyphens between two letters or
// digits: a hyphen as one, a dot as two, a slash as three.
const marks = "-./"

// escape returns a text in the characters that a name may have. Letters, digits,
// underscores and, between letters or digits, marks are readable; every other
// byte is escaped. In a source an underscore is escaped where it could be taken
// for a part of the separator.
func escape(text string, source bool) string {
	alphanumeric := func(i int) bool { return 0 <= i && i < len(text) && isAlphanumeric(text[i]) }
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		mark := strings.IndexByte(marks, c)
		switch {
		case isAlphanumeric(c), c == '_' && (!source || i+1 < len(text) && text[i+1] != '_'):
			b.WriteByte(c)
		case mark >= 0 && alphanumeric(i-1) && alphanumeric(i+1):
			b.WriteString(strings.Repeat("-", mark+1))
		default:
			fmt.Fprintf(&b, escaped+"%02X", c)
		}
	}
	return b.String()
}

// unescape returns the text that escape wrote. Its value for other texts is
// some text that escape writes otherwise.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		if digits, ok := strings.CutPrefix(text[i:], escaped); ok {
			if c, err := hex.DecodeString(digits[:min(2, len(digits))]); err == nil && len(c) == 1 {
				b.WriteByte(c[0])
				i += len(escaped) + 2
				continue
			}
		}
		hyphens := 0
		for hyphens < len(marks) && i+hyphens < len(text) && text[i+hyphens] == '-' {
			hyphens++
		}
		if hyphens > 0 {
			b.WriteByte(marks[hyphens-1])
			i += hyphens
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}

// isAlphanumeric reports whether a byte is a letter or a digit.
func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// callDigest returns the identity of calls that their clients gave no name: the caller
// and the request.
func callDigest(by identity.Principal, p *envelope.Proposal) (string, error) {
	digest, err := p.Digest()
	if err != nil {
		return "", err
	}
	who := "token " + by.Token.String()
	if by.Session != "" {
		who = "session " + by.Session
	}
	sum := sha256.New()
	sum.Write([]byte(who))
	sum.Write([]byte{0})
	sum.Write(digest[:])
	return by.Names.ExternalIDPrefix + "mcp" + hex.EncodeToString(sum.Sum(nil)[:24]), nil
}
