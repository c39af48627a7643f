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

// watchedTransport wraps the connection of another transport in a watchedConn.
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

// watchedConn associates every tools/call with its probe by JSON-RPC id, and
// keeps the answers in their original bytes.
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
		// An answer after the cancellation does not prove that the call had no
		// effect, even if it is an error.
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
		// Any other error is the SDK's error for a stream that ended early.
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

// protocolVersion returns the version that initialize negotiated; "" before, and
// with the protocol that has its version in each message. The SDK does not set
// the header of the version through this wrapper.
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

// child returns the process of the connection, or nil.
func (c *watchedConn) child() *stdioConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	child, _ := c.Connection.(*stdioConn)
	return child
}

// fault returns the code of the answer that broke the connection, or "".
func (c *watchedConn) fault() string {
	if child := c.child(); child != nil {
		return child.fault()
	}
	return ""
}

// childStatus returns the exit status of a child and the end of its standard
// error; "" without a child.
func (c *watchedConn) childStatus() string {
	if child := c.child(); child != nil {
		return child.proc.status()
	}
	return ""
}

// kill ends the process immediately. It does nothing for HTTP, where closing the
// session ends the connection.
func (c *watchedConn) kill() {
	if child := c.child(); child != nil {
		child.proc.kill()
	}
}

// closeChild asks a child to exit, so that a close does not wait for a call that
// hangs.
func (c *watchedConn) closeChild() {
	if child := c.child(); child != nil {
		_ = child.Close() // closing the session returns the error again
	}
}
