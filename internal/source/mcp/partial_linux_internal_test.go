package mcp

import (
	"context"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWriteOfPartOfAFrameEndsTheChild runs only on Linux: the capacity of a pipe
// is unknown elsewhere.
func TestWriteOfPartOfAFrameEndsTheChild(t *testing.T) {
	t.Parallel()
	conn, p := deaf(t), new(probe)
	ctx, cancel := context.WithCancel(withProbe(t.Context(), onWire, p))
	defer cancel()
	written := make(chan error, 1)
	go func() { written <- conn.Write(ctx, frame(t, 1<<20)) }()
	for queued(t, conn.proc.stdin) == 0 {
		runtime.Gosched()
	}

	cancel()

	if err := <-written; err == nil || !p.seen().written {
		t.Fatalf("Write() = %v and written = %t, want an error and written", err, p.seen().written)
	}
	<-conn.proc.exited
}

// queued returns the number of bytes in a pipe.
func queued(t *testing.T, pipe *os.File) int {
	t.Helper()
	raw, err := pipe.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	var failed error
	if err := raw.Control(func(fd uintptr) { n, failed = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		t.Fatal(failed)
	}
	return n
}
