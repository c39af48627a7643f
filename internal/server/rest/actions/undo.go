package actions

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// Undo handles POST /api/v1/actions/{id}/undo. It takes an action off the
// schedule that has not begun.
func Undo(c *request.Call, id envelope.ActionID) error {
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := access.View(ctx, tx, c.By, id); err != nil {
			return err
		}
		return outbox.Undo(ctx, tx, c.By.Tenant, id, c.By.Actor())
	})
	if err != nil {
		return err
	}
	return Show(c, id)
}
