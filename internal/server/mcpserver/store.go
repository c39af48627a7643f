package mcpserver

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// lastOccurrence returns the newest action whose external id is base and an
// occurrence.
func lastOccurrence(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, base string) (external string, action envelope.ActionID, found bool, err error) {
	row, err := dbsqlc.New().ActionLastTurn(ctx, tx, &dbsqlc.ActionLastTurnParams{
		TenantID: uuid.UUID(tenant), First: base + occurrenceText(0), Last: base + occurrenceText(maxOccurrence),
	})
	if err != nil {
		return "", envelope.ActionID{}, false, postgres.Found(err, nil)
	}
	return row.ExternalID, envelope.ActionID(row.ActionID), true, nil
}
