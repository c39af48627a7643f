package counting

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
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"syscall"
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

	mu      sync.Mutex // guards the fields below
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
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
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

// Fault is a fault of the server's answers. Half of the affected calls have
// taken effect; none of those rejected as busy has, and all of those during
// which the process dies have.
type Fault string

// The faults.
const (
	Healthy Fault = ""
	Hangs   Fault = "hang"
	Busy    Fault = "429"
	Down    Fault = "503"
	Garbage Fault = "garbage"
	Huge    Fault = "50mb"
	Dies    Fault = "dies"
)

const (
	// BusyFor is the Retry-After of fault Busy.
	BusyFor = 2 * time.Second
	// hugeBody is the length of an answer of fault Huge, in bytes.
	hugeBody = 50 << 20
	// setTimeout bounds Set.
	setTimeout = 10 * time.Second
)

// Setting is a fault, and the share of calls that it affects.
type Setting struct {
	Fault Fault   `json:"fault"`
	Share float64 `json:"share"`
}

// Set changes the fault of the server at a URL.
func (s Setting) Set(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/fault", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("set fault: %w", err)
	}
	_ = resp.Body.Close() // nothing is in it
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("set fault: status %d", resp.StatusCode)
	}
	return nil
}

func (s *server) setFault(w http.ResponseWriter, r *http.Request) {
	var setting Setting
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&setting); err != nil {
		http.Error(w, "the body is not a fault setting", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setting = setting
}

// request is the part of a call that the middleware needs.
type request struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params struct {
		Arguments countIn `json:"arguments"`
	} `json:"params"`
}

// readCall reads a request and restores its body. It reports false for a request
// that is not a tool call.
func readCall(w http.ResponseWriter, r *http.Request) (request, bool) {
	if r.Method != http.MethodPost {
		return request{}, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req request
	return req, err == nil && json.Unmarshal(body, &req) == nil && req.Method == "tools/call"
}

// rejectSome answers a share of the calls with 429, as an overloaded provider does.
func (s *server) rejectSome(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, isCall := readCall(w, r)
		if !isCall || rand.Float64() >= s.cfg.Busy {
			next.ServeHTTP(w, r)
			return
		}
		s.record(event{What: rejected, N: req.Params.Arguments.N})
		http.Error(w, "busy", http.StatusTooManyRequests)
	})
}

// injectFaults makes a share of the answers faulty.
func (s *server) injectFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		now := s.setting
		s.mu.Unlock()
		req, isCall := readCall(w, r)
		if !isCall || now.Fault == Healthy || rand.Float64() >= now.Share {
			next.ServeHTTP(w, r)
			return
		}
		s.record(event{What: faulty, N: req.Params.Arguments.N, Fault: now.Fault})
		if now.Fault == Dies || now.Fault != Busy && rand.IntN(2) == 0 {
			next.ServeHTTP(httptest.NewRecorder(), r) // the call takes effect, and its answer is dropped
		}
		writeFaulty(w, r, now.Fault, req.ID)
	})
}

// writeFaulty writes a faulty answer, or none.
func writeFaulty(w http.ResponseWriter, r *http.Request, fault Fault, id json.RawMessage) {
	switch fault {
	case Healthy:
	case Hangs:
		<-r.Context().Done() // until the caller gives up
	case Busy:
		w.Header().Set("Retry-After", strconv.Itoa(int(BusyFor.Seconds())))
		http.Error(w, "busy", http.StatusTooManyRequests)
	case Down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case Garbage:
		media := []string{"application/json", "text/event-stream", "text/html"}
		w.Header().Set("Content-Type", media[rand.IntN(len(media))])
		noise := make([]byte, 1+rand.IntN(4096))
		for i := range noise {
			noise[i] = byte(rand.IntN(256))
		}
		_, _ = w.Write(noise) // the caller may have hung up
	case Huge:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
		block := bytes.Repeat([]byte("a"), 1<<20)
		for range hugeBody / len(block) {
			if _, err := w.Write(block); err != nil {
				return // the caller has hung up
			}
		}
		fmt.Fprint(w, `"}]}}`)
	case Dies:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // this process ends here
	}
}
