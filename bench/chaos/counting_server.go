package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	adapter "github.com/countersign-dev/countersign/internal/source/mcp"
)

// The tools of the counting server.
const (
	toolOnce  = "count.once"
	toolKeyed = "count.keyed"
)

// serverConfig configures the counting server.
type serverConfig struct {
	// Address is the address to listen on, Journal the file of its journal.
	Address string `json:"address"`
	Journal string `json:"journal"`
	// Call is the shortest time that a call takes; the longest is four times
	// as long.
	Call time.Duration `json:"call"`
	// Busy is the share of calls that are rejected with status 429 before their
	// effect.
	Busy float64 `json:"busy"`
	// Fault is what the server does wrong, and Share the share of calls affected.
	Fault toolFault `json:"fault"`
	Share float64   `json:"share"`
}

// countingServer is an MCP server whose tools only count. An effect has happened
// if it is in the journal.
type countingServer struct {
	order   serverConfig
	journal *journal
	// fail ends the server when its journal cannot be trusted any more.
	fail func(error)

	mu    sync.Mutex
	seen  *journalCounts
	fault toolFault
	share float64
}

type countIn struct {
	N int `json:"n" jsonschema:"the envelope's number"`
}

type countOut struct {
	N int `json:"n" jsonschema:"the envelope's number"`
	// Again is true if the key was known, so that nothing happened.
	Again bool `json:"again" jsonschema:"whether this had been counted before"`
}

// serveCounting serves until ctx ends. It prints its base URL as one line.
func serveCounting(ctx context.Context, order serverConfig, stdout io.Writer) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	seen, err := readJournal(order.Journal)
	if err != nil {
		return err
	}
	j, err := openJournal(order.Journal)
	if err != nil {
		return err
	}
	t := &countingServer{order: order, journal: j, fail: fail, seen: seen, fault: order.Fault, share: order.Share}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", order.Address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := t.server()
	mux := http.NewServeMux()
	mux.Handle("/mcp", t.rejectSome(t.injectFaults(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))))
	mux.HandleFunc("PUT /fault", t.setFault)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return fmt.Errorf("print address: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() }) // Serve says so
	defer stop()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func (t *countingServer) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{
		Name:        toolOnce,
		Description: "Counts every call.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)},
	}, func(_ context.Context, req *mcp.CallToolRequest, in countIn) (*mcp.CallToolResult, countOut, error) {
		return nil, t.count(req, in, false), nil
	})
	mcp.AddTool(s, &mcp.Tool{
		Name:        toolKeyed,
		Description: "Counts every idempotency key once.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)},
	}, func(_ context.Context, req *mcp.CallToolRequest, in countIn) (*mcp.CallToolResult, countOut, error) {
		return nil, t.count(req, in, true), nil
	})
	return s
}

// count lets the effect take place at any moment of the call's time, whether
// the caller is still there or not.
func (t *countingServer) count(req *mcp.CallToolRequest, in countIn, keyed bool) countOut {
	key, _ := req.Params.Meta[adapter.MetaIdempotencyKey].(string)
	took := t.order.Call + time.Duration(rand.Int64N(int64(3*t.order.Call)+1))
	before := time.Duration(rand.Int64N(int64(took) + 1))
	t.record(event{What: arrived, N: in.N, Key: key})
	time.Sleep(before)
	again := t.apply(in.N, key, keyed)
	time.Sleep(took - before)
	return countOut{N: in.N, Again: again}
}

// record appends an event to the journal and counts it. A server that cannot
// write ends, since its journal would be incomplete.
func (t *countingServer) record(e event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordLocked(e)
}

func (t *countingServer) recordLocked(e event) {
	if err := errors.Join(t.journal.write(e), t.seen.add(e)); err != nil {
		t.fail(err)
	}
}

// apply records the effect, unless the key has had it.
func (t *countingServer) apply(n int, key string, keyed bool) (again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if keyed && t.seen.done[key] {
		return true
	}
	t.recordLocked(event{What: effect, N: n, Key: key})
	return false
}
