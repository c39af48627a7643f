package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/countersign-dev/countersign/internal/source"
)

// probe collects data about one tools/call, or one handshake, from the
// transport. The SDK passes a request's context to the transport, and the probe
// is a value of it.
type probe struct {
	mu        sync.Mutex
	watch     *source.WriteWatch
	conn      *watchedConn
	id        jsonrpc.ID
	seenSoFar seen
}

// seen is the data collected by a probe.
type seen struct {
	// written is set if the request was or may have been sent, in part or whole.
	written bool
	// handed is set if an HTTP transport was given the request.
	handed bool
	// status and retryAfter are those of the HTTP response.
	status     int
	retryAfter time.Duration
	// failed is the error of a handshake or listing without an HTTP response, or of a
	// call without a token.
	failed error
	// sessionID is set if the request had a session.
	sessionID bool
	// fault is the code of an unusable answer.
	fault string
	// result or rpcError is the answer.
	result   json.RawMessage
	rpcError *jsonrpc.Error
}

func (p *probe) seen() seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seenSoFar
	if p.watch != nil {
		s.handed = true
		s.written = p.watch.Written()
	}
	if p.conn != nil && s.fault == "" && s.result == nil && s.rpcError == nil {
		s.fault = p.conn.fault()
	}
	return s
}

func (p *probe) update(f func(*seen)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.seenSoFar)
}

func (p *probe) setFault(code string) { p.update(func(s *seen) { s.fault = code }) }

// sent records that a request is about to be passed to an HTTP transport.
func (p *probe) sent(watch *source.WriteWatch, sessionID bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = watch
	p.seenSoFar.sessionID = sessionID
}

// forget stops waiting for an answer.
func (p *probe) forget() {
	p.mu.Lock()
	conn, id := p.conn, p.id
	p.mu.Unlock()
	if conn != nil {
		conn.forget(id)
	}
}

// place is the context key of a probe.
type place int

const (
	// ofCall is the probe of CallTool, and onWire that of the tools/call message
	// alone: the SDK also uses the first context for cancellation notices.
	ofCall place = iota
	onWire
	// ofHandshake is the probe of a handshake.
	ofHandshake
)

func withProbe(ctx context.Context, at place, p *probe) context.Context {
	return context.WithValue(ctx, at, p)
}

// probeOf returns the probe at a place of a context, or nil.
func probeOf(ctx context.Context, at place) *probe {
	p, _ := ctx.Value(at).(*probe)
	return p
}
