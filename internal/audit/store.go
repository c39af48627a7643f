package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Write stores events in the transaction of the change that they record. If they
// cannot be written, the change must not be committed.
func Write(ctx context.Context, tx pgx.Tx, events ...Event) error {
	p := &dbsqlc.EventInsertManyParams{}
	for _, e := range events {
		if len(e.Items) == 0 {
			continue
		}
		items, err := json.Marshal(e.Items)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		p.TenantIds = append(p.TenantIds, uuid.UUID(e.Tenant))
		p.Kinds = append(p.Kinds, string(e.Kind))
		p.Actors = append(p.Actors, e.Actor)
		p.Items = append(p.Items, items)
	}
	if len(p.TenantIds) == 0 {
		return nil
	}
	return dbsqlc.New().EventInsertMany(ctx, tx, p)
}

// Read returns the next events after a position, most at most. Events that an open
// transaction may still write, and all after them, are left for a later read, so
// that no event is ever skipped.
func Read(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after Position, most int) ([]Stored, error) {
	rows, err := dbsqlc.New().EventList(ctx, tx, &dbsqlc.EventListParams{
		TenantID: uuid.UUID(tenant), Txid: after.Tx, EventID: after.Event, Most: int64(most),
	})
	if err != nil {
		return nil, err
	}
	stored := make([]Stored, len(rows))
	for i, r := range rows {
		s := &stored[i]
		s.Position, s.At = Position{r.Txid, r.EventID}, r.At
		s.Tenant, s.Kind, s.Actor = tenant, Kind(r.Kind), r.Actor
		if err := json.Unmarshal(r.Items, &s.Items); err != nil {
			return nil, fmt.Errorf("decode event %s: %w", s.Position, err)
		}
	}
	return stored, nil
}

// Latest returns the position after which only new events come.
func Latest(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Position, error) {
	txid, err := dbsqlc.New().EventLatest(ctx, tx, uuid.UUID(tenant))
	if errors.Is(err, pgx.ErrNoRows) {
		return Position{}, nil
	}
	return Position{Tx: txid, Event: math.MaxInt64}, err
}

// EnsurePartitions creates the partitions of tool_executions from this month to
// some months ahead. Without a partition, a month accepts no rows.
func EnsurePartitions(ctx context.Context, tx pgx.Tx, monthsAhead int) error {
	_, err := dbsqlc.New().PartitionEnsure(ctx, tx, int32(monthsAhead))
	return err
}
