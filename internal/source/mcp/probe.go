package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/countersign-dev/countersign/internal/source"
)

// probe collects what is seen of one tools/call, or of one handshake, on its
// way through the transport. The SDK hands a request's context down to the
// bytes, and the probe rides in it.
type probe struct {
	mu        sync.Mutex
	watch     *source.WriteWatch
	conn      *watchedConn
	id        jsonrpc.ID
	seenSoFar seen
}

// seen is what a probe knows.
type seen struct {
	// written says that the request went out, or may have, in part or whole.
	written bool
	// handed says that an HTTP transport was given the request.
	handed bool
	// status and retryAfter are the HTTP response's.
	status     int
	retryAfter time.Duration
	// failed is why no HTTP response came to a request of a handshake or listing.
	failed error
	// sessionID says that the request named a session.
	sessionID bool
	// fault is the code of an answer that came and could not be used.
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

// sent notes that a request is about to be handed to an HTTP transport.
func (p *probe) sent(watch *source.WriteWatch, sessionID bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = watch
	p.seenSoFar.sessionID = sessionID
}

// forget ends the wait for an answer.
func (p *probe) forget() {
	p.mu.Lock()
	conn, id := p.conn, p.id
	p.mu.Unlock()
	if conn != nil {
		conn.forget(id)
	}
}

// place is where a context holds a probe.
type place int

const (
	// ofCall is the probe as it is given to CallTool, and onWire as it is passed
	// on with the tools/call alone: the SDK uses the first context for
	// cancellation notices too.
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
