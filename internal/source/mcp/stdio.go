package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/source"
)

// stdioTransport starts the source's command and connects to it.
type stdioTransport struct{ source *Source }

// Connect implements sdk.Transport. The child outlives ctx.
func (t *stdioTransport) Connect(context.Context) (sdk.Connection, error) {
	proc, err := start(t.source.cfg, t.source.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.source.cfg.Command[0], err)
	}
	return newStdioConn(proc, t.source.frameLimit(), t.source.skippedLine), nil
}

// stdioConn sends newline-delimited JSON-RPC to a child process. Unlike the
// SDK's, it records for each tools/call whether any of its frame was written.
type stdioConn struct {
	proc  *process
	limit int
	// skipped is called for each line that is not a message.
	skipped func()
	in      *bufio.Reader
	turn    chan struct{} // holds one token: the right to write

	mu   sync.Mutex
	code string
}

func newStdioConn(proc *process, limit int, skipped func()) *stdioConn {
	c := &stdioConn{
		proc:    proc,
		limit:   limit,
		skipped: skipped,
		in:      bufio.NewReaderSize(proc.stdout, 64<<10),
		turn:    make(chan struct{}, 1),
	}
	c.turn <- struct{}{}
	return c
}

// SessionID implements sdk.Connection.
func (c *stdioConn) SessionID() string { return "" }

// Write implements sdk.Connection. A partly written frame makes the connection
// unusable, so it ends the child.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	frame, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	frame = append(frame, '\n')
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.turn:
	}
	n, err := c.push(ctx, frame)
	if p := probeOf(ctx, onWire); p != nil && n > 0 {
		p.update(func(s *seen) { s.written = true })
	}
	if err == nil {
		c.turn <- struct{}{}
		return nil
	}
	if n == 0 && ctx.Err() != nil {
		c.turn <- struct{}{}
		return ctx.Err()
	}
	c.proc.kill()
	c.turn <- struct{}{}
	return fmt.Errorf("write to child: %w", err)
}

// push writes to the pipe until ctx ends, and returns the number of written
// bytes.
func (c *stdioConn) push(ctx context.Context, frame []byte) (int, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = c.proc.stdin.SetWriteDeadline(time.Unix(1, 0)) // fails only on a closed pipe
	})
	n, err := c.proc.stdin.Write(frame)
	if !stop() {
		<-interrupted
		_ = c.proc.stdin.SetWriteDeadline(time.Time{}) // fails only on a closed pipe
	}
	return n, err
}

// Read implements sdk.Connection. It skips and counts lines that are not
// messages: many servers, and the programs that start them, print a greeting. An
// unreadable message ends the child, since it may be an awaited answer.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, err := c.line()
		if errors.Is(err, errOversized) {
			c.setFault(source.CodeOversized)
			return nil, err
		}
		if err != nil {
			return nil, io.EOF
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		msg, err := jsonrpc.DecodeMessage(line)
		switch {
		case err == nil:
			return msg, nil
		case bytes.Contains(line, []byte(`"jsonrpc"`)):
			c.setFault(source.CodeMalformed)
			return nil, errMalformed
		}
		c.skipped()
	}
}

// line reads one line of at most limit bytes.
func (c *stdioConn) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if len(line)+len(part) > c.limit {
			return nil, errOversized
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (c *stdioConn) setFault(code string) {
	c.mu.Lock()
	c.code = code
	c.mu.Unlock()
	c.proc.kill()
}

// fault returns the code of the message that broke the connection, or "".
func (c *stdioConn) fault() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code
}

// Close implements sdk.Connection. It returns when the child has ended.
func (c *stdioConn) Close() error {
	if err := c.proc.stop(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
