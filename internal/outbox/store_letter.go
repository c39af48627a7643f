package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Letter is a dead letter.
type Letter struct {
	Action        envelope.ActionID
	ExternalID    string
	Source, Tool  string
	Reason        Reason
	Attempt       int
	Code, Message string
	At            time.Time
}

// LetterFilter narrows a list of dead letters; its zero fields do not.
type LetterFilter struct {
	Reason Reason
	Tool   string
	Before envelope.ActionID
	Most   int
}

// Letters returns a page of dead letters, the newest envelopes first.
func Letters(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f LetterFilter) ([]Letter, error) {
	rows, err := dbsqlc.New().DeadLetterList(ctx, tx, &dbsqlc.DeadLetterListParams{
		TenantID: uuid.UUID(tenant), Before: before(f.Before), Reason: some(string(f.Reason)), Tool: some(f.Tool), Most: int64(f.Most),
	})
	if err != nil {
		return nil, err
	}
	letters := make([]Letter, len(rows))
	for i, r := range rows {
		letters[i] = letterFromRow(r)
	}
	return letters, nil
}

// LetterOf returns one envelope's dead letter.
func LetterOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) (Letter, error) {
	rows, err := dbsqlc.New().DeadLetterPerID(ctx, tx, &dbsqlc.DeadLetterPerIDParams{TenantID: uuid.UUID(tenant), ActionIds: uuids([]envelope.ActionID{action})})
	if err != nil {
		return Letter{}, err
	}
	if len(rows) == 0 {
		return Letter{}, fault.New(fault.NotFound, "no dead letter %s", action)
	}
	return letterFromRow(dbsqlc.DeadLetterListRow(rows[0])), nil
}

// Replay puts dead letters on the schedule again under their old idempotency
// keys, with as many attempts as at first. It returns those it replayed; the
// others are no dead letters. An unknown one may be doubled by it, so that
// needs doubling to be true.
func Replay(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actor string, doubling bool, actions ...envelope.ActionID) ([]envelope.ActionID, error) {
	q, ids := dbsqlc.New(), uuids(actions)
	taken, err := q.DeadLetterTake(ctx, tx, &dbsqlc.DeadLetterTakeParams{TenantID: uuid.UUID(tenant), ActionIds: ids})
	if err != nil {
		return nil, err
	}
	attempts := make([]int32, len(taken))
	event := audit.Event{Tenant: tenant, Kind: audit.Replayed, Actor: actor}
	replayed := make([]envelope.ActionID, len(taken))
	for i, r := range taken {
		if Reason(r.Reason) == Unknown && !doubling {
			return nil, fault.New(fault.Conflict, "envelope %s may have had its effect; replaying it could double that and must be asked for", r.ActionID)
		}
		replayed[i] = envelope.ActionID(r.ActionID)
		ids[i], attempts[i] = r.ActionID, r.Attempt
		event.Items = append(event.Items, audit.Item{Action: replayed[i], Status: envelope.StatusPending, Attempt: int(r.Attempt)})
	}
	if len(taken) == 0 {
		return nil, nil
	}
	if _, err := q.OutboxEnqueue(ctx, tx, &dbsqlc.OutboxEnqueueParams{TenantID: uuid.UUID(tenant), ActionIds: ids[:len(taken)], Attempts: attempts}); err != nil {
		return nil, err
	}
	return replayed, audit.Write(ctx, tx, event)
}

// Discard gives dead letters up. The ledger keeps what happened.
func Discard(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actor, why string, actions ...envelope.ActionID) ([]envelope.ActionID, error) {
	gone, err := dbsqlc.New().DeadLetterDiscard(ctx, tx, &dbsqlc.DeadLetterDiscardParams{TenantID: uuid.UUID(tenant), ActionIds: uuids(actions)})
	if err != nil {
		return nil, err
	}
	event := audit.Event{Tenant: tenant, Kind: audit.Discarded, Actor: actor}
	discarded := make([]envelope.ActionID, len(gone))
	for i, id := range gone {
		discarded[i] = envelope.ActionID(id)
		event.Items = append(event.Items, audit.Item{Action: discarded[i], Subject: why})
	}
	return discarded, audit.Write(ctx, tx, event)
}

// Enqueue puts an envelope that was granted on the schedule.
func Enqueue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions ...envelope.ActionID) error {
	_, err := dbsqlc.New().OutboxEnqueue(ctx, tx, &dbsqlc.OutboxEnqueueParams{
		TenantID: uuid.UUID(tenant), ActionIds: uuids(actions), Attempts: make([]int32, len(actions)),
	})
	return err
}

// takeBack removes an envelope from the schedule, or withdraws it from
// approval.
func takeBack(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, actor string) (bool, error) {
	q, by := dbsqlc.New(), "undone by "+actor
	n, err := q.OutboxUndo(ctx, tx, &dbsqlc.OutboxUndoParams{
		TenantID: uuid.UUID(tenant), ActionID: uuid.UUID(action), Code: CodeUndone, Message: by,
	})
	if err != nil || n > 0 {
		return n > 0, err
	}
	n, err = q.ActionWithdraw(ctx, tx, &dbsqlc.ActionWithdrawParams{
		TenantID: uuid.UUID(tenant), ActionID: uuid.UUID(action), DecidedBy: actor, Message: by,
	})
	return n > 0, err
}

func letterFromRow(r dbsqlc.DeadLetterListRow) Letter {
	return Letter{
		Action: envelope.ActionID(r.ActionID), ExternalID: text(r.ExternalID), Source: r.SourceID, Tool: r.ToolName,
		Reason: Reason(r.Reason), Attempt: int(r.Attempt), Code: text(r.Code), Message: text(r.Message), At: r.CreatedAt,
	}
}

func uuids(actions []envelope.ActionID) []uuid.UUID {
	ids := make([]uuid.UUID, len(actions))
	for i, a := range actions {
		ids[i] = uuid.UUID(a)
	}
	return ids
}
