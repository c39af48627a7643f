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

// maxTurn bounds how often the same call can be made anew.
const maxTurn = 999_999_999_999

// turnText writes a turn with as many digits as any other.
func turnText(turn int64) string { return fmt.Sprintf("%012d", turn) }

// externalID names a call to which the client gave no name of its own. The
// same call of the same agent has the same name until its envelope is at its
// end, so that repeats become that envelope, whichever replica they reach; the
// database, which lets a name be taken once, decides among those who try at
// the same time. Then the next turn begins. An envelope of which nobody knows
// what became is not at its end: a repeat could double its effect.
func externalID(ctx context.Context, tx pgx.Tx, by identity.Principal, p *envelope.Proposal) (string, error) {
	base, err := callOf(by, p)
	if err != nil {
		return "", err
	}
	last, action, found, err := lastTurn(ctx, tx, by.Tenant, base)
	if err != nil || !found {
		return base + turnText(1), err
	}
	views, err := outbox.Get(ctx, tx, by.Tenant, action)
	if err != nil {
		return "", err
	}
	if len(views) == 1 && !envelope.Terminal(views[0].Envelope.Result.Status) {
		return last, nil
	}
	turn, err := strconv.ParseInt(strings.TrimPrefix(last, base), 10, 64)
	if err != nil || turn >= maxTurn {
		return "", fault.New(fault.Conflict, "this call cannot be told from another one; give it a name in _meta[%q]", MetaIdempotencyKey)
	}
	return base + turnText(turn+1), nil
}

// callOf tells calls apart by who makes them and by what is asked for.
func callOf(by identity.Principal, p *envelope.Proposal) (string, error) {
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
