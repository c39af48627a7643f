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
// end in time, when the time is over, or when the Server closes. notify is
// called whenever the action was read. The error is that of ctx, or of reading.
func (ts *tokenServer) await(ctx context.Context, id envelope.ActionID, wait time.Duration, notify func(context.Context, outbox.View)) (outbox.View, error) {
	v, err := ts.readAction(ctx, id)
	if err != nil || envelope.Ended(v.Envelope.Result.Status) {
		return v, err
	}
	until := time.Now().Add(wait)
	changed, stop, err := ts.watchAction(ctx, id, until)
	if err != nil {
		return v, err
	}
	defer stop()
	deadline, tick := time.NewTimer(wait), time.NewTicker(ts.cfg.Progress)
	defer deadline.Stop()
	defer tick.Stop()
	for {
		if v, err = ts.readAction(ctx, id); err != nil || envelope.Ended(v.Envelope.Result.Status) || waitsTooLong(v, until) {
			return v, err
		}
		notify(ctx, v)
		select {
		case <-changed:
		case <-tick.C:
		case <-deadline.C:
			return v, nil
		case <-ts.closing:
			return v, nil
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}

// watchAction watches an action until a time. The channel is nil, which never
// receives, if that is not possible because the server closes.
func (ts *tokenServer) watchAction(ctx context.Context, id envelope.ActionID, until time.Time) (<-chan struct{}, func(), error) {
	joining, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	changed, stop, err := ts.watch(joining, ts.by.Tenant, id)
	if err == nil {
		return changed, stop, nil
	}
	select {
	case <-ts.closing:
	case <-joining.Done():
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
	default:
		return nil, nil, err
	}
	return nil, func() {}, nil
}

// waitsTooLong reports whether an action waits for something that does not
// happen in time. A person may decide at any moment.
func waitsTooLong(v outbox.View, until time.Time) bool {
	return v.WaitsFor != "" && v.WaitsFor != outbox.WaitsApproval && v.WaitsFor != preflight.CodePaused && v.WaitsUntil.After(until)
}

// progressFunc returns a function that notifies a client that asked for
// progress. Its errors are ignored: the answer of the call says the same.
func (ts *tokenServer) progressFunc(req *sdk.CallToolRequest, wait time.Duration) func(context.Context, outbox.View) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(context.Context, outbox.View) {}
	}
	began, last := time.Now(), -1.0
	return func(ctx context.Context, v outbox.View) {
		done := time.Since(began).Seconds()
		if done <= last { // progress may only grow
			return
		}
		last = done
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: wait.Seconds(), Message: waitsText(v),
		})
	}
}
