package rest

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// readEvents reads the next events behind a place.
func readEvents(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, after audit.Place) ([]audit.Stored, error) {
	var events []audit.Stored
	err := postgres.InTx(ctx, db, postgres.API(tenant), func(tx pgx.Tx) error {
		var err error
		events, err = audit.Read(ctx, tx, tenant, after, readAtOnce)
		return err
	})
	return events, err
}

// about is what a stream has to know of an action.
type about struct {
	session string
	tool    policy.Key
}

// aboutOf finds what all actions are that events are about.
func aboutOf(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, events []audit.Stored) (map[envelope.ActionID]about, error) {
	var ids []uuid.UUID
	for _, e := range events {
		for _, it := range e.Items {
			if it.Action != (envelope.ActionID{}) {
				ids = append(ids, uuid.UUID(it.Action))
			}
		}
	}
	found := make(map[envelope.ActionID]about)
	if len(ids) == 0 {
		return found, nil
	}
	err := postgres.InTx(ctx, db, postgres.API(tenant), func(tx pgx.Tx) error {
		rows, err := dbsqlc.New().ActionAboutPerID(ctx, tx, &dbsqlc.ActionAboutPerIDParams{TenantID: uuid.UUID(tenant), ActionIds: ids})
		for _, r := range rows {
			found[envelope.ActionID(r.ActionID)] = about{r.SessionID, policy.Key{Source: r.SourceID, Action: r.ToolName}}
		}
		return err
	})
	return found, err
}

// endedOf finds out which of some actions have ended.
func endedOf(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, actions []envelope.ActionID) ([]envelope.ActionID, error) {
	ids := make([]uuid.UUID, len(actions))
	for i, a := range actions {
		ids[i] = uuid.UUID(a)
	}
	var ended []envelope.ActionID
	err := postgres.InTx(ctx, db, postgres.API(tenant), func(tx pgx.Tx) error {
		rows, err := dbsqlc.New().ActionEndedPerID(ctx, tx, &dbsqlc.ActionEndedPerIDParams{TenantID: uuid.UUID(tenant), ActionIds: ids})
		ended = make([]envelope.ActionID, len(rows))
		for i, id := range rows {
			ended[i] = envelope.ActionID(id)
		}
		return err
	})
	return ended, err
}

// migratedTo is the version of the database's schema. goose keeps it in a
// table of its own, which no query file knows.
func migratedTo(ctx context.Context, db postgres.Begins) (int64, error) {
	const query = "SELECT coalesce(max(g.version_id), 0)::bigint FROM goose_db_version g WHERE g.is_applied"
	var version int64
	err := postgres.InTx(ctx, db, postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, query).Scan(&version)
	})
	return version, err
}
