package audit

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// ExportRows is how many events a call of Export returns before the end.
const ExportRows = readRows

// Export returns the next events of a range of time after a position, in order:
// ExportRows of them, or fewer at the end. Like Read it leaves out events before
// which others may still come. An event that a long transaction wrote may be
// exported only when a checkpoint covers it.
func Export(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, span Span, after Position) ([]Entry, error) {
	if span.Until.IsZero() {
		span.Until = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)
	}
	after, until, err := bounds(ctx, tx, tenant, span, after)
	if err != nil {
		return nil, err
	}
	rows, err := dbsqlc.New().EventExport(ctx, tx, &dbsqlc.EventExportParams{
		TenantID: uuid.UUID(tenant), AfterTxid: after.Tx, AfterEvent: after.Event, UntilTxid: until.Tx, UntilEvent: until.Event,
		FromAt: span.From, UntilAt: span.Until, Most: ExportRows,
	})
	return postgres.Map(rows, err, func(r dbsqlc.EventExportRow) Entry {
		position := Position{r.Txid, r.EventID}
		return Entry{
			Position: position, Checkpoint: r.CheckpointNo, At: r.At, Kind: Kind(r.Kind), Actor: r.Actor, Items: r.Items,
			Leaf: leafOf(tenant, row{position, r.At, r.Kind, r.Actor, r.Items}).hash,
		}
	})
}

// bounds narrows a range of positions to the checkpoints that have events of a
// range of time, since no index leads from a time to its events.
func bounds(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, span Span, after Position) (Position, Position, error) {
	q := dbsqlc.New()
	first, err := q.CheckpointAfter(ctx, tx, &dbsqlc.CheckpointAfterParams{TenantID: uuid.UUID(tenant), At: span.From})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return after, after, err
	}
	if begin := (Position{first.UntilTxid, first.UntilEvent}); err == nil && after.Compare(begin) < 0 {
		after = begin
	}
	last, err := q.CheckpointBefore(ctx, tx, &dbsqlc.CheckpointBeforeParams{TenantID: uuid.UUID(tenant), At: span.Until})
	if errors.Is(err, pgx.ErrNoRows) {
		return after, Position{math.MaxUint64, math.MaxInt64}, nil
	}
	return after, Position{last.UntilTxid, last.UntilEvent}, err
}
