package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	methodInitialize = "initialize"
	methodCallTool   = "tools/call"
	methodCancelled  = "notifications/cancelled"
)

// watchedTransport puts a watchedConn around another transport's connection.
type watchedTransport struct {
	inner sdk.Transport
	conn  *watchedConn
}

// Connect implements sdk.Transport.
func (t *watchedTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.conn.mu.Lock()
	t.conn.Connection = inner
	t.conn.mu.Unlock()
	return t.conn, nil
}

// watchedConn ties every tools/call to its probe by JSON-RPC id, and keeps the
// answers as they came over the wire.
type watchedConn struct {
	sdk.Connection

	mu         sync.Mutex
	pending    map[jsonrpc.ID]*probe
	initialize jsonrpc.ID
	version    string
}

// Write implements sdk.Connection.
func (c *watchedConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return c.Connection.Write(ctx, msg)
	}
	switch req.Method {
	case methodCancelled:
		// What arrives from here on is an answer to the cancellation: an error
		// then does not say that the call had no effect.
		var cancelled sdk.CancelledParams
		if err := json.Unmarshal(req.Params, &cancelled); err == nil {
			if id, err := jsonrpc.MakeID(cancelled.RequestID); err == nil {
				c.forget(id)
			}
		}
	case methodInitialize:
		c.mu.Lock()
		c.initialize = req.ID
		c.mu.Unlock()
	case methodCallTool:
		if p := probeOf(ctx, ofCall); p != nil {
			p.mu.Lock()
			p.conn, p.id = c, req.ID
			p.mu.Unlock()
			c.mu.Lock()
			c.pending[req.ID] = p
			c.mu.Unlock()
			ctx = withProbe(ctx, onWire, p)
		}
	}
	return c.Connection.Write(ctx, msg)
}

// Read implements sdk.Connection.
func (c *watchedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if err != nil {
		return nil, err
	}
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		return msg, nil
	}
	c.mu.Lock()
	p := c.pending[resp.ID]
	delete(c.pending, resp.ID)
	if c.initialize.IsValid() && resp.ID == c.initialize {
		c.version = negotiated(resp.Result)
	}
	c.mu.Unlock()
	if p != nil {
		// Any other error is the SDK's own word for a stream that ended early.
		rpcError, answered := errors.AsType[*jsonrpc.Error](resp.Error)
		if answered || resp.Error == nil {
			p.update(func(s *seen) { s.result, s.rpcError = resp.Result, rpcError })
		}
	}
	return msg, nil
}

func (c *watchedConn) forget(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// protocolVersion is what initialize agreed on; empty before, and under the
// protocol that names its version in each message. The SDK would set the
// header that carries it if this wrapper did not stand in its way.
func (c *watchedConn) protocolVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

func negotiated(result json.RawMessage) string {
	var init struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(result, &init); err != nil {
		return ""
	}
	return init.ProtocolVersion
}

// child returns the process behind the connection, or nil.
func (c *watchedConn) child() *stdioConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	child, _ := c.Connection.(*stdioConn)
	return child
}

// fault is the code of what broke the connection, if its answers did.
func (c *watchedConn) fault() string {
	if child := c.child(); child != nil {
		return child.fault()
	}
	return ""
}

// lastWords says of a child how it ended, if it did, and what it wrote to its
// standard error at the end; empty without a child.
func (c *watchedConn) lastWords() string {
	if child := c.child(); child != nil {
		return child.proc.lastWords()
	}
	return ""
}

// kill ends the connection at once. It does nothing to one over HTTP, which
// the session's own close ends.
func (c *watchedConn) kill() {
	if child := c.child(); child != nil {
		child.proc.kill()
	}
}

// closeChild asks a child process to exit, so that a close that waits for calls
// does not wait for one that hangs.
func (c *watchedConn) closeChild() {
	if child := c.child(); child != nil {
		_ = child.Close() // Close says it again to whoever closes the session
	}
}
