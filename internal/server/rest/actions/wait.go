package actions

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// await returns an action that the caller may see: at once, or, if the caller
// wants to wait, when it has ended, the time is over or the server closes. The
// header of the answer marks an action that has not ended by then.
func await(c *request.Call, id envelope.ActionID) (outbox.View, error) {
	v, err := read(c, id)
	if err != nil || c.WaitFor == 0 || envelope.Ended(v.Envelope.Result.Status) {
		return v, err
	}
	closed, err := c.OpenWait()
	if err != nil || closed == nil {
		return v, err
	}
	defer closed()
	wait := request.Wait{Most: c.WaitFor, Closed: c.Broker.Closed(), Watch: func(ctx context.Context) (<-chan struct{}, func(), error) {
		return c.Broker.Watch(ctx, c.By.Tenant, id)
	}}
	v, ended, err := request.Await(c.R.Context(), wait, func(context.Context) (outbox.View, bool, error) {
		v, err := read(c, id)
		return v, envelope.Ended(v.Envelope.Result.Status), err
	})
	if err == nil && !ended {
		c.W.Header().Set("Countersign-Pending", "true")
	}
	return v, err
}

// awaitProposed is await for the action that this request proposed, whose
// proposals must be Awaited if the caller wants to wait.
func awaitProposed(c *request.Call, id envelope.ActionID, known bool) (outbox.View, error) {
	v, err := await(c, id)
	if c.WaitFor > 0 && !known && !envelope.Ended(v.Envelope.Result.Status) {
		c.EndWait(c.R.Context(), c.By.Tenant, id)
	}
	return v, err
}

// read reads an action that the caller may see.
func read(c *request.Call, id envelope.ActionID) (v outbox.View, err error) {
	err = c.InPlannedTx(func(ctx context.Context, tx pgx.Tx) error {
		v, err = access.View(ctx, tx, c.By, id)
		return err
	})
	return v, err
}
