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

// SelectActs returns a page of what triage did, or may still do, newest first.
func SelectActs(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f UndoFilter) ([]UndoPlace, error) {
	rows, err := dbsqlc.New().TriageActsSelect(ctx, tx, &dbsqlc.TriageActsSelectParams{
		TenantID: tenant, OperatorID: &f.Operator, RunID: postgres.OrNull(f.Run), Account: postgres.OrNull(f.Account), SessionID: postgres.OrNull(f.Session),
		Since: postgres.OrNull(f.Since), Until: postgres.OrNull(f.Until), BeforeAt: postgres.OrNull(f.Before.At), BeforeID: postgres.OrNull(uuid.UUID(f.Before.Action)),
		Most: int64(f.Limit),
	})
	return postgres.Map(rows, err, func(r dbsqlc.TriageActsSelectRow) UndoPlace { return UndoPlace{r.ActionID, r.At} })
}

// actsOf returns the acts of triage among the actions, and all its acts on their
// messages, newest first.
func actsOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids []envelope.ActionID) (map[envelope.ActionID]*act, map[uuid.UUID][]*act, error) {
	rows, err := dbsqlc.New().TriageActs(ctx, tx, &dbsqlc.TriageActsParams{TenantID: tenant, ActionIds: postgres.UUIDs(ids)})
	acts, newest := make(map[envelope.ActionID]*act, len(rows)), make(map[uuid.UUID][]*act)
	for _, r := range rows {
		a := &act{r.ActionID, r.MessageID, r.Account, r.OperatorID, r.Named, r.Edited, r.Holds, r.Reversing, r.Free}
		acts[a.action] = a
		newest[a.message] = append(newest[a.message], a)
	}
	return acts, newest, err
}
