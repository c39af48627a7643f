package actions

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/broker"
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
	ctx, cancel := context.WithTimeout(c.R.Context(), c.WaitFor)
	defer cancel()
	changed, stop, err := c.Broker.Watch(ctx, c.By.Tenant, id)
	if err == nil {
		defer stop()
		v, err = readUntilEnded(ctx, c, changed, v)
	}
	if c.R.Context().Err() != nil {
		return v, c.R.Context().Err()
	}
	if err != nil && ctx.Err() == nil && !c.Broker.IsClosed() {
		return v, err
	}
	if !envelope.Ended(v.Envelope.Result.Status) {
		c.W.Header().Set("Countersign-Pending", "true")
	}
	return v, nil
}

// readUntilEnded reads an action whenever something has happened to it. It
// returns the latest view, also with an error.
func readUntilEnded(ctx context.Context, c *request.Call, changed <-chan struct{}, latest outbox.View) (outbox.View, error) {
	for {
		v, err := read(c, latest.Envelope.ActionID)
		if err != nil {
			return latest, err
		}
		latest = v
		if envelope.Ended(v.Envelope.Result.Status) {
			return latest, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return latest, ctx.Err()
		case <-c.Broker.Closed():
			return latest, broker.ErrClosed
		}
	}
}

// read reads an action that the caller may see.
func read(c *request.Call, id envelope.ActionID) (outbox.View, error) {
	return request.Read(c, func(ctx context.Context, tx pgx.Tx) (outbox.View, error) {
		return access.View(ctx, tx, c.By, id)
	})
}
