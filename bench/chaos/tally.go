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
	toolOnce  = "tally.once"
	toolKeyed = "tally.keyed"
)

// tallyOrder says how the counting server is to behave.
type tallyOrder struct {
	// Address is where it listens, Journal the file that it remembers by.
	Address string `json:"address"`
	Journal string `json:"journal"`
	// Call is the shortest time that a call takes; the longest is four times
	// as long.
	Call time.Duration `json:"call"`
	// Busy is the share of calls that are turned away with status 429 before
	// anything happens.
	Busy float64 `json:"busy"`
	// Ill is what is wrong with it, Share the share of calls that suffer.
	Ill   illness `json:"ill"`
	Share float64 `json:"share"`
}

// tally is an MCP server's state whose tools do nothing but count. It is the
// world outside: what is in its journal has happened.
type tally struct {
	order   tallyOrder
	journal *journal
	// fail is told what keeps the server from being believed.
	fail func(error)

	mu    sync.Mutex
	seen  *tallied
	ill   illness
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

// serveTally serves until ctx ends. It prints its base URL as one line.
func serveTally(ctx context.Context, order tallyOrder, stdout io.Writer) error {
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
	t := &tally{order: order, journal: j, fail: fail, seen: seen, ill: order.Ill, share: order.Share}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", order.Address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := t.server()
	mux := http.NewServeMux()
	mux.Handle("/mcp", t.turnAway(t.suffer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))))
	mux.HandleFunc("PUT /health", t.setHealth)
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

func (t *tally) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tally", Version: "1.0.0"}, nil)
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
func (t *tally) count(req *mcp.CallToolRequest, in countIn, keyed bool) countOut {
	key, _ := req.Params.Meta[adapter.MetaIdempotencyKey].(string)
	took := t.order.Call + time.Duration(rand.Int64N(int64(3*t.order.Call)+1))
	before := time.Duration(rand.Int64N(int64(took) + 1))
	t.note(event{What: arrived, N: in.N, Key: key})
	time.Sleep(before)
	again := t.act(in.N, key, keyed)
	time.Sleep(took - before)
	return countOut{N: in.N, Again: again}
}

// note writes an event down and counts it. A server that cannot write ends: it
// would not be believed any more.
func (t *tally) note(e event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteLocked(e)
}

func (t *tally) noteLocked(e event) {
	if err := errors.Join(t.journal.write(e), t.seen.add(e)); err != nil {
		t.fail(err)
	}
}

// act is the effect.
func (t *tally) act(n int, key string, keyed bool) (again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if keyed && t.seen.done[key] {
		return true
	}
	t.noteLocked(event{What: effect, N: n, Key: key})
	return false
}
