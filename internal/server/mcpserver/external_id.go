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
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

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
