package outbox

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
)

// CodeUndone is the code of an envelope that was taken back in time.
const CodeUndone = envelope.CodeUndone

// Undo takes an envelope back while nothing of it can have been sent, whether
// it waits for a decision or for its turn. fault.Conflict says that it is too
// late, and what became of it.
func Undo(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, actor string) error {
	deleted, err := withdraw(ctx, tx, tenant, action, actor)
	if err != nil {
		return err
	}
	if !deleted {
		views, err := Get(ctx, tx, tenant, action)
		if err != nil {
			return err
		}
		if len(views) == 0 {
			return fault.New(fault.NotFound, "no action %s", action)
		}
		_, err = envelope.Next(views[0].Envelope.Result.Status, envelope.EventUndo)
		if err == nil {
			// Of a class whose start is not marked, and leased, or tried before
			// without an answer.
			err = fault.New(fault.Conflict, "its call may be running, or may have had its effect")
		}
		return fault.Wrap(err, fault.Conflict, "too late to undo: the envelope is %s", views[0].Envelope.Result.Status)
	}
	return audit.Write(ctx, tx, audit.Event{
		Tenant: tenant, Kind: audit.Undone, Actor: actor,
		Items: []audit.Item{{Action: action, Status: envelope.StatusSkipped, Code: CodeUndone}},
	})
}
