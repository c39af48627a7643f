package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// BridgeConfig configures a Bridge.
type BridgeConfig struct {
	// URL is that of a Server: http://127.0.0.1:8080/mcp.
	URL string
	// Token is sent to it as the bearer.
	Token string
	// Version is the build's, as both sides see it.
	Version string
	// Answer bounds the time until the server begins an answer; zero means the
	// longest wait of a call, and half a minute.
	Answer time.Duration
	// In and Out are the client's streams, with one message a line.
	In  io.Reader
	Out io.Writer
}

// ErrBridgeToken is the error of a token that the server does not accept.
var ErrBridgeToken = errors.New("the server does not accept the token")

// Bridge serves one MCP client over its standard streams by forwarding
// everything to a Server over HTTP, until the client closes its stream or ctx
// ends. The error is ErrBridgeToken, that of an unreachable server at the
// start, or that of ctx. Later errors are answers to the calls that failed.
func Bridge(ctx context.Context, cfg BridgeConfig) error {
	b := &bridge{cfg: cfg, transport: &bearerTransport{token: cfg.Token, next: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
		ResponseHeaderTimeout: cmp.Or(cfg.Answer, MaxWait+request.WorkTimeout),
	}}}
	b.http = &http.Client{Transport: b.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	b.server = sdk.NewServer(b.implementation(), &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	b.server.AddTool(&sdk.Tool{Name: catalogTool, InputSchema: objectSchema(nil)}, b.call)
	b.server.AddReceivingMiddleware(b.middleware)
	if _, err := b.connect(ctx, nil); err != nil {
		return err
	}
	defer b.close()
	err := b.server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(cfg.In), Writer: nopWriteCloser{cfg.Out}})
	if errors.Is(err, io.EOF) && ctx.Err() == nil {
		return nil
	}
	return err
}

// bridge is one run of Bridge. Its client follows no redirect, so that the
// token is sent nowhere else.
type bridge struct {
	cfg       BridgeConfig
	http      *http.Client
	transport *bearerTransport
	server    *sdk.Server

	mu      sync.Mutex
	session *sdk.ClientSession
}

func (b *bridge) implementation() *sdk.Implementation {
	return &sdk.Implementation{Name: "countersign", Title: "Countersign", Version: cmp.Or(b.cfg.Version, "unknown")}
}

// connect returns the session with the Server, a new one if none is open or if
// the current one is dead.
func (b *bridge) connect(ctx context.Context, dead *sdk.ClientSession) (*sdk.ClientSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != dead {
		return b.session, nil
	}
	client := sdk.NewClient(b.implementation(), &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		ToolListChangedHandler:      b.listChanged,
		ProgressNotificationHandler: b.progress,
	})
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: b.cfg.URL, HTTPClient: b.http}, nil)
	if err != nil {
		if b.transport.refused.Load() {
			return nil, ErrBridgeToken
		}
		return nil, fmt.Errorf("connect to %s: %w", b.cfg.URL, err)
	}
	if dead != nil {
		_ = dead.Close() // it is dead
	}
	b.session = session
	return session, nil
}

func (b *bridge) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.session.Close() // the process ends
}

// do runs fn over the session, and once more over a new session if the old one
// was dead before anything was sent.
func (b *bridge) do(ctx context.Context, fn func(*sdk.ClientSession) error) error {
	session, err := b.connect(ctx, nil)
	if err != nil {
		return b.explain(ctx, err)
	}
	err = fn(session)
	if errors.Is(err, sdk.ErrSessionMissing) || errors.Is(err, sdk.ErrConnectionClosed) {
		if session, err = b.connect(ctx, session); err == nil {
			err = fn(session)
		}
	}
	return b.explain(ctx, err)
}

// explain returns an error as the client may read it.
func (b *bridge) explain(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case b.transport.refused.Load():
		return protocolError(jsonrpc.CodeInternalError, ErrBridgeToken.Error())
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err
	}
	return protocolError(jsonrpc.CodeInternalError, "no answer from "+b.cfg.URL+"; nobody knows whether the call arrived")
}

// middleware passes lists, calls and the Server's instructions on.
func (b *bridge) middleware(next sdk.MethodHandler) sdk.MethodHandler {
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
			return page, b.do(ctx, func(session *sdk.ClientSession) error {
				got, err := session.ListTools(ctx, params)
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
		answer, err := next(ctx, method, req)
		if of, ok := answer.(*sdk.InitializeResult); ok && err == nil {
			of.Instructions = b.instructions()
		}
		if of, ok := answer.(*sdk.DiscoverResult); ok && err == nil {
			of.Instructions = b.instructions()
		}
		return answer, err
	}
}

// instructions returns the Server's instructions.
func (b *bridge) instructions() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if res := b.session.InitializeResult(); res != nil {
		return res.Instructions
	}
	return instructions
}

// call passes a call on, without those parts of its _meta that are about the
// connection between client and bridge.
func (b *bridge) call(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
	name, _ := ctx.Value(calledKey{}).(string)
	meta := maps.Clone(req.Params.Meta)
	maps.DeleteFunc(meta, func(key string, _ any) bool { return strings.HasPrefix(key, "io.modelcontextprotocol/") })
	err = b.do(ctx, func(session *sdk.ClientSession) error {
		params := &sdk.CallToolParams{Meta: maps.Clone(meta), Name: name}
		if len(req.Params.Arguments) > 0 {
			params.Arguments = req.Params.Arguments
		}
		got, err := session.CallTool(ctx, params)
		if err == nil {
			res = &sdk.CallToolResult{Meta: got.Meta, Content: got.Content, StructuredContent: got.StructuredContent, IsError: got.IsError}
		}
		return err
	})
	return res, err
}

// listChanged passes on that the list has changed: the SDK's server notifies
// its client when a tool is added.
func (b *bridge) listChanged(context.Context, *sdk.ToolListChangedRequest) {
	b.server.AddTool(&sdk.Tool{Name: catalogTool, InputSchema: objectSchema(nil)}, b.call)
}

// progress passes progress on. Its errors are ignored: the call itself
// returns them too.
func (b *bridge) progress(ctx context.Context, req *sdk.ProgressNotificationClientRequest) {
	for s := range b.server.Sessions() {
		_ = s.NotifyProgress(ctx, req.Params)
	}
}

// bearerTransport sends the token with every request, and stores whether it was
// refused.
type bearerTransport struct {
	token   string
	next    http.RoundTripper
	refused atomic.Bool
}

// RoundTrip sends a request.
func (c *bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
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
