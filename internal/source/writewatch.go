package source

import (
	"context"
	"net/http/httptrace"
	"sync"
)

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
