package actions

import (
	"context"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// await returns an action that the caller may see: immediately or, if the caller
// wants to wait, when it has ended, the time is over or the server closes. A
// header of the response marks an action that has not ended by then. An action
// that was just scheduled is first read after a change.
func await(c *request.Call, id envelope.ActionID, scheduled bool) (v outbox.View, err error) {
	if scheduled = scheduled && c.WaitFor > 0; !scheduled {
		if v, err = read(c, id); err != nil || c.WaitFor == 0 || envelope.Ended(v.Envelope.Result.Status) {
			return v, err
		}
	}
	closed, err := c.OpenWait()
	if err == nil && closed == nil && scheduled {
		return read(c, id)
	}
	if err != nil || closed == nil {
		return v, err
	}
	defer closed()
	wait := request.Wait{Scheduled: scheduled, Most: c.WaitFor, Closed: c.Broker.Closed(), Watch: func(ctx context.Context) (<-chan struct{}, func(), error) {
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
func awaitProposed(c *request.Call, a intake.Answer) (outbox.View, error) {
	v, err := await(c, a.Action, a.Scheduled())
	if c.WaitFor > 0 && !a.Known && !envelope.Ended(v.Envelope.Result.Status) {
		c.EndWait(c.R.Context(), c.By.Tenant, a.Action)
	}
	return v, err
}

// read reads an action that the caller may see.
func read(c *request.Call, id envelope.ActionID) (outbox.View, error) {
	return access.Read(c.R.Context(), c.Actions, c.By, id)
}
