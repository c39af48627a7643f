package timeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// maxEvents bounds the events that are read of one action; the newest are.
const maxEvents = 500

// actionEvents is written by hand, since sqlc does not support the columns of a
// function.
const actionEvents = `SELECT e.at, e.kind, e.actor, e.note FROM action_events($1, $2) e`

// HistoryOf returns the history of an action that was read in the same transaction,
// oldest first.
func HistoryOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, v outbox.View) ([]wire.HistoryItem, error) {
	r, err := read(ctx, tx, tenant, v)
	if err != nil {
		return nil, fmt.Errorf("history of action %s: %w", v.Envelope.ActionID, err)
	}
	return r.items(), nil
}

func read(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, v outbox.View) (*record, error) {
	id := v.Envelope.ActionID
	row, err := dbsqlc.New().HistoryAction(ctx, tx, &dbsqlc.HistoryActionParams{TenantID: tenant, ActionID: id})
	if err != nil {
		return nil, err
	}
	r := &record{view: v, proposer: actor(row.Proposer, row.ProposedBy, row.OperatorID), workflow: postgres.OrZero(row.WorkflowID)}
	if len(row.Origin) > 0 && json.Unmarshal(row.Origin, &r.origin) != nil {
		r.origin = nil
	}
	if r.votes, err = approval.Votes(ctx, tx, tenant, id); err != nil {
		return nil, err
	}
	if r.attempts, err = outbox.Attempts(ctx, tx, tenant, id); err != nil {
		return nil, err
	}
	if r.events, err = readEvents(ctx, tx, id); err != nil {
		return nil, err
	}
	r.reversals, err = readReversals(ctx, tx, tenant, id)
	return r, err
}

// actor returns the proposer's token as an actor; "" for Countersign itself.
func actor(name string, token, operator *uuid.UUID) envelope.Actor {
	if token == nil {
		return ""
	}
	return envelope.NewActor(name, *token, postgres.OrZero(operator))
}

func readEvents(ctx context.Context, tx pgx.Tx, id envelope.ActionID) ([]event, error) {
	rows, err := tx.Query(ctx, actionEvents, id.String(), maxEvents)
	if err != nil {
		return nil, err
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (event, error) {
		var e event
		var kind, by string
		var at time.Time
		err := row.Scan(&at, &kind, &by, &e.note)
		e.at, e.kind, e.actor = at, audit.Kind(kind), envelope.Actor(by)
		return e, err
	})
	slices.Reverse(events)
	return events, err
}

func readReversals(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id envelope.ActionID) ([]reversal, error) {
	rows, err := dbsqlc.New().HistoryReversals(ctx, tx, &dbsqlc.HistoryReversalsParams{TenantID: tenant, ActionID: uuid.UUID(id)})
	return postgres.Map(rows, err, func(n dbsqlc.HistoryReversalsRow) reversal {
		return reversal{
			at: n.CreatedAt, proposer: actor(n.Proposer, n.ProposedBy, n.OperatorID),
			Reverted: wire.Reverted{ActionID: n.ActionID, Phase: envelope.Phase(n.Phase)},
		}
	})
}
