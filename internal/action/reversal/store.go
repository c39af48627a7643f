package reversal

import (
	"cmp"
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Select returns a page of the actions that may have had an effect and are no
// reversals, newest first: completed, of unknown outcome, or not ended.
func Select(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]envelope.ActionID, error) {
	before := cmp.Or(f.Before, envelope.ActionID(uuid.Max))
	return dbsqlc.New().ReversalSelect(ctx, tx, &dbsqlc.ReversalSelectParams{
		TenantID: tenant, Before: before, WorkflowID: postgres.OrNull(f.Workflow), SessionID: postgres.OrNull(f.Session),
		Source: postgres.OrNull(f.Source), Tool: postgres.OrNull(f.Tool), Since: postgres.OrNull(f.Since), Until: postgres.OrNull(f.Until), Most: int64(f.Limit),
	})
}

// read locks actions, so that only one transaction at a time reverts them, and
// reads their state. Actions that do not exist are left out.
func read(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids []envelope.ActionID) (map[envelope.ActionID]*call, error) {
	q, named := dbsqlc.New(), postgres.UUIDs(ids)
	if _, err := q.ApprovalLock(ctx, tx, &dbsqlc.ApprovalLockParams{TenantID: tenant, ActionIds: named}); err != nil {
		return nil, err
	}
	views, err := outbox.Get(ctx, tx, tenant, ids...)
	if err != nil {
		return nil, err
	}
	calls := make(map[envelope.ActionID]*call, len(views))
	for _, v := range views {
		calls[v.Envelope.ActionID] = &call{view: v}
	}
	states, err := q.ReversalStates(ctx, tx, &dbsqlc.ReversalStatesParams{TenantID: tenant, ActionIds: named})
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		c, ok := calls[s.ActionID]
		if !ok {
			continue
		}
		if s.WorkflowOpen {
			c.workflow = s.WorkflowID
		}
		_, c.try, _ = parseName(s.ReversalName)
		c.last, c.phase, c.attempts, c.dead = envelope.ActionID(s.ReversalID), envelope.Phase(s.ReversalPhase), int(s.ReversalAttempts), s.ReversalDead
	}
	return calls, nil
}
