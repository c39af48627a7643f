package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	adapter "github.com/countersign-dev/countersign/internal/source/mcp"
)

// The tool's source, and its tools: one acts on every call, the other once for
// every key.
const (
	toolSource = "touch"
	toolOnce   = "touch.once"
	toolKeyed  = "touch.keyed"
)

// tool is an MCP server that counts the effects of its calls.
type tool struct {
	url    string
	server *httptest.Server

	mu      sync.Mutex // guards the fields below
	effects map[int]int
	keys    map[string]bool
}

type touchIn struct {
	N  int `json:"n" jsonschema:"the action's number"`
	MS int `json:"ms" jsonschema:"how long the call takes, in milliseconds"`
}

type touchOut struct {
	N int `json:"n" jsonschema:"the action's number"`
}

func startTool() (*tool, error) {
	t := &tool{effects: make(map[int]int), keys: make(map[string]bool)}
	s := mcp.NewServer(&mcp.Implementation{Name: "touch", Version: "1"}, nil)
	for _, name := range []string{toolOnce, toolKeyed} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Counts its calls."}, func(ctx context.Context, req *mcp.CallToolRequest, in touchIn) (*mcp.CallToolResult, touchOut, error) {
			key, _ := req.Params.Meta[adapter.MetaIdempotencyKey].(string)
			t.count(in.N, key, name == toolKeyed)
			select {
			case <-time.After(time.Duration(in.MS) * time.Millisecond):
			case <-ctx.Done():
			}
			return nil, touchOut{in.N}, nil
		})
	}
	t.server = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.url = t.server.URL
	return t, nil
}

// count makes the effect happen at the beginning of the call, even if its
// answer is lost.
func (t *tool) count(n int, key string, keyed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if keyed && t.keys[key] {
		return
	}
	t.keys[key] = true
	t.effects[n]++
}

func (t *tool) effectsOf(n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.effects[n]
}

func (t *tool) close() {
	t.server.CloseClientConnections() // calls that were cut off may wait still
	t.server.Close()
}
