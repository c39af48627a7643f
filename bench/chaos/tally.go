package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	adapter "github.com/countersign-dev/countersign/internal/executor/mcp"
)

// The tools of the counting server.
const (
	toolOnce  = "tally.once"
	toolKeyed = "tally.keyed"
)

// tallyOrder says how the counting server is to behave.
type tallyOrder struct {
	// Call is the shortest time that a call takes; the longest is four times
	// as long.
	Call time.Duration `json:"call"`
	// Busy is the share of calls that are turned away with status 429 before
	// anything happens.
	Busy float64 `json:"busy"`
}

// tallied is what the counting server has seen: per envelope number, the calls
// that arrived and the effects that took place.
type tallied struct {
	Arrived map[int]int `json:"arrived"`
	Effects map[int]int `json:"effects"`
	// Mixed lists the numbers that came under more than one key.
	Mixed []int `json:"mixed"`
	// TurnedAway counts the answers with status 429.
	TurnedAway int `json:"turned_away"`
}

// tally is an MCP server's state whose tools do nothing but count. It is the
// world outside: what it has counted has happened.
type tally struct {
	order tallyOrder

	mu   sync.Mutex
	seen tallied
	keys map[int]string
	done map[string]bool
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
	t := &tally{
		order: order, keys: make(map[int]string), done: make(map[string]bool),
		seen: tallied{Arrived: make(map[int]int), Effects: make(map[int]int)},
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := t.server()
	mux := http.NewServeMux()
	mux.Handle("/mcp", t.turnAway(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	mux.HandleFunc("GET /counts", t.counts)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return fmt.Errorf("print address: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() }) // Serve says so
	defer stop()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
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
	t.arrive(in.N, key)
	time.Sleep(before)
	again := t.act(in.N, key, keyed)
	time.Sleep(took - before)
	return countOut{N: in.N, Again: again}
}

func (t *tally) arrive(n int, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen.Arrived[n]++
	if first, ok := t.keys[n]; ok && first != key || key == "" {
		t.seen.Mixed = append(t.seen.Mixed, n)
	}
	t.keys[n] = key
}

// act is the effect.
func (t *tally) act(n int, key string, keyed bool) (again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if keyed && t.done[key] {
		return true
	}
	t.done[key] = true
	t.seen.Effects[n]++
	return false
}

// turnAway answers some calls with 429, as a provider does that has too much
// to do.
func (t *tally) turnAway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || rand.Float64() >= t.order.Busy {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		if !bytes.Contains(body, []byte(`"tools/call"`)) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		}
		t.mu.Lock()
		t.seen.TurnedAway++
		t.mu.Unlock()
		http.Error(w, "busy", http.StatusTooManyRequests)
	})
}

func (t *tally) counts(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(t.seen) // the reader notices a cut answer
}
