package mcpserver

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// lastTurn finds the newest envelope whose external id is base and a turn.
func lastTurn(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, base string) (external string, action envelope.ActionID, found bool, err error) {
	row, err := dbsqlc.New().ActionLastTurn(ctx, tx, &dbsqlc.ActionLastTurnParams{
		TenantID: uuid.UUID(tenant), First: base + turnText(0), Last: base + turnText(maxTurn),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", envelope.ActionID{}, false, nil
	}
	if err != nil {
		return "", envelope.ActionID{}, false, err
	}
	return row.ExternalID, envelope.ActionID(row.ActionID), true, nil
}
