package broker

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// readEvents reads the next events behind a place, up to readAtOnce.
func readEvents(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, after audit.Position) ([]audit.Stored, error) {
	return postgres.InTxReturning(ctx, db, postgres.API(tenant), func(tx pgx.Tx) ([]audit.Stored, error) {
		return audit.Read(ctx, tx, tenant, after, readAtOnce)
	})
}

// subjectsOf reads the sessions and tools of the actions that events are about.
func subjectsOf(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, events []audit.Stored) (map[envelope.ActionID]access.Subject, error) {
	var ids []uuid.UUID
	for _, e := range events {
		for _, it := range e.Items {
			if it.Action != (envelope.ActionID{}) {
				ids = append(ids, uuid.UUID(it.Action))
			}
		}
	}
	found := make(map[envelope.ActionID]access.Subject)
	if len(ids) == 0 {
		return found, nil
	}
	err := postgres.InTx(ctx, db, postgres.API(tenant), func(tx pgx.Tx) error {
		rows, err := dbsqlc.New().ActionAboutPerID(ctx, tx, &dbsqlc.ActionAboutPerIDParams{TenantID: tenant, ActionIds: ids})
		for _, r := range rows {
			found[r.ActionID] = access.Subject{Session: r.SessionID, Tool: policy.Key{Source: r.SourceID, Action: r.ToolName}}
		}
		return err
	})
	return found, err
}

// endedOf returns the actions, of those given, that have ended.
func endedOf(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, actions []envelope.ActionID) ([]envelope.ActionID, error) {
	return postgres.InTxReturning(ctx, db, postgres.API(tenant).Planned(), func(tx pgx.Tx) ([]envelope.ActionID, error) {
		return dbsqlc.New().ActionEndedPerID(ctx, tx, &dbsqlc.ActionEndedPerIDParams{TenantID: tenant, ActionIds: postgres.UUIDs(actions)})
	})
}
