package counting

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

// The tools: one counts every call, the other every idempotency key once.
const (
	ToolOnce  = "count.once"
	ToolKeyed = "count.keyed"
)

// Config configures a server.
type Config struct {
	// Address is the address to listen on, Journal the file of its journal.
	Address string `json:"address"`
	Journal string `json:"journal"`
	// Call is the shortest time that a call takes; the longest is four times
	// as long.
	Call time.Duration `json:"call"`
	// Busy is the share of calls that are rejected with status 429 before their
	// effect.
	Busy float64 `json:"busy"`
	Setting
}

// server is the MCP server. An effect has happened if it is in the journal.
type server struct {
	cfg Config
	// fail ends the server when its journal is incomplete.
	fail func(error)

	mu      sync.Mutex // guards what follows
	journal *journal
	setting Setting
}

type countIn struct {
	N int `json:"n" jsonschema:"the action's number"`
}

type countOut struct {
	N int `json:"n" jsonschema:"the action's number"`
	// Again reports whether the key was known, so that nothing happened.
	Again bool `json:"again" jsonschema:"whether this had been counted before"`
}

// Serve serves until ctx ends. It prints its base URL as one line.
func Serve(ctx context.Context, cfg Config, stdout io.Writer) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	j, err := openJournal(cfg.Journal)
	if err != nil {
		return err
	}
	s := &server{cfg: cfg, journal: j, fail: fail, setting: cfg.Setting}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	tools := s.tools()
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.rejectSome(s.injectFaults(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))))
	mux.HandleFunc("PUT /fault", s.setFault)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return fmt.Errorf("print address: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() }) // Serve returns its error
	defer stop()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func (s *server) tools() *mcp.Server {
	tools := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1.0.0"}, nil)
	for name, about := range map[string]string{
		ToolOnce: "Counts every call.", ToolKeyed: "Counts every idempotency key once.",
	} {
		mcp.AddTool(tools, &mcp.Tool{
			Name: name, Description: about,
			Annotations: &mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)},
		}, func(_ context.Context, req *mcp.CallToolRequest, in countIn) (*mcp.CallToolResult, countOut, error) {
			return nil, s.count(req, in, name == ToolKeyed), nil
		})
	}
	return tools
}

// count lets the effect happen at a random moment of the call's time, whether
// or not the caller still waits.
func (s *server) count(req *mcp.CallToolRequest, in countIn, keyed bool) countOut {
	key, _ := req.Params.Meta[adapter.MetaIdempotencyKey].(string)
	took := s.cfg.Call + time.Duration(rand.Int64N(int64(3*s.cfg.Call)+1))
	before := time.Duration(rand.Int64N(int64(took) + 1))
	s.record(event{What: arrived, N: in.N, Key: key})
	time.Sleep(before)
	again := s.apply(in.N, key, keyed)
	time.Sleep(took - before)
	return countOut{N: in.N, Again: again}
}

// record appends an event to the journal. A server that cannot write ends,
// since its journal would be incomplete.
func (s *server) record(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordLocked(e)
}

func (s *server) recordLocked(e event) {
	if err := s.journal.record(e); err != nil {
		s.fail(err)
	}
}

// apply records the effect, unless the key has had it.
func (s *server) apply(n int, key string, keyed bool) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if keyed && s.journal.counts.done[key] {
		return true
	}
	s.recordLocked(event{What: effect, N: n, Key: key})
	return false
}
