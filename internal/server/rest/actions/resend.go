package actions

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// Resend handles POST /api/v1/actions/{id}/resend. It sends the message of an ended
// delivery again: 201 with the new action, 200 with one that has not ended.
func Resend(c *request.Call, body wire.ResendRequest, id envelope.ActionID) error {
	by := c.Submitter()
	by.Awaited = c.WaitFor > 0
	var a intake.Answer
	committed := func() {}
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		v, err := access.View(ctx, tx, c.By, id)
		if fault.KindOf(err) == fault.NotFound {
			return fault.New(fault.NotFound, "no delivery %s: it was never made, or retention deleted it", id)
		}
		if err != nil {
			return err
		}
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		a, committed, err = subscription.Resend(ctx, tx, c.Intake, snap, by, v, body.Note)
		return err
	})
	if err != nil {
		return err
	}
	committed()
	view, err := awaitProposed(c, a)
	if err != nil {
		return err
	}
	if !a.Known && view.Mode == envelope.ModeDeny {
		return &deniedError{view}
	}
	c.W.Header().Set("Location", "/api/v1/actions/"+a.Action.String())
	status := http.StatusCreated
	if a.Known {
		status = http.StatusOK
	}
	return c.JSON(status, ViewFor(c.By, view))
}
