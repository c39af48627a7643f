package source

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"
)

// ErrClosed is the cause of the end of calls that run when a source is closed.
var ErrClosed = errors.New("source is closed")

// Calls tracks the running calls of a source, so that closing the source can
// end them. The zero value is ready for use.
type Calls struct {
	mu      sync.Mutex
	closed  bool
	running map[*context.CancelCauseFunc]struct{}
	wg      sync.WaitGroup
}

// Start registers a call that runs until end is called, and bounds it in time.
// It reports false when the source is closed.
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

// Cancel ends all running calls with ErrClosed and refuses further ones.
func (c *Calls) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for cancel := range c.running {
		(*cancel)(ErrClosed)
	}
}

// Wait waits until no call and no function of Go runs.
func (c *Calls) Wait() { c.wg.Wait() }

// EndedCode returns the code for why the context of a call is over.
func EndedCode(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrClosed):
		return CodeClosed
	case errors.Is(cause, context.DeadlineExceeded):
		return CodeTimeout
	}
	return CodeCancelled
}

// WriteWatch says whether an HTTP request may have reached the other side. Use
// one per request.
type WriteWatch struct {
	mu        sync.Mutex
	traced    bool
	connected bool
}

// WatchWrite returns a context to make exactly one HTTP request with, and the
// watch on it.
func WatchWrite(ctx context.Context) (context.Context, *WriteWatch) {
	w := new(WriteWatch)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The transport asks for another connection only if it wrote nothing
		// to the one before, so the last connection is the one that counts.
		GetConn: func(string) { w.set(false) },
		// From here on the transport writes from a goroutine of its own, which
		// may still be at it when the request has returned. So having got a
		// connection is the last moment at which "not written" is certain.
		GotConn: func(httptrace.GotConnInfo) { w.set(true) },
	}), w
}

func (w *WriteWatch) set(connected bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traced, w.connected = true, connected
}

// Written reports whether bytes of the request may have gone out. Ask only
// after the request was handed to a transport: one that does not support
// httptrace has to be taken to have written it.
func (w *WriteWatch) Written() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.connected || !w.traced
}
