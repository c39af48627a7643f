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
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	until, _ := waiting.Deadline()
	// After an error changed is nil, which never receives.
	changed, stop, err := ts.watch(waiting, ts.by.Tenant, id)
	if err == nil {
		defer stop()
	} else if waiting.Err() == nil && !ts.isClosed() {
		return v, err
	}
	tick := time.NewTicker(ts.cfg.Progress)
	defer tick.Stop()
	for {
		if v, err = ts.readAction(ctx, id); err != nil || envelope.Ended(v.Envelope.Result.Status) || waitsTooLong(v, until) {
			return v, err
		}
		notify(ctx, v)
		select {
		case <-changed:
		case <-tick.C:
		case <-waiting.Done():
			return v, ctx.Err() // nil if only the time is over
		case <-ts.closing:
			return v, nil
		}
	}
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
