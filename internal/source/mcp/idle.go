package mcp

import (
	"context"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// idleTimeouts end calls that had neither an answer nor a progress notification
// for too long. The zero value is ready for use.
type idleTimeouts struct {
	mu    sync.Mutex
	last  int64
	calls map[string]func() // restart the timer of a call, by progress token
}

// limit returns a context for a call that ends after a time without progress. It
// sets the progress token of the request. The caller must call done when the
// call has ended.
func (s *idleTimeouts) limit(ctx context.Context, params *sdk.CallToolParams, most time.Duration) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(most, func() { cancel(context.DeadlineExceeded) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	token := strconv.FormatInt(s.last, 10)
	params.SetProgressToken(token)
	if s.calls == nil {
		s.calls = make(map[string]func())
	}
	s.calls[token] = func() { timer.Reset(most) }
	return ctx, func() {
		s.mu.Lock()
		delete(s.calls, token)
		s.mu.Unlock()
		timer.Stop()
		cancel(nil)
	}
}

// progress restarts the idle timeout of a call.
func (s *idleTimeouts) progress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	if restart := s.calls[token]; restart != nil {
		restart()
	}
}
