package approval

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// decide takes a decision by compare-and-set. When it finds nothing to
// decide, it says why.
func decide(ctx context.Context, tx pgx.Tx, by Decider, action envelope.ActionID, decision envelope.Decision, note string) error {
	to, err := envelope.NextApproval(envelope.ApprovalRequired, decision)
	if err != nil {
		return err
	}
	q, key := dbsqlc.New(), &dbsqlc.ActionDecisionStateParams{TenantID: uuid.UUID(by.Tenant), ActionID: uuid.UUID(action)}
	was, err := q.ActionDecisionState(ctx, tx, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.NotFound, "no envelope %s", action)
	}
	if err != nil {
		return err
	}
	if was.ProposedBy != nil && *was.ProposedBy == by.Token {
		return fault.New(fault.Denied, "nobody decides about their own proposal")
	}
	_, err = q.ActionDecide(ctx, tx, &dbsqlc.ActionDecideParams{
		ApprovalState: string(to), DecidedBy: by.Name, DecisionNote: note, TenantID: uuid.UUID(by.Tenant), ActionID: uuid.UUID(action),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		// Another decision may have won since we looked.
		if was, err = q.ActionDecisionState(ctx, tx, key); err != nil {
			return err
		}
		if was.Overdue || was.ApprovalState == string(envelope.ApprovalExpired) {
			return fault.New(fault.Gone, "the time to decide about envelope %s is over", action)
		}
		_, err = envelope.NextApproval(envelope.Approval(was.ApprovalState), decision)
		return fault.Wrap(err, fault.Conflict, "envelope %s is not waiting for a decision: it is %s", action, was.ApprovalState)
	}
	if err != nil {
		return err
	}
	status := envelope.StatusPending
	if to == envelope.ApprovalDenied {
		status = envelope.StatusSkipped
	}
	return audit.Write(ctx, tx, eventOf(by.Tenant, by.Name, to, status, action))
}

func expire(ctx context.Context, tx pgx.Tx, most int) (int, error) {
	rows, err := dbsqlc.New().ActionsExpire(ctx, tx, int64(most))
	if err != nil {
		return 0, err
	}
	overdue := make(map[envelope.TenantID][]envelope.ActionID)
	for _, r := range rows {
		t := envelope.TenantID(r.TenantID)
		overdue[t] = append(overdue[t], envelope.ActionID(r.ActionID))
	}
	for tenant, actions := range overdue {
		if err := audit.Write(ctx, tx, eventOf(tenant, "system", envelope.ApprovalExpired, envelope.StatusSkipped, actions...)); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}
