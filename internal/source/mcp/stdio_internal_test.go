package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// deaf connects to a child that never reads.
func deaf(t *testing.T) *stdioConn {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	proc, err := start(Config{Command: []string{self}, Env: []string{"FIXTURE_MODE=deaf"}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn := newStdioConn(proc, 1<<20, func() {})
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return conn
}

// frame returns a request with parameters of about size bytes.
func frame(t *testing.T, size int) *jsonrpc.Request {
	t.Helper()
	id, err := jsonrpc.MakeID("1")
	if err != nil {
		t.Fatal(err)
	}
	return &jsonrpc.Request{ID: id, Method: methodCallTool, Params: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}
}

func TestWriteReportsWrittenBytes(t *testing.T) {
	t.Parallel()

	t.Run("nothing for a caller that is gone", func(t *testing.T) {
		t.Parallel()
		conn, p := deaf(t), new(probe)
		ctx, cancel := context.WithCancel(withProbe(t.Context(), onWire, p))
		cancel()

		err := conn.Write(ctx, frame(t, 10))

		if !errors.Is(err, context.Canceled) || p.seen().written {
			t.Errorf("Write() = %v and written = %t, want canceled and not written", err, p.seen().written)
		}
		if err := conn.Write(t.Context(), frame(t, 10)); err != nil {
			t.Errorf("Write() afterwards = %v, want nil", err)
		}
	})

	t.Run("a whole frame", func(t *testing.T) {
		t.Parallel()
		conn, p := deaf(t), new(probe)

		err := conn.Write(withProbe(t.Context(), onWire, p), frame(t, 10))

		if err != nil || !p.seen().written {
			t.Errorf("Write() = %v and written = %t, want nil and written", err, p.seen().written)
		}
	})

	t.Run("nothing of a frame that waits for another", func(t *testing.T) {
		t.Parallel()
		conn, p := deaf(t), new(probe)
		first, stop := context.WithCancel(t.Context())
		written := make(chan error)
		<-conn.turn // another is writing
		go func() { written <- conn.Write(withProbe(first, onWire, p), frame(t, 10)) }()

		stop()

		if err := <-written; !errors.Is(err, context.Canceled) || p.seen().written {
			t.Errorf("Write() = %v and written = %t, want canceled and not written", err, p.seen().written)
		}
	})

	t.Run("nothing for a child that is dead", func(t *testing.T) {
		t.Parallel()
		conn, p := deaf(t), new(probe)
		conn.proc.kill()
		<-conn.proc.exited

		err := conn.Write(withProbe(t.Context(), onWire, p), frame(t, 10))

		if err == nil || p.seen().written {
			t.Errorf("Write() = %v and written = %t, want an error and not written", err, p.seen().written)
		}
	})
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var kept tail
	whole := bytes.Repeat([]byte("0123456789"), 3000)

	for part := range slices.Chunk(whole, 777) {
		if n, err := kept.Write(part); n != len(part) || err != nil {
			t.Fatalf("Write() = %d, %v", n, err)
		}
	}

	if got, want := kept.String(), string(whole[len(whole)-tailBytes:]); got != want {
		t.Errorf("tail has %d bytes ending in %q, want the last %d", len(got), got[max(0, len(got)-5):], tailBytes)
	}
}
