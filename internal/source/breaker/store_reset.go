package breaker

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Breakers returns those of a tenant's sources that were ever left alone, in
// order of the source's id. A source without one is called as ever.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]State, error) {
	rows, err := dbsqlc.New().BreakerList(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	all := make([]State, len(rows))
	for i, r := range rows {
		all[i] = State{r.SourceID, r.State, r.Cause, r.Since.UTC(), r.OpenUntil.UTC(), int(r.Trips), r.Worker}
	}
	return all, nil
}

// ResetBreaker lets calls to a source through at once, whatever it failed
// before. A source that was never left alone is fault.NotFound.
func Reset(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source, by string) error {
	n, err := dbsqlc.New().BreakerReset(ctx, tx, &dbsqlc.BreakerResetParams{TenantID: uuid.UUID(tenant), SourceID: source, Cause: "reset"})
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "the source has no breaker; list the breakers to see which have one")
	}
	if err != nil {
		return err
	}
	if err := dbsqlc.New().WakePut(ctx, tx, &dbsqlc.WakePutParams{TenantID: uuid.UUID(tenant), WaitsFor: waitsForBreaker}); err != nil {
		return err
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: by, Items: []audit.Item{{
		Subject: "breaker of the source " + source + " reset",
	}}})
}

// waitsForBreaker is what rows of the outbox wait for while a breaker is open.
const waitsForBreaker = "breaker_open"
