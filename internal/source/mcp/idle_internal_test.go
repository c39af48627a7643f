package mcp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestIdleTimeoutEndsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s idleTimeouts
		var params, other sdk.CallToolParams
		ctx, done := s.limit(t.Context(), &params, 30*time.Second)
		defer done()
		beside, end := s.limit(t.Context(), &other, 30*time.Second)
		defer end()
		heard := func(token any) {
			s.progress(ctx, &sdk.ProgressNotificationClientRequest{Params: &sdk.ProgressNotificationParams{ProgressToken: token}})
		}

		for range 3 {
			time.Sleep(29 * time.Second)
			heard(params.GetProgressToken())
			heard("of nobody")
			heard(7.5)
		}

		if ctx.Err() != nil || !errors.Is(context.Cause(beside), context.DeadlineExceeded) {
			t.Errorf("the calls end by %v and %v, want the one without progress alone to have ended", context.Cause(ctx), context.Cause(beside))
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("the call ends by %v after it fell silent, want the deadline", context.Cause(ctx))
		}
	})
}
