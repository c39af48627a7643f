package overview

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// mostFound is the number of results of a search per kind.
const mostFound = 10

// Search returns things of a tenant whose id or name begins with a text, at most
// ten of each kind. The caller chooses the kinds that the user may see.
func Search(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, text string, kinds []string) ([]wire.SearchResult, error) {
	first, last := idsOf(text)
	rows, err := dbsqlc.New().Search(ctx, tx, &dbsqlc.SearchParams{
		TenantID: tenant, Q: text, QEnd: text + "\U0010FFFF", FirstID: first, LastID: last, Kinds: kinds, Most: mostFound,
	})
	return postgres.Map(rows, err, func(r dbsqlc.SearchRow) wire.SearchResult {
		return wire.SearchResult{Kind: r.Kind, ID: r.ID, Label: r.Label}
	})
}

// shortestID is the minimum number of hexadecimal digits for a search by id.
const shortestID = 4

// idsOf returns the first and the last id that begin with a text, or an empty
// range.
func idsOf(text string) (first, last envelope.ActionID) {
	digits := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	const whole = 2 * len(first)
	if len(digits) < shortestID || len(digits) > whole || strings.Trim(digits, "0123456789abcdef") != "" {
		return envelope.ActionID(uuid.Max), first
	}
	_, _ = hex.Decode(first[:], []byte(digits+strings.Repeat("0", whole-len(digits))))
	_, _ = hex.Decode(last[:], []byte(digits+strings.Repeat("f", whole-len(digits))))
	return first, last
}
