package mcpserver

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
)

// await returns an action when it has ended, when it is clear that it will not
// end in time, when the time is over, or when the Front closes. The error is
// that of the client leaving, or of looking.
func (d *desk) await(ctx context.Context, id envelope.ActionID, wait time.Duration, tell func(context.Context, outbox.View)) (outbox.View, error) {
	v, err := d.look(ctx, id)
	if err != nil || envelope.Ended(v.Envelope.Result.Status) {
		return v, err
	}
	until := time.Now().Add(wait)
	nudged, stop, err := d.watchAction(ctx, id, until)
	if err != nil {
		return v, err
	}
	defer stop()
	over, beat := time.NewTimer(wait), time.NewTicker(d.cfg.Progress)
	defer over.Stop()
	defer beat.Stop()
	for {
		if v, err = d.look(ctx, id); err != nil || envelope.Ended(v.Envelope.Result.Status) || tooLong(v, until) {
			return v, err
		}
		tell(ctx, v)
		select {
		case <-nudged:
		case <-beat.C:
		case <-over.C:
			return v, nil
		case <-d.closing:
			return v, nil
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}

// watchAction watches an action for a while. Where that cannot be, because the
// server closes, nothing is heard.
func (d *desk) watchAction(ctx context.Context, id envelope.ActionID, until time.Time) (<-chan struct{}, func(), error) {
	joining, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	nudged, stop, err := d.Watcher.Watch(joining, d.by.Tenant, id)
	if err == nil {
		return nudged, stop, nil
	}
	select {
	case <-d.closing:
	case <-joining.Done():
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
	default:
		return nil, nil, err
	}
	return nil, func() {}, nil
}

// tooLong says that an action waits for something that does not come in time.
// A person may come at any moment.
func tooLong(v outbox.View, until time.Time) bool {
	return v.WaitsFor != "" && v.WaitsFor != outbox.WaitsApproval && v.WaitsFor != preflight.CodePaused && v.WaitsUntil.After(until)
}

// teller tells a client that asked for it how an action stands. What cannot be
// told is not missed: the call's answer says it too.
func (d *desk) teller(req *sdk.CallToolRequest, wait time.Duration) func(context.Context, outbox.View) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(context.Context, outbox.View) {}
	}
	began, told := time.Now(), -1.0
	return func(ctx context.Context, v outbox.View) {
		done := time.Since(began).Seconds()
		if done <= told { // it may only grow
			return
		}
		told = done
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: wait.Seconds(), Message: waitsText(v),
		})
	}
}
