package approval

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// actorTriage is who withdraws what triage proposed.
const actorTriage envelope.Actor = "triage"

// withdrawal is an action of triage that its owner made pointless.
type withdrawal struct {
	tenant   envelope.TenantID
	external string
	action   envelope.ActionID
	// later reports that the proposal is no action yet, and withdrawn that the action
	// was undone.
	later, withdrawn bool
}

// Withdraw undoes actions that triage proposed about messages that their owner has
// moved or flagged since, at most so many, across tenants. Actions that are decided
// or done stay as they are. It returns how many were due.
func Withdraw(ctx context.Context, db postgres.Begins, most int) (int, error) {
	return postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (int, error) {
		due, err := dueWithdrawals(ctx, tx, most)
		if err != nil || len(due) == 0 {
			return 0, err
		}
		for i := range due {
			w := &due[i]
			if w.later {
				continue
			}
			err := outbox.Undo(ctx, tx, w.tenant, w.action, actorTriage)
			if w.withdrawn = err == nil; err != nil && !errors.Is(err, fault.Conflict) && !errors.Is(err, fault.NotFound) {
				return 0, err
			}
		}
		return len(due), endWithdrawals(ctx, tx, due)
	})
}
