package listen

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
)

// discardFor is the time during which the rest of a request is discarded after
// an early answer. A connection that is closed with unread bytes is reset, and a
// client that is still sending may lose the answer.
const discardFor = 500 * time.Millisecond

// handler serves each request within the limits.
type handler struct {
	next http.Handler
	gate *gate
	// stopping ends when the server begins to stop.
	stopping context.Context
}

// ServeHTTP serves a request. The header and the body arrive within the deadline
// that the server has set.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connectionKey{}).(*connection) // the server's ConnContext
	x := &exchange{
		ResponseWriter: w, control: http.NewResponseController(w), write: h.gate.limits.Write, stopping: h.stopping,
		holding: c.holding, proxied: c.proxied,
	}
	_ = x.control.SetWriteDeadline(time.Time{}) // that of the answer before
	if c.proxied {
		if x.holding = h.gate.take(addressKey(ClientOf(r, h.gate.limits.TrustedProxies))); x.holding == nil {
			x.refuse()
			return
		}
		defer x.holding.release()
	}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if r.ContentLength != 0 {
		x.body = &body{ReadCloser: r.Body}
		r.Body = x.body
	}
	h.next.ServeHTTP(x, r)
	x.begin(http.StatusOK)
}

type exchangeKey struct{}

// exchange is a request and its answer. It sets the write deadlines: one for the
// whole answer or, once it was flushed, one for each piece.
type exchange struct {
	http.ResponseWriter
	control  *http.ResponseController
	write    time.Duration
	stopping context.Context
	// holding is that of the connection, or of the request if it is proxied.
	holding *holding
	proxied bool
	// body is nil for a request without one.
	body *body
	// closes ends the connection after the answer.
	closes bool
	// began reports whether the answer has begun, streams whether it was flushed.
	began, streams bool
}

// Unwrap lets http.ResponseController find the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader begins the answer. An answer to a request with an unread body
// closes the connection, so that the client does not have to send the rest.
func (x *exchange) WriteHeader(status int) {
	if status >= http.StatusOK {
		x.begin(status)
		return
	}
	x.ResponseWriter.WriteHeader(status)
}

// begin writes the header of the answer, once.
func (x *exchange) begin(status int) {
	if x.began {
		return
	}
	x.began = true
	unread := x.body != nil && !x.body.read
	if unread || x.closes || x.stopping.Err() != nil {
		x.Header().Set("Connection", "close")
	}
	if unread {
		_ = x.control.SetReadDeadline(time.Now().Add(discardFor))
	}
	x.extend()
	x.ResponseWriter.WriteHeader(status)
}

// extend sets the write deadline.
func (x *exchange) extend() { _ = x.control.SetWriteDeadline(time.Now().Add(x.write)) }

// Write writes a part of the answer.
func (x *exchange) Write(b []byte) (int, error) {
	x.begin(http.StatusOK)
	if x.streams {
		x.extend()
	}
	return x.ResponseWriter.Write(b)
}

// FlushError sends the written piece, with a deadline of its own.
func (x *exchange) FlushError() error {
	x.begin(http.StatusOK)
	x.streams = true
	x.extend()
	return x.control.Flush()
}

// refuse answers a proxied request whose client has too many open requests.
func (x *exchange) refuse() {
	h := x.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Retry-After", strconv.Itoa(fault.WholeSeconds(retryAfter)))
	x.begin(http.StatusServiceUnavailable)
	_, _ = io.WriteString(x, busyProblem) // the client may have left
}

// body is the body of a request.
type body struct {
	io.ReadCloser
	// read reports whether the body was read to its end.
	read bool
}

// Read reads a part of the body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.read = true
	}
	return n, err
}
