package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// BridgeConfig says what a Bridge connects.
type BridgeConfig struct {
	// URL is that of a Front: http://127.0.0.1:8080/mcp.
	URL string
	// Token is sent to it as the bearer.
	Token string
	// Version is the build's, as both sides see it.
	Version string
	// In and Out are the client's: one message a line.
	In  io.Reader
	Out io.Writer
}

// ErrBridgeToken says that the server does not know the token.
var ErrBridgeToken = errors.New("the server does not take the token")

// Bridge serves one client that speaks MCP over its standard streams by way of
// a Front that is reached over HTTP, until the client closes its stream or ctx
// ends. The error is ErrBridgeToken, that the server cannot be reached at the
// start, or that of ctx. Later, what goes wrong on the way is the answer to
// the call that it befell.
func Bridge(ctx context.Context, cfg BridgeConfig) error {
	b := &bridge{cfg: cfg, by: &carrier{token: cfg.Token, next: http.DefaultTransport}}
	b.http = &http.Client{Transport: b.by, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	b.near = sdk.NewServer(b.self(), &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	b.near.AddTool(&sdk.Tool{Name: catalogTool, InputSchema: objectSchema(nil)}, b.call)
	b.near.AddReceivingMiddleware(b.receive)
	if _, err := b.connect(ctx, nil); err != nil {
		return err
	}
	defer b.close()
	err := b.near.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(cfg.In), Writer: nopWriteCloser{cfg.Out}})
	if errors.Is(err, io.EOF) && ctx.Err() == nil {
		return nil
	}
	return err
}

// bridge is one run of Bridge. It follows no redirect, so that the token goes
// nowhere else.
type bridge struct {
	cfg  BridgeConfig
	http *http.Client
	by   *carrier
	near *sdk.Server

	mu  sync.Mutex
	far *sdk.ClientSession
}

func (b *bridge) self() *sdk.Implementation {
	return &sdk.Implementation{Name: "countersign", Title: "Countersign", Version: cmp.Or(b.cfg.Version, "unknown")}
}

// connect returns the connection to the Front, a new one if there is none but
// the one that was found dead.
func (b *bridge) connect(ctx context.Context, dead *sdk.ClientSession) (*sdk.ClientSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.far != dead {
		return b.far, nil
	}
	client := sdk.NewClient(b.self(), &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		ToolListChangedHandler:      b.listChanged,
		ProgressNotificationHandler: b.progress,
	})
	far, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: b.cfg.URL, HTTPClient: b.http}, nil)
	if err != nil {
		if b.by.refused.Load() {
			return nil, ErrBridgeToken
		}
		return nil, fmt.Errorf("connect to %s: %w", b.cfg.URL, err)
	}
	if dead != nil {
		_ = dead.Close() // it is dead already
	}
	b.far = far
	return far, nil
}

func (b *bridge) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.far.Close() // the process is at its end, and the session too
}

// ask does something over the connection, and once more over a new one if the
// old one was dead before anything was sent.
func (b *bridge) ask(ctx context.Context, do func(*sdk.ClientSession) error) error {
	far, err := b.connect(ctx, nil)
	if err != nil {
		return b.explain(ctx, err)
	}
	err = do(far)
	if errors.Is(err, sdk.ErrSessionMissing) || errors.Is(err, sdk.ErrConnectionClosed) {
		if far, err = b.connect(ctx, far); err == nil {
			err = do(far)
		}
	}
	return b.explain(ctx, err)
}

// explain is an error as the client may read it.
func (b *bridge) explain(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case b.by.refused.Load():
		return protocolError(jsonrpc.CodeInternalError, ErrBridgeToken.Error())
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err
	}
	return protocolError(jsonrpc.CodeInternalError, "no answer from "+b.cfg.URL+"; nobody knows whether the call arrived")
}

// receive passes lists and calls on.
func (b *bridge) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch r := req.(type) {
		case *sdk.ListToolsRequest:
			answer, err := next(ctx, method, &sdk.ListToolsRequest{Session: r.Session, Params: &sdk.ListToolsParams{}, Extra: r.Extra})
			page, ok := answer.(*sdk.ListToolsResult)
			if err != nil || !ok {
				return answer, err
			}
			params := &sdk.ListToolsParams{}
			if r.Params != nil {
				params.Cursor = r.Params.Cursor
			}
			return page, b.ask(ctx, func(far *sdk.ClientSession) error {
				got, err := far.ListTools(ctx, params)
				if err == nil {
					page.Tools, page.NextCursor, page.CacheScope = got.Tools, got.NextCursor, got.CacheScope
				}
				return err
			})
		case *sdk.CallToolRequest:
			of, params := *r, *r.Params
			of.Params, params.Name = &params, catalogTool
			return next(context.WithValue(ctx, calledKey{}, r.Params.Name), method, &of)
		}
		return next(ctx, method, req)
	}
}

// call passes a call on. What its _meta says of the way between client and
// bridge stays behind.
func (b *bridge) call(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
	name, _ := ctx.Value(calledKey{}).(string)
	meta := maps.Clone(req.Params.Meta)
	maps.DeleteFunc(meta, func(key string, _ any) bool { return strings.HasPrefix(key, "io.modelcontextprotocol/") })
	err = b.ask(ctx, func(far *sdk.ClientSession) error {
		params := &sdk.CallToolParams{Meta: maps.Clone(meta), Name: name}
		if len(req.Params.Arguments) > 0 {
			params.Arguments = req.Params.Arguments
		}
		got, err := far.CallTool(ctx, params)
		if err == nil {
			res = &sdk.CallToolResult{Meta: got.Meta, Content: got.Content, StructuredContent: got.StructuredContent, IsError: got.IsError}
		}
		return err
	})
	return res, err
}

// listChanged passes on that the list changed: the SDK's server tells its
// client so when a tool is added.
func (b *bridge) listChanged(context.Context, *sdk.ToolListChangedRequest) {
	b.near.AddTool(&sdk.Tool{Name: catalogTool, InputSchema: objectSchema(nil)}, b.call)
}

// progress passes progress on. Who does not hear it misses nothing.
func (b *bridge) progress(ctx context.Context, req *sdk.ProgressNotificationClientRequest) {
	for s := range b.near.Sessions() {
		_ = s.NotifyProgress(ctx, req.Params)
	}
}

// carrier sends the token with every request, and notes that it was refused.
type carrier struct {
	token   string
	next    http.RoundTripper
	refused atomic.Bool
}

// RoundTrip sends a request.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.next.RoundTrip(r)
	if err == nil {
		c.refused.Store(res.StatusCode == http.StatusUnauthorized)
	}
	return res, err
}

// nopWriteCloser leaves a stream open that belongs to the caller.
type nopWriteCloser struct{ io.Writer }

// Close does nothing.
func (nopWriteCloser) Close() error { return nil }
