package source

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"
)

// ErrClosed is the cancellation cause of calls that run when a source is closed.
var ErrClosed = errors.New("source is closed")

// Calls tracks the running calls of a source, so that closing the source can
// cancel them. The zero value is ready for use.
type Calls struct {
	mu      sync.Mutex
	closed  bool
	running map[*context.CancelCauseFunc]struct{}
	wg      sync.WaitGroup
}

// Start registers a call, with a time limit, until end is called. It returns
// false if the source is closed.
func (c *Calls) Start(ctx context.Context, limit time.Duration) (_ context.Context, end func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ctx, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithTimeout(ctx, limit)
	if c.running == nil {
		c.running = make(map[*context.CancelCauseFunc]struct{})
	}
	c.running[&cancel] = struct{}{}
	c.wg.Add(1)
	return ctx, func() {
		stop()
		cancel(nil)
		c.mu.Lock()
		delete(c.running, &cancel)
		c.mu.Unlock()
		c.wg.Done()
	}, true
}

// Go runs f in a goroutine that Wait waits for.
func (c *Calls) Go(f func()) { c.wg.Go(f) }

// Cancel cancels all running calls with ErrClosed and rejects further ones.
func (c *Calls) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for cancel := range c.running {
		(*cancel)(ErrClosed)
	}
}

// Wait waits until all calls and all functions of Go have ended.
func (c *Calls) Wait() { c.wg.Wait() }

// EndedCode returns the code for the end of a call's context.
func EndedCode(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrClosed):
		return CodeClosed
	case errors.Is(cause, context.DeadlineExceeded):
		return CodeTimeout
	}
	return CodeCancelled
}

// WriteWatch observes whether an HTTP request may have reached the server. Use
// one per request.
type WriteWatch struct {
	mu        sync.Mutex
	traced    bool
	connected bool
}

// WatchWrite returns a context for exactly one HTTP request, and the watch on
// it.
func WatchWrite(ctx context.Context) (context.Context, *WriteWatch) {
	w := new(WriteWatch)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The transport requests another connection only if it wrote nothing to
		// the previous one, so the last connection counts.
		GetConn: func(string) { w.set(false) },
		// From here on the transport writes in a separate goroutine, which may
		// continue after the request has returned. So this is the last moment at
		// which "not written" is certain.
		GotConn: func(httptrace.GotConnInfo) { w.set(true) },
	}), w
}

func (w *WriteWatch) set(connected bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traced, w.connected = true, connected
}

// Written reports whether bytes of the request may have been sent. It is valid
// only after the request was passed to a transport. A transport without support
// for httptrace counts as having written it.
func (w *WriteWatch) Written() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.connected || !w.traced
}
