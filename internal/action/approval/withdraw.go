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

// actorTriage is the actor of withdrawals.
const actorTriage envelope.Actor = "triage"

// withdrawal is a triage proposal that the mailbox owner's own change made
// pointless.
type withdrawal struct {
	tenant   envelope.TenantID
	external string
	action   envelope.ActionID
	// later reports whether the proposal is not an action yet; withdrawn whether the
	// action was undone.
	later, withdrawn bool
}

// Withdraw undoes up to most actions, across tenants, that triage proposed for
// messages which their owner has moved or flagged since. Decided and completed
// actions are unchanged. It returns the number that was due.
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
