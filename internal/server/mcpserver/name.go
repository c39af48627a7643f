package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
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

// maxOccurrence bounds how often the same call can be repeated.
const maxOccurrence = 999_999_999_999

// occurrenceText returns an occurrence in twelve digits, so that external ids
// sort by it.
func occurrenceText(n int64) string { return fmt.Sprintf("%012d", n) }

// externalID returns the external id of a call to which the client gave none.
// The same call of the same agent has the same id until its action has ended,
// so that repeats become that action whichever replica they reach; the
// database, where an external id is unique, decides among concurrent calls.
// Then the next occurrence begins. An action of unknown outcome has not ended:
// a repeat could double its effect.
func externalID(ctx context.Context, tx pgx.Tx, by identity.Principal, p *envelope.Proposal) (string, error) {
	base, err := callDigest(by, p)
	if err != nil {
		return "", err
	}
	last, action, found, err := lastOccurrence(ctx, tx, by.Tenant, base)
	if err != nil || !found {
		return base + occurrenceText(1), err
	}
	views, err := outbox.Get(ctx, tx, by.Tenant, action)
	if err != nil {
		return "", err
	}
	if len(views) == 1 && !envelope.Terminal(views[0].Envelope.Result.Status) {
		return last, nil
	}
	occurrence, err := strconv.ParseInt(strings.TrimPrefix(last, base), 10, 64)
	if err != nil || occurrence >= maxOccurrence {
		return "", fault.New(fault.Conflict, "this call cannot be told from another one; give it a name in _meta[%q]", MetaIdempotencyKey)
	}
	return base + occurrenceText(occurrence+1), nil
}

// callDigest returns what tells calls apart: who makes them and what they ask
// for.
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
	return "mcp" + hex.EncodeToString(sum.Sum(nil)[:24]), nil
}
